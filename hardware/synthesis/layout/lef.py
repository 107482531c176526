"""LEF: sizes and pins of cells, and what a µm of wire on each layer has; no more of the format is read.

A layer's figures are for a wire of its standard width: capacitance as the LEF/DEF language reference computes a
segment's, ``CPERSQDIST`` times its area and ``EDGECAPACITANCE`` times its two long edges, resistance from ``RPERSQ``.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilewright.errors import Error

__all__ = ["CellOutline", "LayerWire", "LefError", "cell_outlines", "layer_wires"]

_NUMBER = r"(-?[\d.]+(?:[eE][-+]?\d+)?)"
_COMMENT = re.compile(r"#.*")
_SIZE = re.compile(rf"\bSIZE\s+{_NUMBER}\s+BY\s+{_NUMBER}")
_RECTANGLE = re.compile(rf"\bRECT\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}")


class LefError(Error):
    """A LEF file lacks what is needed of it."""


@dataclass(frozen=True, slots=True)
class CellOutline:
    """A cell's width and height in µm, and the middle of each pin, from its lower left corner."""

    width: float
    height: float
    pins: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class LayerWire:
    """A µm of wire by itself: pF and Ω, without what neighbours couple."""

    capacitance: float
    resistance: float


def cell_outlines(text: str) -> dict[str, CellOutline]:
    """Return the cells of a LEF file by name.

    Raises
    ------
    LefError
        If one has no size.
    """
    found = {}
    for name, body in _groups("MACRO", text):
        size = _SIZE.search(body)
        if size is None:
            raise LefError(f"Cell {name} must have a SIZE in its LEF, and has none")
        pins = {}
        for pin, inside in _groups("PIN", body):
            corners = [tuple(map(float, each)) for each in _RECTANGLE.findall(inside)]
            if corners:
                left, low, right, high = (side(corner[place] for corner in corners)
                                          for place, side in enumerate((min, min, max, max)))
                pins[pin] = (left + right) / 2, (low + high) / 2
        found[name] = CellOutline(float(size[1]), float(size[2]), pins)
    return found


def layer_wires(text: str) -> dict[str, LayerWire]:
    """Return the routing layers of a LEF file that state capacitance and resistance, by name."""
    found = {}
    for name, body in _groups("LAYER", text):
        fields = [re.search(rf"\b{keyword}\s+{_NUMBER}", body)
                  for keyword in ("WIDTH", "CPERSQDIST", "EDGECAPACITANCE", "RPERSQ")]
        if all(fields):
            width, area, edge, square = (float(field[1]) for field in fields if field is not None)
            found[name] = LayerWire(area * width + 2 * edge, square / width)
    return found


def _groups(keyword: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the body of each group that ends with ``END name``."""
    plain = _COMMENT.sub("", text)
    for start in re.finditer(rf"^\s*{keyword}\s+(\S+)\s*$", plain, re.MULTILINE):
        end = re.compile(rf"^\s*END\s+{re.escape(start[1])}\s*$", re.MULTILINE).search(plain, start.end())
        if end is not None:
            yield start[1], plain[start.end():end.start()]
