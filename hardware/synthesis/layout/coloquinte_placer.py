"""Placement by Coloquinte: cells in rows, ports around them, memories as points among the cells."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.hardware.synthesis.layout.layout_netlist import LayoutNetlist, NetPin
from tilewright.hardware.synthesis.layout.lef import CellOutline, LefError
from tilewright.hardware.synthesis.layout.steiner import Point

__all__ = ["UTILISATION", "CellPlaces", "coloquinte_places"]

UTILISATION = 0.7
"""Share of the rows that cells fill; the rest is for what routing and a clock tree need."""

_UNITS = 100
"""Coloquinte's whole numbers for a µm."""

_EFFORT = 3
"""Of 1 to 9; Coloquinte's own choice."""

_SPREAD = 0.95
"""Share of the rows that cells fill while they are placed, each with a share of the free room at its side. Coloquinte
packs them side by side otherwise, which no router could wire: 13 % less wire in a small lane of an array."""

_STEPS_TOLD = 10


@dataclass(frozen=True, slots=True)
class CellPlaces:
    """Where everything is, in µm; the rows begin at 0, 0.

    Attributes
    ----------
    width, height : float
        Of the rows.
    corners : tuple of Point
        Lower left corner of each cell, and where each memory is.
    pins : tuple of mapping of str to Point
        Each cell's pins.
    ports : mapping of int to Point
        By net.
    """

    width: float
    height: float
    corners: tuple[Point, ...]
    pins: tuple[Mapping[str, Point], ...]
    ports: Mapping[int, Point]

    def pin(self, net: int, pin: NetPin) -> Point:
        """Return where a pin of a net is."""
        if pin.cell is None:
            return self.ports[net]
        return self.pins[pin.cell][pin.pin] if pin.cell < len(self.pins) else self.corners[pin.cell]


def coloquinte_places(netlist: LayoutNetlist, outlines: Mapping[str, CellOutline], say: Callable[[str], None]
                      ) -> CellPlaces:
    """Return a legal placement; ``say`` is told what is under way.

    Raises
    ------
    LefError
        If a cell of the netlist has no outline, or a pin no place in it.
    """
    if missing := sorted({cell.kind for cell in netlist.cells} - set(outlines)):
        raise LefError(f"LEF must have the cells of the netlist, and lacks {', '.join(missing)}")
    sizes = [outlines[cell.kind] for cell in netlist.cells]
    row = max(size.height for size in sizes)
    area = sum(size.width * size.height for size in sizes) / UTILISATION
    rows = math.ceil(math.sqrt(area) / row)
    width, height = float(math.ceil(area / (rows * row))), rows * row
    ports = _around(tuple(netlist.ports), width, height)
    return _placed(netlist, sizes, ports, (width, height, row), say)


def _around(nets: Sequence[int], width: float, height: float) -> dict[int, Point]:
    """Return places for ports: in their order, evenly around the rows."""
    found = {}
    for place, net in enumerate(nets):
        way = 2 * (width + height) * place / len(nets)
        found[net] = ((way, 0.0) if way < width else (width, way - width) if way < width + height else
                      (2 * width + height - way, height) if way < 2 * width + height else
                      (0.0, 2 * (width + height) - way))
    return found


def _placed(netlist: LayoutNetlist, sizes: Sequence[CellOutline], ports: Mapping[int, Point],
            core: tuple[float, float, float], say: Callable[[str], None]) -> CellPlaces:
    """Place in a core of so much width and height, and rows of a height."""
    import coloquinte as cq

    (width, height, row), points = core, len(netlist.memories)
    cells = len(sizes)
    circuit = cq.Circuit(cells + points + len(ports))
    circuit.cell_width = [*(_whole(size.width) for size in sizes), *[1] * points, *[0] * len(ports)]
    circuit.cell_height = [_whole(row)] * (cells + points) + [0] * len(ports)
    circuit.cell_is_fixed = [False] * (cells + points) + [True] * len(ports)
    circuit.cell_is_obstruction = [True] * (cells + points) + [False] * len(ports)
    circuit.cell_x = [0] * (cells + points) + [_whole(x) for x, _ in ports.values()]
    circuit.cell_y = [0] * (cells + points) + [_whole(y) for _, y in ports.values()]
    circuit.cell_row_polarity = [cq.CellRowPolarity.SAME] * (cells + points) + [cq.CellRowPolarity.ANY] * len(ports)
    numbers = {net: cells + points + place for place, net in enumerate(ports)}
    for net, pins in netlist.nets().items():
        offsets = [(0.0, 0.0) if pin.cell is None or pin.cell >= cells else _pin(netlist, sizes, pin) for pin in pins]
        circuit.add_net([numbers[net] if pin.cell is None else pin.cell for pin in pins],
                        [_whole(x) for x, _ in offsets], [_whole(y) for _, y in offsets])
    circuit.setup_rows(cq.Rectangle(0, _whole(width), 0, _whole(height)), _whole(row), True, True)
    circuit.expand_cells_to_density(_SPREAD, 0.0)
    circuit.check()
    steps = iter(range(1, 10**6))

    def stepped(_: object) -> None:
        if (step := next(steps)) % _STEPS_TOLD == 0:
            say(f"Placing, step {step}")

    circuit.place_global(_EFFORT, stepped)
    say("Placing in rows")
    circuit.place_detailed(_EFFORT)
    turned = [(each in (cq.CellOrientation.S, cq.CellOrientation.FN), each in (cq.CellOrientation.S,
               cq.CellOrientation.FS)) for each in circuit.cell_orientation]
    # The free room of a cell is on its right, and on its left where the cell is turned.
    corners = tuple((x / _UNITS + (wide / _UNITS - size.width if across else 0.0), y / _UNITS)
                    for x, y, wide, size, (across, _) in zip(
                        circuit.cell_x, circuit.cell_y, circuit.cell_width, sizes, turned, strict=False))
    places = tuple({name: (left + (size.width - x if across else x), low + (size.height - y if up else y))
                    for name, (x, y) in size.pins.items()}
                   for size, (left, low), (across, up) in zip(sizes, corners, turned, strict=False))
    memories = tuple((circuit.cell_x[cells + place] / _UNITS, circuit.cell_y[cells + place] / _UNITS)
                     for place in range(points))
    return CellPlaces(width, height, (*corners, *memories), places, ports)


def _pin(netlist: LayoutNetlist, sizes: Sequence[CellOutline], pin: NetPin) -> Point:
    assert pin.cell is not None
    cell = netlist.cells[pin.cell]
    if pin.pin not in sizes[pin.cell].pins:
        raise LefError(f"LEF must have a place for pin {pin.pin} of {cell.kind}, and has none")
    return sizes[pin.cell].pins[pin.pin]


def _whole(length: float) -> int:
    return round(length * _UNITS)
