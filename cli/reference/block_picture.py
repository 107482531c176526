"""A picture of blocks and arrows as SVG, from a description in TOML with figures of the default machine in its texts.

::

    title = "What the picture shows"          # for those who cannot see it
    size = [960, 400]

    [[box]]
    id = "load"
    at = [40, 60, 160, 60]                    # left, top, width, height
    kind = "unit"                             # one of KINDS: what colour it has
    text = ["load", "lda, ldw"]               # the first line is bold; {bus_bytes} is the machine's

    [[arrow]]
    way = ["load", "activation"]              # between sides that face each other, else round a corner
    text = "one word a cycle"

``python -m tilewright.cli.reference.block_picture docs/pictures/*.toml`` writes an ``.svg`` beside each file.
"""

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from tilewright.errors import InputError
from tilewright.isa.machine import DEFAULT_MACHINE, LATENCY_CYCLES, PRESETS, Machine
from tilewright.tools.files import write_file
from tilewright.tools.templates import render

__all__ = ["KINDS", "Arrow", "Box", "block_picture"]

KINDS = ("group", "unit", "memory", "software", "data", "outside")
"""Kinds of boxes; ``group`` stands behind others and has its text at the top."""

_TEMPLATE = Path(__file__).with_name("block_picture.svg.j2")
_LINE = 17
_MARGIN = 6


@dataclass(frozen=True, slots=True)
class Box:
    """A box: left, top, width and height in pixels, its kind and its lines of text."""

    x: int
    y: int
    width: int
    height: int
    kind: str
    text: tuple[str, ...]

    @property
    def lines(self) -> list[tuple[float, float, str]]:
        """Each line of text, with the position of its middle and its foot."""
        top = self.y + _LINE + 2 if self.kind == "group" else (
            self.y + self.height / 2 - _LINE * (len(self.text) - 1) / 2 + 5)
        return [(self.x + self.width / 2, top + _LINE * place, line) for place, line in enumerate(self.text)]


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow: the points on its way, and where its text has its middle and its foot."""

    points: tuple[tuple[float, float], ...]
    text: str
    both: bool

    @property
    def path(self) -> str:
        """The way as SVG has it."""
        return "M" + " L".join(f"{x:g},{y:g}" for x, y in self.points)

    @property
    def label(self) -> tuple[float, float]:
        """Beside the middle of the longest leg: above a level one, to the right of an upright one."""
        legs = list(zip(self.points, self.points[1:], strict=False))
        (x, y), (to_x, to_y) = max(legs, key=lambda leg: abs(leg[0][0] - leg[1][0]) + abs(leg[0][1] - leg[1][1]))
        return ((x + to_x) / 2, y - 5) if y == to_y else (x + 6, (y + to_y) / 2 + 4)

    @property
    def upright(self) -> bool:
        """Whether the text stands to the right of an upright leg."""
        return self.label[0] not in {(x + to_x) / 2 for (x, _), (to_x, _) in
                                     zip(self.points, self.points[1:], strict=False)}


def block_picture(description: str) -> str:
    """Return the SVG of a description.

    Raises
    ------
    InputError
        If the description is no TOML, or a part of it is missing or of another form.
    """
    try:
        found = tomllib.loads(description)
        boxes = {each["id"]: _box(each) for each in found["box"]}
        arrows = [_arrow(each, boxes) for each in found.get("arrow", ())]
        width, height = found["size"]
        title = str(found["title"])
    except (tomllib.TOMLDecodeError, KeyError, ValueError, TypeError) as error:
        raise InputError("Picture must be described as cli/reference/block_picture.py says; this one has "
                         f"{error!r}") from error
    shown = sorted(boxes.values(), key=lambda box: box.kind != "group")
    return render(_TEMPLATE, title=escape(title), width=width, height=height, boxes=shown, arrows=arrows)


def _box(found: Mapping[str, Any]) -> Box:
    if found["kind"] not in KINDS:
        raise ValueError(f"kind {found['kind']!r}")
    values = _figures(PRESETS[DEFAULT_MACHINE])
    text = tuple(escape(line.format_map(values)) for line in found["text"])
    x, y, width, height = found["at"]
    return Box(x, y, width, height, found["kind"], text)


def _arrow(found: Mapping[str, Any], boxes: Mapping[str, Box]) -> Arrow:
    first, last = (boxes[name] for name in found["way"])
    return Arrow(_way(first, last), escape(found.get("text", "")), bool(found.get("both", False)))


def _way(first: Box, last: Box) -> tuple[tuple[float, float], ...]:
    """Return points from one box to the other: straight where their sides face each other, else with one corner."""
    across = max(first.x, last.x), min(first.x + first.width, last.x + last.width)
    along = max(first.y, last.y), min(first.y + first.height, last.y + last.height)
    right, down = last.x > first.x, last.y > first.y
    if along[1] - along[0] > _MARGIN:
        y = sum(along) / 2
        return ((first.x + first.width if right else first.x, y), (last.x if right else last.x + last.width, y))
    if across[1] - across[0] > _MARGIN:
        x = sum(across) / 2
        return ((x, first.y + first.height if down else first.y), (x, last.y if down else last.y + last.height))
    x, y = last.x + last.width / 2, first.y + first.height / 2
    return ((first.x + first.width if right else first.x, y), (x, y), (x, last.y if down else last.y + last.height))


def _figures(machine: Machine) -> dict[str, object]:
    """Return what texts may name: fields of the machine, sizes in KiB, and a few sums."""
    kib = {name.replace("_bytes", "_kib"): value // 1024 for name, value in asdict(machine).items()
           if name.endswith("_bytes") and name != "bus_bytes"}
    return {**asdict(machine), **kib, "multipliers": machine.multipliers, "latency_cycles": LATENCY_CYCLES}


if __name__ == "__main__":
    for file in map(Path, sys.argv[1:]):
        write_file(file.with_suffix(".svg"), block_picture(file.read_text(encoding="utf-8")).encode())
