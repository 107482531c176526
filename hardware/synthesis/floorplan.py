"""The floorplan of a placed design: where on the device each block lies, as SVG."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from tilewright.hardware.synthesis.cached_steps import SynthesisError
from tilewright.hardware.synthesis.picture import PARTS, part_of
from tilewright.hardware.synthesis.synthesis_report import PlacedCell

__all__ = ["floorplan", "placed_cells"]

_BEL = re.compile(r"X(\d+)/Y(\d+)/(\w+)")
"""Where a cell is, as nextpnr names it: a tile of the device, and a place in it."""

_WIDE = {"EBR": (2, 1, "block RAM"), "MULT": (1, 1, "multiplier"), "ALU": (1, 1, "multiplier")}
"""Places that are drawn with an outline, by the beginning of their names: tiles across and down, and what they are."""

_SIDE, _LEGEND = 9, 40


def placed_cells(written: Path, block: Callable[[str], str]) -> tuple[PlacedCell, ...]:
    """Return the cells of a design as nextpnr writes it after placing; ``block`` tells the block of a cell.

    Raises
    ------
    SynthesisError
        If no cell has a place.
    """
    found = []
    for module in json.loads(written.read_text(encoding="utf-8"))["modules"].values():
        for name, cell in module["cells"].items():
            if place := _BEL.match(str(cell["attributes"].get("NEXTPNR_BEL", ""))):
                found.append(PlacedCell(int(place[1]), int(place[2]), place[3], block(name)))
    if not found:
        raise SynthesisError(f"Design that nextpnr has placed must have cells with places, and {written} has none")
    return tuple(found)


def floorplan(cells: Sequence[PlacedCell], title: str) -> str:
    """Return the picture: each tile in use has the colour of the part that most of its cells belong to."""
    tiles: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for cell in cells:
        tiles[cell.x, cell.y][part_of(cell.block)] += 1
    across, down = (1 + max(place[axis] for place in tiles) for axis in (0, 1))
    width, height = max(_SIDE * across, 620) + 8, _SIDE * down + _LEGEND + 8
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
             "<style>text {font: 12px sans-serif}</style>",
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="4" y="14">{escape(title)}</text>', *_legend(),
             f'<rect x="4" y="{_LEGEND}" width="{_SIDE * across}" height="{_SIDE * down}" fill="#f4f4f4"/>']
    for x, y, length, part, count in _stretches(tiles):
        lines.append(f'<rect x="{4 + _SIDE * x}" y="{_LEGEND + _SIDE * y}" width="{_SIDE * length - 1}" '
                     f'height="{_SIDE - 1}" fill="{PARTS[part]}"><title>{part}, row {y}: {count} cells</title></rect>')
    return "\n".join([*lines, *_outlines(cells), "</svg>", ""])


def _stretches(tiles: Mapping[tuple[int, int], Counter[str]]) -> list[tuple[int, int, int, str, int]]:
    """Return neighbours of a row that have the same part: the first one's place, their number, the part, its cells."""
    found: list[tuple[int, int, int, str, int]] = []
    for y, x in sorted((y, x) for x, y in tiles):
        parts = tiles[x, y]
        part = min(parts, key=lambda each: (-parts[each], each))
        if found and (found[-1][0] + found[-1][2], found[-1][1], found[-1][3]) == (x, y, part):
            first, _, length, _, count = found.pop()
            found.append((first, y, length + 1, part, count + parts.total()))
        else:
            found.append((x, y, 1, part, parts.total()))
    return found


def _legend() -> Iterable[str]:
    x = 4
    for part, colour in PARTS.items():
        yield f'<rect x="{x}" y="22" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{x + 16}" y="32">{part}</text>'
        x += 28 + 7 * len(part)


def _outlines(cells: Iterable[PlacedCell]) -> Iterable[str]:
    """Yield what marks block RAMs and multipliers."""
    for cell in cells:
        for start, (across, down, what) in _WIDE.items():
            if cell.place.startswith(start):
                yield (f'<rect x="{4 + _SIDE * cell.x}" y="{_LEGEND + _SIDE * cell.y}" width="{_SIDE * across - 1}" '
                       f'height="{_SIDE * down - 1}" fill="{PARTS[part_of(cell.block)]}" stroke="#222">'
                       f"<title>{what}: {cell.block}</title></rect>")
