"""A mapped netlist: cells of a library and the nets between them, with memories and chosen modules cut out.

What a memory or such a module gives is an input of the netlist, what it takes is an output. A clock gate of `mapping`
is taken apart into the inverter, latch and AND that it is made of.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.hardware.gates.cells.liberty import Cell, LibertyError, Library
from tilewright.hardware.gates.mapping import GATE_CELL

__all__ = ["HIGH", "LOW", "Bit", "Instance", "Netlist", "read_netlist"]

LOW, HIGH = 0, 1
"""Nets that never change."""

_MEMORY = "$mem_v2"
_MEMORY_GIVES = "RD_DATA"
_MEMORY_CLOCKS = ("RD_CLK", "WR_CLK")

Bit = tuple[str, int]
"""A bit of a signal of the source: its name from the block down, levels joined by dots, and its number."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A cell in the netlist and the net at each of its pins; ``ideal``: in the clock's tree, without delay."""

    name: str
    cell: Cell
    nets: Mapping[str, int]
    ideal: bool = False


@dataclass(frozen=True, slots=True)
class Netlist:
    """Instances and nets; nets are numbered, ``LOW`` and ``HIGH`` are constant.

    Attributes
    ----------
    nets : int
        How many there are.
    clock : int
        The net of the clock.
    inputs, outputs : tuple of (net, Bit)
        Borders, ports and memories alike; the clock is not among them.
    names : dict of int to tuple of Bit
        Name of a net in the source.
    """

    name: str
    library: Library
    instances: tuple[Instance, ...]
    nets: int
    clock: int
    inputs: tuple[tuple[int, tuple[Bit, ...]], ...]
    outputs: tuple[tuple[int, tuple[Bit, ...]], ...]
    names: Mapping[int, tuple[Bit, ...]]

    @property
    def flops(self) -> tuple[Instance, ...]:
        """Return the flip-flops."""
        return tuple(each for each in self.instances if each.cell.storage and each.cell.storage.kind == "ff")

    @property
    def latches(self) -> tuple[Instance, ...]:
        """Return the latches, those of clock gates."""
        return tuple(each for each in self.instances if each.cell.storage and each.cell.storage.kind == "latch")

    @property
    def area(self) -> float:
        """Area of all cells in µm²; memories are not in it."""
        return sum(each.cell.area for each in self.instances)

    @property
    def leakage(self) -> float:
        """Leakage of all cells in nW."""
        return sum(each.cell.leakage for each in self.instances)


def read_netlist(path: Path, top: str, library: Library, clock: str = "clk") -> Netlist:
    """Return the netlist of module ``top`` in Yosys' JSON.

    Raises
    ------
    LibertyError
        If it uses a cell that the library lacks.
    """
    modules = json.loads(path.read_text())["modules"]
    module = modules[top]
    numbers = _NetNumbers()
    clock_net = numbers.net(module["ports"][clock]["bits"][0])
    names = _source_names(module, numbers)
    reader = _NetlistReader(library, numbers, clock_net, frozenset(modules))
    for name, port in module["ports"].items():
        reader.add_border(port["direction"] == "input", name, port["bits"])
    for name, cell in module["cells"].items():
        reader.add_cell(name, cell)
    return Netlist(top, library, tuple(reader.instances), numbers.count, clock_net,
                   tuple((net, names.get(net) or (bit,)) for net, bit in reader.inputs.items()),
                   tuple((net, names.get(net) or (bit,)) for net, bit in reader.outputs.items()), names)


@dataclass(slots=True)
class _NetNumbers:
    """Numbers nets in the order in which they are met."""

    numbers: dict[int | str, int] = field(default_factory=lambda: {"0": LOW, "1": HIGH, "x": LOW})
    count: int = 2

    def net(self, bit: int | str) -> int:
        if bit not in self.numbers:
            self.numbers[bit] = self.count
            self.count += 1
        return self.numbers[bit]


def _source_names(module: Mapping[str, Any], numbers: _NetNumbers) -> dict[int, tuple[Bit, ...]]:
    """Return what the source calls each net."""
    names: dict[int, list[Bit]] = {}
    for name, entry in module["netnames"].items():
        if not entry["hide_name"]:
            for index, bit in enumerate(entry["bits"]):
                names.setdefault(numbers.net(bit), []).append((name, index))
    return {net: tuple(bits) for net, bits in names.items()}


@dataclass(slots=True)
class _NetlistReader:
    """Collects the instances and borders of a module in Yosys' JSON; ``cut`` are modules that are left out of it."""

    library: Library
    numbers: _NetNumbers
    clock: int
    cut: frozenset[str]
    instances: list[Instance] = field(default_factory=list)
    inputs: dict[int, Bit] = field(default_factory=dict)
    outputs: dict[int, Bit] = field(default_factory=dict)

    def add_border(self, is_input: bool, name: str, bits: Iterable[int | str]) -> None:
        """Add the bits of a port, or of a pin of what is left out, but for constants and the clock."""
        border = self.inputs if is_input else self.outputs
        for index, bit in enumerate(bits):
            net = self.numbers.net(bit)
            if net not in (LOW, HIGH, self.clock):
                border[net] = name, index

    def add_cell(self, name: str, cell: Mapping[str, Any]) -> None:
        """Add a cell: of the library, a clock gate, or one that is left out, whose pins are borders."""
        kind = cell["type"]
        pins = {pin: [self.numbers.net(bit) for bit in bits] for pin, bits in cell["connections"].items()}
        if kind == GATE_CELL:
            self.instances += self.clock_gate(name, {pin: nets[0] for pin, nets in pins.items()})
        elif kind == _MEMORY or kind in self.cut:
            directions = cell.get("port_directions") or {_MEMORY_GIVES: "output"}
            for pin, bits in cell["connections"].items():
                if pin not in _MEMORY_CLOCKS:
                    self.add_border(directions.get(pin) == "output", f"{name}.{pin}", bits)
        else:
            self.instances.append(Instance(name, self.library.cell(kind), {pin: nets[0] for pin, nets in pins.items()}))

    def clock_gate(self, name: str, pins: Mapping[str, int]) -> list[Instance]:
        """Return the cells of a clock gate: the enable passes the latch while the clock is low."""
        low, kept = self.numbers.net(f"{name}.low"), self.numbers.net(f"{name}.kept")
        inverter, latch, both = (self.library.cell(each) for each in ("INVX1", "LATCH", "AND2X2"))
        if latch.storage is None or latch.storage.clock != "CLK":
            raise LibertyError(f"Cell LATCH of {self.library.name} must be open while CLK is high, "
                               f"not {latch.storage!r}")
        return [Instance(f"{name}.inverter", inverter, {"A": pins["CLK"], "Y": low}, ideal=True),
                Instance(f"{name}.latch", latch, {"D": pins["CE"], "CLK": low, "Q": kept}),
                Instance(f"{name}.and", both, {"A": kept, "B": pins["CLK"], "Y": pins["GCLK"]}, ideal=True)]
