"""Places of multipliers and block RAMs on ECP5: those of a lane side by side, and lanes in the order of their chain.

nextpnr puts such a block at the nearest place that is free, one after the other. So the 16 multipliers of a lane lay in
up to three rows, across the whole device, with 23 bits of each to be summed up, and `base` did not route
(docs/decisions/fpga.md). Only arrays of tiles that have a lane of xi get places: the others route without.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Sites", "lane_places", "memory_places", "places_of", "unit_places", "with_places"]

_LANE = re.compile(r"(.*\bmac\.(?:.*\.)?(?:xi|lane_(\d+)))\..*?(\d+)(?:\]\.place\b|_MULT18X18D)")
"""A lane or the lane of xi, its number, and which of its products a multiplier makes, by the name of the cell."""

_UNIT = re.compile(r"\bpost\..*?(requantize|add)_(\d+)\.")
"""A unit behind the array, and its number."""

_XI, _TILES = re.compile(r"\bmac\.xi\."), re.compile(r"\.tile_factors\.")
"""The lane of xi, and the multipliers of lanes that take two channels' tiles: array `winograd_inner`."""

_TILE = 4
"""Values across a tile of F(2x2, 3x3); a column of products is summed up first, so its four lie together."""

_MULTIPLIERS = (0, 1, 4, 5)
"""Tiles of a block in which a multiplier is, which nextpnr also counts them by."""

_MEMORIES = (0, 2, 4, 6)
"""Tiles of a block in which a block RAM is; nextpnr counts them from 0."""


@dataclass(frozen=True, slots=True)
class Sites:
    """Where a device has multipliers and block RAMs: in rows, in blocks of four.

    Attributes
    ----------
    columns : tuple of int
        Tiles in which a block begins, of multipliers and of block RAMs.
    multiplier_rows, memory_rows : tuple of int
    """

    columns: tuple[int, ...]
    multiplier_rows: tuple[int, ...]
    memory_rows: tuple[int, ...]

    @property
    def multipliers(self) -> int:
        """Multipliers of the device."""
        return len(self.columns) * len(self.multiplier_rows) * len(_MULTIPLIERS)

    def multiplier(self, row: int, block: int, index: int) -> str:
        """Return nextpnr's name for a multiplier."""
        tile = _MULTIPLIERS[index]
        return f"X{self.columns[block] + tile}/Y{self.multiplier_rows[row]}/MULT18_{tile}"

    def memories(self, row: int) -> list[str]:
        """Return nextpnr's names for the block RAMs of a row, from the left."""
        return [f"X{column + tile}/Y{self.memory_rows[row]}/EBR{index}"
                for column in self.columns for index, tile in enumerate(_MEMORIES)]


def places_of(netlist: Path, sites: Sites | None) -> dict[str, str]:
    """Return places for blocks of a netlist, by name of the cell; none without lane of xi, ``sites`` or room."""
    if sites is None:
        return {}
    found: dict[str, str] = {}
    for module in json.loads(netlist.read_text(encoding="utf-8"))["modules"].values():
        found.update(_places(module["cells"], sites))
    return found


def with_places(netlist: Path, places: Mapping[str, str]) -> str:
    """Return the text of a netlist in which the cells have ``places``."""
    data = json.loads(netlist.read_text(encoding="utf-8"))
    for module in data["modules"].values():
        for name, cell in module["cells"].items():
            if name in places:
                cell["attributes"]["BEL"] = places[name]
    return json.dumps(data)


def _places(cells: Mapping[str, Mapping[str, object]], sites: Sites) -> dict[str, str]:
    multipliers = [name for name, cell in cells.items() if cell["type"] == "MULT18X18D"]
    if not all(any(part.search(name) for name in multipliers) for part in (_XI, _TILES)):
        return {}
    lanes = lane_places(multipliers, sites)
    memories = memory_places((name for name, cell in cells.items() if cell["type"] == "DP16KD"), sites)
    return {**lanes, **unit_places(multipliers, lanes.values(), sites), **memories} if lanes else {}


