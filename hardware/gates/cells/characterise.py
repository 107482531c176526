"""Characterisation of a cell by circuit simulation: capacitances, delays, slews, energies, leakage.

Energy of a transition is what the supply delivers, less C V² where the load is charged: the rest is lost in the cell.
The charge of an input counts for its net, as capacitance. A transition is simulated in every state of the other inputs;
at all slews and loads in the first that matters, whose tables are then moved to the mean of all states.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

from tilewright.hardware.gates.cells.circuit import GROUND, HIGH, CircuitDeck, input_source, step
from tilewright.hardware.gates.cells.sky130_cells import VOLTAGE, Logic, source_of
from tilewright.hardware.gates.cells.truth_tables import truth_table

__all__ = ["EARLY", "LOADS", "SLEWS", "SWING", "Edge", "Grid", "LogicFigures", "characterise", "mean"]

SLEWS = (0.03, 0.20)
"""Nanoseconds from 20 to 80 % of the swing."""
LOADS = (0.002, 0.030)
"""Picofarads."""
SWING = 0.6
"""The share of the swing that a slew measures."""

Grid = tuple[tuple[float, ...], ...]
"""By slew, then by load."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One direction of an output: delay and slew in nanoseconds, energy in picojoules."""

    delay: Grid
    slew: Grid
    energy: Grid


@dataclass(frozen=True, slots=True)
class LogicFigures:
    """A combinational cell. Areas in µm², leakage in nW, capacitance in pF, hidden energies in pJ.

    ``edges[pin]`` are rise and fall of the output because of ``pin``; ``unateness[pin]`` is Liberty's word for which
    edge causes which. ``hidden[pin]`` are energies of the input's rise and fall while the output stays.
    """

    area: float
    leakage: float
    capacitance: Mapping[str, float]
    edges: Mapping[str, tuple[Edge, Edge]]
    unateness: Mapping[str, str]
    hidden: Mapping[str, tuple[float, float]]


_START, _HALF = 0.3, 1.6
"""Nanoseconds: when the input rises, and how long afterwards it falls."""
EARLY = 0.05
"""Windows of integration open this much before an edge."""


@dataclass(frozen=True, slots=True)
class _LogicCopy:
    number: int
    pin: str
    others: int
    slew: float
    load: float
    first: bool
    result: tuple[int, int]


def characterise(cell: Logic) -> LogicFigures:
    """Return the figures of a combinational cell.

    Raises
    ------
    CharacterisationError
        If ngspice does not give them.
    """
    source = source_of(cell.name)
    deck = CircuitDeck(source, _START + 2 * _HALF)
    table = truth_table(cell.function, cell.inputs)
    copies = [copy for pin in cell.inputs for copy in _copies(deck, cell, table, pin)]
    for copy in copies:
        _measure(deck, copy)
    found = deck.run()
    edges, hidden, unateness = {}, {}, {}
    for pin in cell.inputs:
        mine = [copy for copy in copies if copy.pin == pin]
        moving = [copy for copy in mine if copy.result[0] != copy.result[1]]
        still = [copy for copy in mine if copy.result[0] == copy.result[1]]
        edges[pin] = _edge(found, moving, rises=True), _edge(found, moving, rises=False)
        hidden[pin] = (mean([_supply(found, copy, 1) for copy in still]),
                       mean([_supply(found, copy, 2) for copy in still]))
        falls = {copy.result == (1, 0) for copy in moving}
        unateness[pin] = "non_unate" if len(falls) == 2 else "negative_unate" if falls == {True} else "positive_unate"
    capacitance = {pin: mean([-found[f"c{copy.number}"] / VOLTAGE * 1e12 for copy in copies if copy.pin == pin])
                   for pin in cell.inputs}
    leakage = mean([found[f"leak{copy.number}"] for copy in copies]) * VOLTAGE * 1e9
    return LogicFigures(source.area, leakage, capacitance, edges, unateness, hidden)


def _copies(deck: CircuitDeck, cell: Logic, table: int, pin: str) -> list[_LogicCopy]:
    """Place a copy for each state of the other inputs, and for each slew and load in the first that matters."""
    place = cell.inputs.index(pin)
    copies: list[_LogicCopy] = []
    complete = False
    for others in range(1 << len(cell.inputs)):
        if others >> place & 1:
            continue
        before, after = table >> others & 1, table >> (others | 1 << place) & 1
        matters = before != after
        points = list(product(SLEWS, LOADS)) if matters and not complete else [(SLEWS[0], LOADS[0])]
        for slew, load in points:
            pins = {name: HIGH if others >> index & 1 else GROUND for index, name in enumerate(cell.inputs)}
            pins[pin] = step("low", (_START, slew / SWING), (_START + _HALF, slew / SWING))
            number = deck.copy(pins, load, cell.output)
            copies.append(_LogicCopy(number, pin, others, slew, load, matters and not complete, (before, after)))
        complete = complete or matters
    return copies


def _measure(deck: CircuitDeck, copy: _LogicCopy) -> None:
    k, turn = copy.number, _START + _HALF - EARLY
    deck.charge(f"q1x{k}", f"vs{k}", _START - EARLY, turn)
    deck.charge(f"q2x{k}", f"vs{k}", turn, _START + 2 * _HALF)
    deck.charge(f"c{k}", input_source(copy.pin, k), _START - EARLY, turn)
    if copy.result[0] != copy.result[1]:
        for half, edge, after in ((1, "rise", _START - EARLY), (2, "fall", turn)):
            effect = edge if copy.result == (0, 1) else {"rise": "fall", "fall": "rise"}[edge]
            deck.delay(f"d{half}x{k}", f"n{copy.pin}{k}".lower(), edge, f"o{k}", effect, after)
            deck.slew(f"s{half}x{k}", f"o{k}", effect, after)


def _edge(found: Mapping[str, float], copies: list[_LogicCopy], *, rises: bool) -> Edge:
    """Return the output's rise or fall: tables of the state with all points, times the mean ratio of all states."""
    def energy(copy: _LogicCopy) -> float:
        return _supply(found, copy, _half(copy, rises)) - (copy.load * VOLTAGE**2 if rises else 0.0)

    def figure(copy: _LogicCopy, letter: str) -> float:
        return found[f"{letter}{_half(copy, rises)}x{copy.number}"] * 1e9

    first = {(copy.slew, copy.load): copy for copy in copies if copy.first}
    near = first[SLEWS[0], LOADS[0]]
    states = [near, *(copy for copy in copies if not copy.first)]

    def grid(value: Callable[[_LogicCopy], float], ratio: float) -> Grid:
        return tuple(tuple(value(first[slew, load]) * ratio for load in LOADS) for slew in SLEWS)

    ratios = [mean([value(copy) for copy in states]) / value(near)
              for value in (lambda copy: figure(copy, "d"), lambda copy: figure(copy, "s"))]
    extra = mean([energy(copy) for copy in states]) - energy(near)
    return Edge(grid(lambda copy: figure(copy, "d"), ratios[0]), grid(lambda copy: figure(copy, "s"), ratios[1]),
                grid(lambda copy: energy(copy) + extra, 1.0))


def _half(copy: _LogicCopy, rises: bool) -> int:
    """Return which half of the run holds the output's rise, or its fall: in the first the input rises."""
    return 1 if (copy.result == (0, 1)) == rises else 2


def _supply(found: Mapping[str, float], copy: _LogicCopy, half: int) -> float:
    return -found[f"q{half}x{copy.number}"] * VOLTAGE * 1e12


def mean(values: list[float]) -> float:
    """Return the mean; zero of none."""
    return sum(values) / len(values) if values else 0.0
