"""Liberty: the cells of a library with their functions, capacitances, delays and energies.

The format is that of the Liberty User Guide; read is what power and delays need: groups ``cell``, ``pin``, ``timing``,
``internal_power``, ``ff`` and ``latch``, and look-up tables over input slew and output load.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from tilewright.errors import Error

__all__ = ["Arc", "Cell", "LibertyError", "Library", "LookupTable", "Pin", "Storage", "read_library"]

_TOKEN = re.compile(r'"[^"]*"|[{}();:,]|[^\s{}();:,"]+')
_NOISE = re.compile(r"/\*.*?\*/|\\\r?\n", re.DOTALL)
_NUMBER = re.compile(r"[,\s]+")
_TIMES = {"1ns": 1.0, "100ps": 0.1, "10ps": 0.01, "1ps": 0.001}
_POWERS = {"1mW": 1e6, "1uW": 1e3, "1nW": 1.0, "100pW": 0.1, "10pW": 0.01, "1pW": 1e-3}


class LibertyError(Error, ValueError):
    """A library cannot be read, or lacks data that a calculation needs."""


@dataclass(frozen=True, slots=True)
class LookupTable:
    """A quantity over input slew (rows) and output load (columns), in the library's units; linear between points.

    Outside its axes the nearest edge holds.
    """

    slews: tuple[float, ...]
    loads: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]

    def __call__(self, slew: float, load: float) -> float:
        """Return the value at ``slew`` and ``load``."""
        row, next_row, down = _between(self.slews, slew)
        column, next_column, right = _between(self.loads, load)
        upper = self.values[row][column] * (1 - down) + self.values[next_row][column] * down
        if column == next_column:
            return upper
        return upper * (1 - right) + (self.values[row][next_column] * (1 - down)
                                      + self.values[next_row][next_column] * down) * right


@dataclass(frozen=True, slots=True)
class Arc:
    """The effect of a change of pin ``related`` on an output or, with no related pin, the cost of a pin's own change.

    ``when`` is the state in which it holds, as the library writes it; empty if always.
    """

    related: str
    when: str
    rise: LookupTable | None
    fall: LookupTable | None

    @property
    def tables(self) -> tuple[LookupTable, ...]:
        """Return the tables there are."""
        return tuple(table for table in (self.rise, self.fall) if table is not None)

    def mean(self, slew: float, load: float) -> float:
        """Return the mean of rise and fall."""
        tables = self.tables
        return sum(table(slew, load) for table in tables) / len(tables) if tables else 0.0


@dataclass(frozen=True, slots=True)
class Pin:
    """A pin: ``capacitance`` in pF, arcs in the library's units, energies in pJ."""

    name: str
    is_output: bool
    capacitance: float
    function: str
    is_clock: bool
    delays: tuple[Arc, ...]
    slews: tuple[Arc, ...]
    energies: tuple[Arc, ...]


@dataclass(frozen=True, slots=True)
class Storage:
    """The state of a flip-flop or latch: its variables, the stored value and its controls, as expressions."""

    kind: str
    state: str
    inverse: str
    data: str
    clock: str
    clear: str
    preset: str


@dataclass(frozen=True)
class Cell:
    """A cell: ``area`` in µm², ``leakage`` in nW."""

    name: str
    area: float
    leakage: float
    pins: Mapping[str, Pin]
    storage: Storage | None

    @cached_property
    def inputs(self) -> tuple[Pin, ...]:
        """Return the input pins, in the library's order."""
        return tuple(pin for pin in self.pins.values() if not pin.is_output)

    @cached_property
    def outputs(self) -> tuple[Pin, ...]:
        """Return the output pins, in the library's order."""
        return tuple(pin for pin in self.pins.values() if pin.is_output)


@dataclass(frozen=True)
class Library:
    """A library at one corner; ``nanoseconds`` is its unit of time, ``picofarads`` that of capacitance."""

    name: str
    voltage: float
    nanoseconds: float
    picofarads: float
    cells: Mapping[str, Cell]

    def cell(self, name: str) -> Cell:
        """Return the cell ``name``.

        Raises
        ------
        LibertyError
            If the library has none.
        """
        if name not in self.cells:
            raise LibertyError(f"Library {self.name} must have the cell {name!r}, which the netlist uses")
        return self.cells[name]


@dataclass(slots=True)
class _LibertyGroup:
    """A group as it stands in the file."""

    name: str
    arguments: tuple[str, ...]
    values: dict[str, str] = field(default_factory=dict)
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: "list[_LibertyGroup]" = field(default_factory=list)

    def each(self, *names: str) -> "Iterator[_LibertyGroup]":
        return (group for group in self.groups if group.name in names)


@lru_cache(maxsize=4)
def read_library(path: Path) -> Library:
    """Return the library in the file ``path``.

    Raises
    ------
    LibertyError
        If it is no Liberty file, or in a unit that is not known.
    """
    tokens = _TOKEN.findall(_NOISE.sub(" ", path.read_text(encoding="utf-8", errors="replace")))
    try:
        top = next(_parse(iter(tokens)).each("library"))
    except (StopIteration, RuntimeError) as error:
        raise LibertyError(f"Library must be a Liberty file with one library group, not {path.name!r}") from error
    templates = {group.arguments[0]: group for group in top.each("lu_table_template", "power_lut_template")}
    scale, unit = top.lists.get("capacitive_load_unit", ("1", "pf"))
    picofarads = float(scale) * {"pf": 1.0, "ff": 1e-3}[unit.lower()]
    try:
        nanoseconds = _TIMES[top.values.get("time_unit", "1ns")]
        nanowatts = _POWERS[top.values.get("leakage_power_unit", "1nW")]
    except KeyError as error:
        raise LibertyError(f"Library {path.name!r} must state times and powers in units of "
                           f"{', '.join((*_TIMES, *_POWERS))}, not {error.args[0]!r}") from error
    reader = _CellReader(templates, picofarads, nanowatts)
    return Library(top.arguments[0], float(top.values.get("nom_voltage", "nan")), nanoseconds, picofarads,
                   {group.arguments[0]: reader.cell(group) for group in top.each("cell")})


