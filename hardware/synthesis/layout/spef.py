"""SPEF, IEEE 1481: each net's wires as a tree of resistances, half of an edge's capacitance at either end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["SpefEnd", "SpefNet", "spef"]

_HEADER = """\
*SPEF "IEEE 1481-1998"
*DESIGN "{design}"
*DATE "-"
*VENDOR "-"
*PROGRAM "tilewright"
*VERSION "1"
*DESIGN_FLOW "PLACED, NOT ROUTED"
*DIVIDER /
*DELIMITER :
*BUS_DELIMITER [ ]
*T_UNIT 1 NS
*C_UNIT 1 PF
*R_UNIT 1 OHM
*L_UNIT 1 HENRY
"""


@dataclass(frozen=True, slots=True)
class SpefEnd:
    """The end of a wire: a pin of a cell, or a port of the design, which has the net's name."""

    cell: str
    pin: str
    drives: bool

    def named(self, net: str) -> str:
        """Return it as SPEF names it."""
        return f"{self.cell}:{self.pin}" if self.cell else net


@dataclass(frozen=True, slots=True)
class SpefNet:
    """A net: its ends, and its edges as (node, node, pF, Ω); nodes from the number of ends on are within the wire.

    A port drives its net if it is an input of the design.
    """

    name: str
    ends: tuple[SpefEnd, ...]
    edges: tuple[tuple[int, int, float, float], ...]


def spef(design: str, nets: Sequence[SpefNet]) -> str:
    """Return the file."""
    return "".join([_HEADER.format(design=design), *map(_net, nets)])


def _net(net: SpefNet) -> str:
    return "\n".join(["", *_lines(net), "*END", ""])


def _lines(net: SpefNet) -> Iterator[str]:
    nodes: dict[int, float] = {}
    for a, b, capacitance, _ in net.edges:
        for node in (a, b):
            nodes[node] = nodes.get(node, 0.0) + capacitance / 2
    names = [end.named(net.name) for end in net.ends]
    names += [f"{net.name}:{node}" for node in range(len(names), max(nodes, default=0) + 1)]
    yield f"*D_NET {net.name} {sum(nodes.values()):.6g}"
    yield "*CONN"
    for end, name in zip(net.ends, names, strict=False):
        # A port is seen from outside: what drives the net is an input of the design.
        yield f"*I {name} {'O' if end.drives else 'I'}" if end.cell else f"*P {name} {'I' if end.drives else 'O'}"
    yield "*CAP"
    for number, (node, capacitance) in enumerate(sorted(nodes.items()), start=1):
        yield f"{number} {names[node]} {capacitance:.6g}"
    yield "*RES"
    for number, (a, b, _, resistance) in enumerate(net.edges, start=1):
        yield f"{number} {names[a]} {names[b]} {resistance:.6g}"
