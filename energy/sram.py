"""Static RAM by size and port: a table of points at one node, read between its points, times a technology's factor.

The points are CACTI's (`tilewright calibrate --tech sram` writes ``energy/technology/sram.toml``); a technology says
which of its nodes it takes and by what it is scaled.
"""

import math
import tomllib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.energy.prices import Price, TechnologyEntry, TechnologyError, number, read_entry

__all__ = [
    "COLUMNS", "EXTENSION", "TABLE", "Sram", "SramPoint", "SramTable", "parse_tables", "read_sram", "sram_tables",
]

TABLE = Path(__file__).parent / "technology" / "sram.toml"
EXTENSION = 4.0
"""The factor by which a table is extrapolated beyond its smallest and largest point, at most."""

_QUANTITIES = ("read_pJ", "write_pJ", "leakage_uW", "area_um2")
_SCALES = ("energy", "leakage", "area")
COLUMNS = ("bytes", "bits", *_QUANTITIES)
_PICOJOULES_PER_MICROWATT_NANOSECOND = 1e-3


@dataclass(frozen=True, slots=True)
class SramPoint:
    """One macro: energy of a read and a write in picojoules, leakage in microwatts, area in square micrometres."""

    read_pj: float
    write_pj: float
    leakage_uw: float
    area_um2: float


@dataclass(frozen=True, slots=True)
class SramTable:
    """Macros with one read-write port at one node: for each width of ``bits`` its points, by size in bytes."""

    name: str
    node: str
    source: str
    bits: tuple[int, ...]
    points: tuple[Mapping[int, SramPoint], ...]

    def macro(self, size: int, bits: int) -> SramPoint:
        """Return the macro of ``size`` bytes with a port of ``bits``: power laws between neighbouring points.

        Outside the table the power law of the nearest two points goes on, up to ``EXTENSION`` times. Of a macro with
        fewer bytes still the price is that of the least one so reached: nobody makes a smaller one.

        Raises
        ------
        TechnologyError
            If the macro lies further outside.
        """
        self._reaches("bits", bits, self.bits, size, bits)
        lower, share = _place(self.bits, bits)
        narrow, wide = (self._at(row, size, bits) for row in self.points[lower:lower + 2])
        return _between(narrow, wide, share)

    def _at(self, row: Mapping[int, SramPoint], size: int, bits: int) -> SramPoint:
        sizes = tuple(row)
        size = max(size, math.ceil(sizes[0] / EXTENSION))
        self._reaches("bytes", size, sizes, size, bits)
        lower, share = _place(sizes, size)
        return _between(row[sizes[lower]], row[sizes[lower + 1]], share)

    def _reaches(self, unit: str, value: int, known: Sequence[int], size: int, bits: int) -> None:
        low, high = known[0] / EXTENSION, known[-1] * EXTENSION
        if not low <= value <= high:
            raise TechnologyError(f"Static RAM of {size} bytes with a port of {bits} bits must have {low:g} to "
                                  f"{high:g} {unit}: table {self.name} reaches no further")


@dataclass(frozen=True, slots=True)
class Sram:
    """Static RAM of a technology: a table, and the factors from its node to this one, each with its own range."""

    table: SramTable
    energy: TechnologyEntry
    leakage: TechnologyEntry
    area: TechnologyEntry

    def price(self, event: str, size: int, bits: int) -> Price:
        """Return the price of a ``read`` or ``write``, or of a nanosecond of leakage (``leakage_ns``)."""
        macro = self.table.macro(size, bits)
        if event == "leakage_ns":
            return self.leakage.price(macro.leakage_uw * _PICOJOULES_PER_MICROWATT_NANOSECOND)
        return self.energy.price(macro.read_pj if event == "read" else macro.write_pj)

    def area_um2(self, size: int, bits: int) -> float:
        """Return the area of a memory in square micrometres: of several macros where no one has so wide a port."""
        macros = -(-bits // self.table.bits[-1])
        return macros * self.table.macro(-(-size // macros), -(-bits // macros)).area_um2 * self.area.value


def read_sram(data: Mapping[str, Any]) -> Sram:
    """Return what the entry ``[sram]`` of a technology file says: ``table``, and energy, leakage and area as scales.

    Raises
    ------
    TechnologyError
        If it names a table that there is not, or lacks anything that an entry must have.
    """
    for key in ("table", *_SCALES):
        if key not in data:
            raise TechnologyError(f"Entry sram must have table, {', '.join(_SCALES)}, but {key} is missing")
    tables = sram_tables()
    if data["table"] not in tables:
        raise TechnologyError(f"Table of sram must be one of {', '.join(tables)}, not {data['table']!r}")
    return Sram(tables[data["table"]], *(read_entry(f"sram.{key}", data[key], "scale") for key in _SCALES))


@cache
def sram_tables() -> Mapping[str, SramTable]:
    """Return the tables of ``energy/technology/sram.toml`` by name."""
    return parse_tables(TABLE.read_text(encoding="utf-8"))


def parse_tables(text: str) -> Mapping[str, SramTable]:
    """Return the tables in the text of such a file.

    Raises
    ------
    TechnologyError
        If it is no such file, a figure is missing or not positive, or the points are no grid.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TechnologyError(f"Table of static RAM must be TOML: {error}") from error
    if not isinstance(data.get("table"), dict) or not data["table"]:
        raise TechnologyError(f"Table of static RAM must have entries [table.NAME], not {', '.join(data) or 'nothing'}")
    return {name: _table(name, each) for name, each in data["table"].items()}


def _table(name: str, data: Mapping[str, Any]) -> SramTable:
    for key in ("node", "source", "columns", "points"):
        if not data.get(key):
            raise TechnologyError(f"Table {name} of static RAM must have node, source, columns and points, "
                                  f"but {key} is missing")
    if tuple(data["columns"]) != COLUMNS:
        raise TechnologyError(f"Columns of table {name} must be {', '.join(COLUMNS)}, not {data['columns']!r}")
    found: dict[tuple[int, int], SramPoint] = {}
    for row in data["points"]:
        if not isinstance(row, list) or len(row) != len(COLUMNS):
            raise TechnologyError(f"Points of table {name} must have {len(COLUMNS)} numbers each, not {row!r}")
        size, bits, *values = (number(f"{column} of table {name}", value)
                               for column, value in zip(COLUMNS, row, strict=True))
        found[int(bits), int(size)] = SramPoint(*values)
    widths = tuple(sorted({bits for bits, _ in found}))
    rows = tuple({size: found[width, size] for width_, size in sorted(found) if width_ == width} for width in widths)
    if len(widths) < 2 or min(map(len, rows)) < 2 or len(found) != len(data["points"]):
        raise TechnologyError(f"Points of table {name} must be of two widths or more, with two sizes or more each, "
                              f"each once, not {len(data['points'])} points of {len(widths)} widths")
    return SramTable(name, data["node"], data["source"], widths, rows)


def _place(grid: Sequence[int], value: int) -> tuple[int, float]:
    """Return the index of the lower neighbour in ``grid`` and how far on ``value`` lies, on a logarithmic scale."""
    lower = min(max(bisect_left(grid, value) - 1, 0), len(grid) - 2)
    return lower, math.log(value / grid[lower]) / math.log(grid[lower + 1] / grid[lower])


def _between(first: SramPoint, second: SramPoint, share: float) -> SramPoint:
    def power_law(here: float, there: float) -> float:
        return here * (there / here) ** share
    return SramPoint(power_law(first.read_pj, second.read_pj), power_law(first.write_pj, second.write_pj),
                     power_law(first.leakage_uw, second.leakage_uw), power_law(first.area_um2, second.area_um2))