def _parse(tokens: Iterator[str]) -> _LibertyGroup:
    """Return the groups of a file as children of one without a name."""
    open_groups = [_LibertyGroup("", ())]
    for name in tokens:
        if name == "}":
            open_groups.pop()
        elif name != ";":
            _statement(name, tokens, open_groups)
    return open_groups[0]


def _statement(name: str, tokens: Iterator[str], open_groups: list[_LibertyGroup]) -> None:
    """Read what follows a name: ``: value;``, ``(arguments);`` or ``(arguments) {``, which opens a group."""
    here, separator = open_groups[-1], next(tokens)
    if separator == ":":
        here.values[name] = " ".join(_until(";", tokens)).strip('"')
    elif separator == "(":
        arguments = tuple(token.strip('"') for token in _until(")", tokens) if token != ",")
        end = next(tokens)
        if end == "{":
            group = _LibertyGroup(name, arguments)
            here.groups.append(group)
            open_groups.append(group)
            return
        here.lists[name] = arguments
        if end == "}":  # the last statement of a group may lack its semicolon
            open_groups.pop()


def _until(end: str, tokens: Iterator[str]) -> list[str]:
    """Return the tokens before ``end``, and take that too."""
    found = []
    while (token := next(tokens)) != end:
        found.append(token)
    return found


@dataclass(frozen=True, slots=True)
class _CellReader:
    """Makes cells of groups, in pF, pJ and nW."""

    templates: Mapping[str, _LibertyGroup]
    picofarads: float
    nanowatts: float

    def cell(self, group: _LibertyGroup) -> Cell:
        pins = {pin.name: pin for pin in (self._pin(each) for each in group.each("pin"))}
        storage = next((_storage(each) for each in group.each("ff", "latch")), None)
        return Cell(group.arguments[0], float(group.values.get("area", 0)),
                    float(group.values.get("cell_leakage_power", 0)) * self.nanowatts, pins, storage)

    def _pin(self, group: _LibertyGroup) -> Pin:
        delays, slews, energies = [], [], []
        for timing in group.each("timing"):
            related = timing.values.get("related_pin", "")
            if timing.values.get("timing_type", "combinational") in ("combinational", "rising_edge", "falling_edge"):
                delays.append(self._arc(timing, related, "cell_rise", "cell_fall"))
                slews.append(self._arc(timing, related, "rise_transition", "fall_transition"))
        for power in group.each("internal_power"):
            # The unit of energy is that of capacitance times volt squared: pJ for pF.
            energies.append(self._arc(power, power.values.get("related_pin", ""), "rise_power", "fall_power", "power",
                                      factor=self.picofarads))
        return Pin(group.arguments[0], group.values.get("direction") == "output",
                   float(group.values.get("capacitance", 0)) * self.picofarads, group.values.get("function", ""),
                   group.values.get("clock") == "true", tuple(delays), tuple(slews), tuple(energies))

    def _arc(self, group: _LibertyGroup, related: str, rise: str, fall: str, both: str = "",
             factor: float = 1.0) -> Arc:
        tables = {each.name: self._table(each, factor) for each in group.groups if each.name in (rise, fall, both)}
        one = tables.get(both)
        return Arc(related, group.values.get("when", ""), tables.get(rise, one), tables.get(fall, one))

    def _table(self, group: _LibertyGroup, factor: float) -> LookupTable:
        template = self.templates.get(group.arguments[0]) if group.arguments else None
        values = np.array(_numbers(group.lists["values"])) * factor
        axes: dict[str, tuple[float, ...]] = {}
        order = []
        for number in ("1", "2"):
            variable = template.values.get(f"variable_{number}", "") if template else ""
            index = group.lists.get(f"index_{number}") or (template.lists.get(f"index_{number}") if template else None)
            if variable and index:
                name = "load" if "capacitance" in variable else "slew"
                axes[name] = tuple(_numbers(index))
                order.append(name)
        shaped = values.reshape([len(axes[name]) for name in order]) if order else values.reshape(1, 1)
        if order == ["load"]:
            shaped = shaped[None, :]
        elif order == ["slew"]:
            shaped = shaped[:, None]
        elif order == ["load", "slew"]:
            shaped = shaped.T
        return LookupTable(axes.get("slew", (0.0,)), axes.get("load", (0.0,)), tuple(map(tuple, shaped.tolist())))


def _storage(group: _LibertyGroup) -> Storage:
    values = group.values
    kind = group.name
    data, clock = ("next_state", "clocked_on") if kind == "ff" else ("data_in", "enable")
    return Storage(kind, group.arguments[0], group.arguments[1], values.get(data, ""), values.get(clock, ""),
                   values.get("clear", ""), values.get("preset", ""))


def _numbers(texts: tuple[str, ...]) -> list[float]:
    return [float(number) for text in texts for number in _NUMBER.split(text.strip()) if number]


def _between(axis: tuple[float, ...], place: float) -> tuple[int, int, float]:
    """Return the neighbours of ``place`` on an axis, and how far it lies from the first to the second."""
    if len(axis) == 1 or place <= axis[0]:
        return 0, 0, 0.0
    if place >= axis[-1]:
        return len(axis) - 1, len(axis) - 1, 0.0
    upper = next(index for index, each in enumerate(axis) if each >= place)
    return upper - 1, upper, (place - axis[upper - 1]) / (axis[upper] - axis[upper - 1])