def lane_places(names: Iterable[str], sites: Sites) -> dict[str, str]:
    """Return the places, as nextpnr names them, of the multipliers ``names`` that belong to lanes.

    Lanes follow each other along a row, and back along the next. There are none if they do not all find room.
    """
    names = list(names)
    lanes: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for name in names:
        if found := _LANE.match(name):
            lanes[found[1], found[2] or ""].append((int(found[3]), name))
    order = sorted(lanes, key=lambda lane: (lane[1] != "", lane[0].rpartition("lane_")[0], int(lane[1] or 0)))
    size = len(_MULTIPLIERS)
    blocks = -(-max((len(each) for each in lanes.values()), default=1) // size)
    per_row = len(sites.columns) // blocks
    if len(order) > per_row * len(sites.multiplier_rows) or len(names) > sites.multipliers:
        return {}
    places = {}
    for index, lane in enumerate(order):
        row, at = divmod(index, per_row)
        first = blocks * (per_row - 1 - at if row % 2 else at)
        tile = [name for _, name in sorted(lanes[lane])]
        columns = [name for column in range(_TILE) for name in tile[column::_TILE]]
        for place, name in enumerate(columns):
            places[name] = sites.multiplier(row, first + place // size, place % size)
    return places


def unit_places(names: Iterable[str], taken: Iterable[str], sites: Sites) -> dict[str, str]:
    """Return the places of the multipliers of requantisation and residual adders, in the first row that lanes leave.

    A unit has a block; one is free before the adders. There are none if they do not all find room.
    """
    units: dict[tuple[bool, int], list[str]] = defaultdict(list)
    for name in names:
        if found := _UNIT.search(name):
            units[found[1] == "add", int(found[2])].append(name)
    rows = {place.split("/")[1] for place in taken}
    free = [row for row, y in enumerate(sites.multiplier_rows) if f"Y{y}" not in rows]
    size = len(_MULTIPLIERS)
    if not free or len(units) >= len(sites.columns) or any(len(each) > size for each in units.values()):
        return {}
    return {name: sites.multiplier(free[0], block + adds, index)
            for block, ((adds, _), unit) in enumerate(sorted(units.items()))
            for index, name in enumerate(sorted(unit))}


def memory_places(names: Iterable[str], sites: Sites) -> dict[str, str]:
    """Return the places of the block RAMs ``names``: weights beside the lanes, activations behind them, then the rest.

    Weights end the first row, activations begin it and go on in the second; buffers of the units behind the array lie
    in the middle of the third, or fill it and go on in the fourth. There are none if they do not all find room.
    """
    weights: list[str] = []
    activations: list[str] = []
    others: list[str] = []
    for name in names:
        (weights if ".weights." in name else activations if "mac.buffer" in name else others).append(name)
    beside, *behind = (sites.memories(row) for row in range(len(sites.memory_rows)))
    free = beside[:max(0, len(beside) - len(weights))] + behind[0]
    rest = behind[1][max(0, len(behind[1]) - len(others)) // 2:] + [each for row in behind[2:] for each in row]
    if len(weights) > len(beside) or len(activations) > len(free) or len(others) > len(rest):
        return {}
    # Weights of the same number, for values of all kinds, go the same way.
    weights.sort(key=lambda name: (_numbers(name)[-1:], name))
    return {**dict(zip(weights, beside[len(beside) - len(weights):], strict=True)),
            **dict(zip(sorted(activations, key=_numbers), free, strict=False)),
            **dict(zip(sorted(others, key=_unit), rest, strict=False))}


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(text) for text in re.findall(r"\d+", name))


def _unit(name: str) -> tuple[int, tuple[int, ...], str]:
    order = [place for place, unit in enumerate((".buffer.", ".parameters.", ".tables.")) if unit in name]
    return (order[0] if order else 3), _numbers(name), name
