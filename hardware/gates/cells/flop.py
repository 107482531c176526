"""The flip-flop from circuit simulation: clock pin in every state, data input, output up and down, each by itself.

One run of four clock cycles holds everything: D changes while the clock is high, so the first latch takes it when the
clock falls, and the output follows at the next rise. A second copy with D inverted gives the states that the first one
lacks. That logic settles while the clock is high is how energies are shared out; their sum does not hang on it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

from tilewright.hardware.gates.cells.characterise import EARLY, LOADS, SLEWS, SWING, Edge, Grid, mean
from tilewright.hardware.gates.cells.circuit import CircuitDeck, input_source, step
from tilewright.hardware.gates.cells.sky130_cells import FLIP_FLOP, VOLTAGE, source_of

__all__ = ["FlopFigures", "characterise_flop"]

_FIRST, _PERIOD = 0.5, 4.0
"""Nanoseconds: the first rise of the clock, and from one to the next."""
_DATA_AFTER = 1.25
"""When D changes after a rise of the clock, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class FlopFigures:
    """A flip-flop, in the units of `LogicFigures`.

    ``clock[D]`` are energies of the clock pin's rise and fall while D and Q are both 0, or both 1; ``data`` those of
    D's rise and fall while the clock is high and the first latch shut. ``edges`` are Q's: their energy holds what the
    first latch took before, when the clock fell.
    """

    area: float
    leakage: float
    clock_capacitance: float
    data_capacitance: float
    clock: tuple[tuple[float, float], tuple[float, float]]
    data: tuple[float, float]
    edges: tuple[Edge, Edge]


@dataclass(frozen=True, slots=True)
class _FlopCopy:
    number: int
    start: int
    slew: float
    load: float


def characterise_flop() -> FlopFigures:
    """Return the figures of the library's flip-flop.

    Raises
    ------
    CharacterisationError
        If ngspice does not give them.
    """
    source = source_of(FLIP_FLOP)
    deck = CircuitDeck(source, _FIRST + 3.5 * _PERIOD)
    copies = [_place(deck, start, slew, load) for start in (0, 1) for slew, load in product(SLEWS, LOADS)]
    for copy in copies:
        _measure(deck, copy)
    found = deck.run()
    cell = _Flop(found, copies)
    return FlopFigures(
        source.area, mean([found[f"leak{copy.number}"] for copy in copies]) * VOLTAGE * 1e9,
        mean([-found[f"ck{copy.number}"] / VOLTAGE * 1e12 for copy in copies]),
        mean([-found[f"cd{copy.number}"] / VOLTAGE * 1e12 for copy in copies]),
        (cell.clock(0), cell.clock(1)), (cell.data(rises=True), cell.data(rises=False)),
        (cell.edge(rises=True), cell.edge(rises=False)))


def _place(deck: CircuitDeck, start: int, slew: float, load: float) -> _FlopCopy:
    """Place a copy whose D starts at ``start``, changes in the first cycle and changes back in the second."""
    ramp = slew / SWING
    clock = step("low", *((_FIRST + half * _PERIOD / 2, ramp) for half in range(7)))
    data = step("high" if start else "low", *((_FIRST + cycle * _PERIOD + _DATA_AFTER, ramp) for cycle in (0, 1)))
    return _FlopCopy(deck.copy({"CLK": clock, "D": data}, load, "Q"), start, slew, load)


def _windows() -> dict[str, tuple[float, float]]:
    """Return the windows of integration: rise of the clock, change of D, fall of the clock, of each cycle."""
    found: dict[str, tuple[float, float]] = {}
    for cycle in range(4):
        begin = _FIRST + cycle * _PERIOD
        data, fall = begin + _DATA_AFTER - EARLY, begin + _PERIOD / 2 - EARLY
        found |= {f"r{cycle}": (begin - EARLY, data), f"d{cycle}": (data, fall)}
        if cycle < 3:
            found[f"f{cycle}"] = (fall, begin + _PERIOD - EARLY)
    return found


def _measure(deck: CircuitDeck, copy: _FlopCopy) -> None:
    k = copy.number
    for name, (start, stop) in _windows().items():
        deck.charge(f"{name}x{k}", f"vs{k}", start, stop)
    static_rise, first_data = _FIRST + 3 * _PERIOD, _FIRST + _DATA_AFTER
    deck.charge(f"ck{k}", input_source("CLK", k), static_rise - EARLY, static_rise + _PERIOD / 4)
    # D rises after the first rise of the clock where it starts low, after the second where it starts high.
    rises_at = first_data if copy.start == 0 else first_data + _PERIOD
    deck.charge(f"cd{k}", input_source("D", k), rises_at - EARLY, rises_at + _PERIOD / 8)
    for cycle in (1, 2):
        edge = "rise" if (cycle == 1) == (copy.start == 0) else "fall"
        after = _FIRST + cycle * _PERIOD - EARLY
        deck.delay(f"t{cycle}x{k}", f"nclk{k}", "rise", f"o{k}", edge, after)
        deck.slew(f"s{cycle}x{k}", f"o{k}", edge, after)


@dataclass(frozen=True, slots=True)
class _Flop:
    """Measurements by name, and the copies that they are of."""

    found: Mapping[str, float]
    copies: list[_FlopCopy]

    def clock(self, value: int) -> tuple[float, float]:
        """Return the energies of the clock's rise and fall while D and Q are ``value``."""
        still = [copy for copy in self.copies if copy.start == value]
        return mean([self._energy("r3", copy) for copy in still]), mean([self._energy("f2", copy) for copy in still])

    def data(self, *, rises: bool) -> float:
        """Return the energy of D's rise or fall while the clock is high."""
        return mean([self._energy(f"d{0 if (copy.start == 0) == rises else 1}", copy) for copy in self.copies])

    def edge(self, *, rises: bool) -> Edge:
        """Return Q's rise or fall, less what the clock alone costs, with what the first latch took before."""
        def cycle(copy: _FlopCopy) -> int:
            return 1 if (copy.start == 0) == rises else 2

        def energy(copy: _FlopCopy) -> float:
            before, after = (0, 1) if rises else (1, 0)
            # At the clock's fall D is new already and Q is old; the clock alone is taken between the two states.
            fall = self._energy(f"f{cycle(copy) - 1}", copy) - mean([self.clock(before)[1], self.clock(after)[1]])
            rise = self._energy(f"r{cycle(copy)}", copy) - mean([self.clock(before)[0], self.clock(after)[0]])
            return fall + rise - (copy.load * VOLTAGE**2 if rises else 0.0)

        def figure(copy: _FlopCopy, letter: str) -> float:
            return self.found[f"{letter}{cycle(copy)}x{copy.number}"] * 1e9

        return Edge(self._grid(lambda copy: figure(copy, "t")), self._grid(lambda copy: figure(copy, "s")),
                    self._grid(energy))

    def _grid(self, value: Callable[[_FlopCopy], float]) -> Grid:
        return tuple(tuple(mean([value(copy) for copy in self.copies if (copy.slew, copy.load) == (slew, load)])
                           for load in LOADS) for slew in SLEWS)

    def _energy(self, window: str, copy: _FlopCopy) -> float:
        return -self.found[f"{window}x{copy.number}"] * VOLTAGE * 1e12
