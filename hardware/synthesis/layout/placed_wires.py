"""Wires of a placed netlist: what each net's tree of wires has, as SPEF and as figures of each driver."""

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.hardware.gates.cells.liberty import Library
from tilewright.hardware.synthesis.layout.coloquinte_placer import CellPlaces
from tilewright.hardware.synthesis.layout.layout_netlist import LayoutNetlist, NetPin
from tilewright.hardware.synthesis.layout.spef import SpefEnd, SpefNet
from tilewright.hardware.synthesis.layout.steiner import wire_tree
from tilewright.hardware.synthesis.layout.wire_rules import WireRules

__all__ = ["WiredNet", "wired_nets"]


@dataclass(frozen=True, slots=True)
class WiredNet:
    """A net with its wires.

    Attributes
    ----------
    driver : int or None
        Number of the cell that drives it; nothing for a port or a memory.
    sinks : int
        Pins of cells that it drives.
    pin_pf, wire_pf : float
        Capacitance of those pins, and of the wires, with coupling.
    length_um : float
    spef : SpefNet
        Of cells and ports alone: a memory's wire hangs on the net as a node.
    """

    driver: int | None
    sinks: int
    pin_pf: float
    wire_pf: float
    length_um: float
    spef: SpefNet


def wired_nets(netlist: LayoutNetlist, places: CellPlaces, library: Library, rules: WireRules) -> Iterator[WiredNet]:
    """Yield every net but the clock's."""
    for net, pins in netlist.nets().items():
        cells = [pin for pin in pins if pin.cell is None or pin.cell < len(netlist.cells)]
        ordered = cells + [pin for pin in pins if pin not in cells]
        tree = wire_tree([places.pin(net, pin) for pin in ordered])
        edges = tuple((a, b, rules.capacitance(*span), rules.resistance(*span))
                      for (a, b), span in zip(tree.edges, tree.spans(), strict=True))
        sinks = [pin for pin in cells if pin.cell is not None and not _drives(netlist, library, net, pin)]
        driver = next((pin.cell for pin in cells if pin.cell is not None and _drives(netlist, library, net, pin)), None)
        ends = tuple(SpefEnd("" if pin.cell is None else f"g{pin.cell}", pin.pin, _drives(netlist, library, net, pin))
                     for pin in cells)
        yield WiredNet(driver, len(sinks), sum(_load(netlist, library, pin) for pin in sinks),
                       sum(each[2] for each in edges), tree.length, SpefNet(f"n{net}", ends, edges))


def _drives(netlist: LayoutNetlist, library: Library, net: int, pin: NetPin) -> bool:
    """Tell whether a pin of a cell or a port drives its net."""
    if pin.cell is None:
        return netlist.ports[net]
    return library.cell(netlist.cells[pin.cell].kind).pins[pin.pin].is_output


def _load(netlist: LayoutNetlist, library: Library, pin: NetPin) -> float:
    assert pin.cell is not None
    return library.cell(netlist.cells[pin.cell].kind).pins[pin.pin].capacitance
