"""Probes that count toggles: the flip-flops of each block that change at the next clock edge, added up in RTLIL.

Each module gets an output for every block that has registers in it or below: how many bits change. The top module hands
the sums, and the moment in which a status record is taken, to ``tilewright_activity`` of
sim/verilator/harness/activity.sv.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import count

from tilewright.sim.verilog.energy_blocks import (
    ENERGY_BLOCKS,
    ElaboratedModule,
    Register,
    energy_block_of,
    modules,
    path_of,
)

__all__ = ["RECORD", "with_probes"]

_COUNT_BITS = 20
"""Of a number of bits that change: enough for a million flip-flops."""

_GROUP_BITS = 64
"""Narrow registers are counted together, up to so many bits: what the simulator holds in one word."""

RECORD = "record_taken"
_RECORD_MODULE = "store.record"
_RECORD_INPUTS = ("\\counters__request", "\\counters__begins")  # both: the walk begins whose counts it keeps
_NO_WORD = re.compile(r"\W")
_FIRST_PORT = 10_000  # beyond the numbers of a module's own ports


def with_probes(rtlil: str) -> str:
    """Return the RTLIL of a coprocessor with probes in it; the ports of its top module stay as they are."""
    head = rtlil[:rtlil.index("module ")]
    found = list(modules(rtlil))
    outputs: dict[str, dict[str, int]] = {}
    texts = []
    for module in reversed(found):  # children before their parents
        probed = _Probed(module, outputs)
        if module is found[0]:
            probed.collect()
        else:
            probed.export()
        outputs[module.name] = probed.widths
        texts.append(f"module \\{module.name}\n{probed.text()}end\n")
    return head + "\n".join(reversed(texts))


class _Probed:
    """A module and what is added to it."""

    def __init__(self, module: ElaboratedModule, outputs: dict[str, dict[str, int]]) -> None:
        self._module = module
        self._outputs = outputs
        self._wires: list[str] = []
        self._body: list[str] = []
        self._numbers = count()
        self._sums = {name: self._total(terms) if name in ENERGY_BLOCKS else terms[0]
                      for name, terms in self._terms().items()}
        self.widths = {name: _COUNT_BITS if name in ENERGY_BLOCKS else 1 for name in self._sums}

    def text(self) -> str:
        """Return the module's text with the additions."""
        text = self._module.text
        for child, cell in self._module.children:
            links = [f"    connect \\probe_{name} {self._link(cell, name)}\n" for name in self._outputs.get(child, {})]
            head = f"  cell \\{child} {cell}\n"
            text = text.replace(head, head + "".join(links))
        return "\n".join([*self._wires, text + "\n".join(self._body), ""])

    def export(self) -> None:
        """Make the sums outputs of the module."""
        for number, (name, total) in enumerate(self._sums.items(), _FIRST_PORT):
            self._wires.append(f"  wire width {self.widths[name]} output {number} \\probe_{name}")
            self._body.append(f"  connect \\probe_{name} {total}")

    def collect(self) -> None:
        """Hand the sums to the module that keeps count of them; the first block is the lowest."""
        toggles = [self._sums[name] for name in reversed(ENERGY_BLOCKS)]
        self._cell("\\tilewright_activity", {"BLOCKS": len(ENERGY_BLOCKS), "BITS": _COUNT_BITS},
                   {"clk": "\\clk", "record": self._sums[RECORD], "toggles": f"{{ {' '.join(toggles)} }}"})

    def _terms(self) -> dict[str, list[str]]:
        """Return, for each output, the signals that add up to it."""
        module = self._module
        terms: dict[str, list[str]] = {}
        for group in _grouped(module.registers):
            counted = self._wire(_COUNT_BITS)
            self._cell("\\tilewright_toggles", {"WIDTH": sum(each.width for each in group), "BITS": _COUNT_BITS},
                       {"held": f"{{ {' '.join(each.held for each in group)} }}",
                        "taken": f"{{ {' '.join(each.taken for each in group)} }}", "count": counted})
            terms.setdefault(energy_block_of(module.name), []).append(counted)
        for child, cell in module.children:
            for name, width in self._outputs.get(child, {}).items():
                self._wires.append(f"  wire width {width} {self._link(cell, name)}")
                terms.setdefault(name, []).append(self._link(cell, name))
        if path_of(module.name) == _RECORD_MODULE:
            taken = self._wire(1)
            self._cell("$and", dict.fromkeys(("A_SIGNED", "B_SIGNED"), 0)
                       | dict.fromkeys(("A_WIDTH", "B_WIDTH", "Y_WIDTH"), 1),
                       dict(zip(("A", "B", "Y"), (*_RECORD_INPUTS, taken), strict=True)))
            terms[RECORD] = [taken]
        return terms

    def _link(self, cell: str, name: str) -> str:
        """Return the wire that carries an output of a child."""
        return f"\\probe_of_{_NO_WORD.sub('_', cell)}_{name}"

    def _total(self, terms: Sequence[str]) -> str:
        total, *rest = terms
        for term in rest:
            both = self._wire(_COUNT_BITS)
            widths = dict.fromkeys(("A_WIDTH", "B_WIDTH", "Y_WIDTH"), _COUNT_BITS)
            self._cell("$add", {"A_SIGNED": 0, "B_SIGNED": 0, **widths}, {"A": total, "B": term, "Y": both})
            total = both
        return total

    def _wire(self, width: int) -> str:
        name = f"\\probe_wire_{next(self._numbers)}"
        self._wires.append(f"  wire width {width} {name}")
        return name

    def _cell(self, kind: str, parameters: dict[str, int], ports: dict[str, str]) -> None:
        self._body += [f"  cell {kind} \\probe_cell_{next(self._numbers)}",
                       *(f"    parameter \\{name} {value}" for name, value in parameters.items()),
                       *(f"    connect \\{name} {signal}" for name, signal in ports.items()), "  end"]


def _grouped(registers: Sequence[Register]) -> Iterator[list[Register]]:
    """Yield registers together as far as they fit a word of the simulator."""
    group: list[Register] = []
    for register in sorted(registers, key=lambda each: each.width):
        if group and sum(each.width for each in group) + register.width > _GROUP_BITS:
            yield group
            group = []
        group.append(register)
    if group:
        yield group
