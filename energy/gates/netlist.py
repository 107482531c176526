"""A mapped netlist: cells of a library and the nets between them, with memories and chosen modules cut out.

What a memory or such a module gives is an input of the netlist, what it takes is an output. A clock gate of `mapping`
is taken apart into the inverter, latch and AND that it is made of.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.energy.gates.cells.liberty import Cell, LibertyError, Library
from tilewright.energy.gates.mapping import GATE_CELL

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
        What the source calls a net.
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
    numbers: dict[int | str, int] = {"0": LOW, "1": HIGH, "x": LOW}
    reader = _NetlistReader(numbers, library)
    clock_net = reader.net(module["ports"][clock]["bits"][0])
    names: dict[int, list[Bit]] = {}
    for name, entry in module["netnames"].items():
        if not entry["hide_name"]:
            for index, bit in enumerate(entry["bits"]):
                names.setdefault(reader.net(bit), []).append((name, index))
    inputs: list[tuple[int, Bit]] = []
    outputs: list[tuple[int, Bit]] = []
    for name, port in module["ports"].items():
        for index, bit in enumerate(port["bits"]):
            net = reader.net(bit)
            if net not in (LOW, HIGH, clock_net):
                (inputs if port["direction"] == "input" else outputs).append((net, (name, index)))
    instances: list[Instance] = []
    for name, cell in module["cells"].items():
        pins = {pin: [reader.net(bit) for bit in bits] for pin, bits in cell["connections"].items()}
        if cell["type"] == GATE_CELL:
            instances += reader.clock_gate(name, {pin: nets[0] for pin, nets in pins.items()})
        elif cell["type"] == _MEMORY or cell["type"] in modules:
            directions = cell.get("port_directions") or {_MEMORY_GIVES: "output"}
            for pin, nets in pins.items():
                border = inputs if directions.get(pin) == "output" else outputs
                border += [(net, (f"{name}.{pin}", index)) for index, net in enumerate(nets)
                           if net not in (LOW, HIGH, clock_net) and pin not in _MEMORY_CLOCKS]
        else:
            instances.append(Instance(name, library.cell(cell["type"]), {pin: nets[0] for pin, nets in pins.items()}))
    known = {net: tuple(bits) for net, bits in names.items()}
    return Netlist(top, library, tuple(instances), reader.count, clock_net,
                   tuple((net, known.get(net) or (bit,)) for net, bit in dict(inputs).items()),
                   tuple((net, known.get(net) or (bit,)) for net, bit in dict(outputs).items()), known)


@dataclass(slots=True)
class _NetlistReader:
    """Numbers nets, and knows the library's simplest cells."""

    numbers: dict[int | str, int]
    library: Library
    count: int = 2

    def net(self, bit: int | str) -> int:
        if bit not in self.numbers:
            self.numbers[bit] = self.count
            self.count += 1
        return self.numbers[bit]

    def clock_gate(self, name: str, pins: Mapping[str, int]) -> list[Instance]:
        """Return the cells of a clock gate: the enable passes the latch while the clock is low."""
        low, kept = self.net(f"{name}.low"), self.net(f"{name}.kept")
        inverter, latch, both = (self._cell(each) for each in ("INVX1", "LATCH", "AND2X2"))
        if latch.storage is None or latch.storage.clock != "CLK":
            raise LibertyError(f"Cell LATCH of {self.library.name} must be open while CLK is high, "
                               f"not {latch.storage!r}")
        return [Instance(f"{name}.inverter", inverter, {"A": pins["CLK"], "Y": low}, ideal=True),
                Instance(f"{name}.latch", latch, {"D": pins["CE"], "CLK": low, "Q": kept}),
                Instance(f"{name}.and", both, {"A": kept, "B": pins["CLK"], "Y": pins["GCLK"]}, ideal=True)]

    def _cell(self, name: str) -> Cell:
        return self.library.cell(name)
