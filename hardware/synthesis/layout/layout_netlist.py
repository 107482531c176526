"""A mapped netlist as placement and timing see it: cells, memories and ports, and the pins of each net.

In what other programs read, cell 5 is ``g5`` and net 7 is ``n7``: names of Yosys need quoting in Verilog, and another
quoting in SPEF.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LayoutCell", "LayoutNetlist", "NetPin", "layout_netlist"]

_Bit = int | str
"""A net's number in Yosys' JSON, or a constant."""

_CONSTANTS = {"0": "1'b0", "1": "1'b1"}


@dataclass(frozen=True, slots=True)
class LayoutCell:
    """A cell or a memory: its name, its type, and the net at each pin; pins of several bits are ``pin[bit]``."""

    name: str
    kind: str
    nets: Mapping[str, _Bit]


@dataclass(frozen=True, slots=True)
class NetPin:
    """A pin of a net: the number of its cell, or nothing for a port of the design, and its name."""

    cell: int | None
    pin: str


@dataclass(frozen=True, slots=True)
class LayoutNetlist:
    """A flat module; cells of the library first, memories after them.

    Attributes
    ----------
    cells, memories : tuple of LayoutCell
    ports : mapping of int to bool
        Nets of ports, and whether they are inputs; the clock's is not among them.
    clock : int
        The clock's net.
    """

    cells: tuple[LayoutCell, ...]
    memories: tuple[LayoutCell, ...]
    ports: Mapping[int, bool]
    clock: int

    def nets(self) -> dict[int, list[NetPin]]:
        """Return the pins of each net that has two or more; the clock's and constants are left out."""
        found: dict[int, list[NetPin]] = defaultdict(list)
        for number, cell in enumerate((*self.cells, *self.memories)):
            for pin, net in cell.nets.items():
                if isinstance(net, int):
                    found[net].append(NetPin(number, pin))
        for net in self.ports:
            found[net].append(NetPin(None, ""))
        return {net: pins for net, pins in sorted(found.items()) if net != self.clock and len(pins) > 1}

    def verilog(self, top: str) -> str:
        """Return the cells as Verilog, with ``clock`` for its net; what memories give is left open."""
        used = {net for cell in self.cells for net in cell.nets.values() if isinstance(net, int)}
        lines = [f"module {top} ({', '.join(['clock', *(f'n{net}' for net in self.ports)])});", "input clock;",
                 *(f"{'input' if given else 'output'} n{net};" for net, given in self.ports.items()),
                 *(f"wire n{net};" for net in sorted(used - set(self.ports) - {self.clock}))]
        for number, cell in enumerate(self.cells):
            pins = ", ".join(f".{pin}({self._named(net)})" for pin, net in cell.nets.items())
            lines.append(f"{cell.kind} g{number} ({pins});")
        return "\n".join([*lines, "endmodule", ""])

    def _named(self, net: _Bit) -> str:
        if isinstance(net, str):
            return _CONSTANTS.get(net, _CONSTANTS["0"])
        return "clock" if net == self.clock else f"n{net}"


def layout_netlist(path: Path, top: str, clock: str, is_memory: Callable[[str], bool]) -> LayoutNetlist:
    """Return module ``top`` of a file of Yosys' JSON; ``is_memory`` tells of a type whether it is a macro."""
    with path.open(encoding="utf-8") as file:
        module = json.load(file)["modules"][top]
    cells: list[LayoutCell] = []
    memories: list[LayoutCell] = []
    for name, cell in module["cells"].items():
        if cell["type"].startswith("$"):  # $scopeinfo: where a module was
            continue
        nets = {pin if len(bits) == 1 else f"{pin}[{place}]": bit
                for pin, bits in cell["connections"].items() for place, bit in enumerate(bits)}
        (memories if is_memory(cell["type"]) else cells).append(LayoutCell(name, cell["type"], nets))
    ports: dict[int, bool] = {}
    for port in sorted(module["ports"].values(), key=lambda each: str(each["direction"])):
        # Inputs come first: a net that comes in and goes out at once is an input.
        ports.update({bit: port["direction"] == "input" for bit in port["bits"]
                      if isinstance(bit, int) and bit not in ports})
    clock_net = module["ports"][clock]["bits"][0]
    ports.pop(clock_net)
    return LayoutNetlist(tuple(cells), tuple(memories), ports, clock_net)
