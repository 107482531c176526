"""Blocks for area: the block of a name or of a line of Verilog.

By the line of Verilog that it was made from, which tells the module, or by its name, which is a path:
``coprocessor.mac.buffer.word_3_TRELLIS_FF_Q``. See `attribution` for which of them counts when.
"""

import re
from bisect import bisect_right

__all__ = ["AREA_BLOCKS", "CONTROL", "CORE", "PINS_BLOCK", "SourceLines", "area_block_of_module", "area_block_of_name"]

CORE = "core"
CONTROL = "control"
PINS_BLOCK = "pins"

# Beginnings of paths below `Coprocessor`, without the digits that tell instances apart; the longest that fits holds.
_PLACES = {
    "": CONTROL,
    "mac": "mac: sums out",
    "mac.sequencer": "mac: sequencer",
    "mac.buffer": "mac: activation buffer",
    "mac.transform": "mac: input transform",
    "mac.patches": "mac: input transform",
    "mac.own_patches": "mac: input transform",
    "mac.xi": "mac: lanes",
    "mac.cluster": "mac: lanes",
    "mac.cluster.transform": "mac: weight transform",
    "mac.cluster.weights": "mac: weight memories",
    "post": "post: control",
    "post.requantize": "post: requantise",
    "post.residual": "post: residual add",
    "post.pool": "post: max pool",
    "post.buffer": "post: result buffer",
    "post.parameters": "post: parameters and tables",
    "post.tables": "post: parameters and tables",
    "load": "load",
    "store": "store",
}

AREA_BLOCKS = (
    "mac: sequencer", "mac: activation buffer", "mac: input transform", "mac: lanes", "mac: weight transform",
    "mac: weight memories", "mac: sums out", "post: control", "post: requantise", "post: residual add",
    "post: max pool", "post: result buffer", "post: parameters and tables", "load", "store", CONTROL, CORE, PINS_BLOCK,
)
"""In the order of the tables. ``control`` is dispatcher and queues, semaphores, counters, bus master, window checks and
the adapter to the core; ``pins`` the shift registers at the ports of a design that is placed without its pins."""

_CORE_INSTANCE = "host"
"""The host core in ``rtl/soc/tilewright_soc.sv``."""

_TOP_INSTANCE = "coprocessor"
_SYSTEM, _PINS = "tilewright_soc.sv", "tilewright_pins.sv"
_MODULE = re.compile(r"^module \\?(\w+)", re.MULTILINE)
_NUMBER = re.compile(r"[$_]\d+")


def area_block_of_name(cell: str) -> str:
    """Return the block of a cell, by its hierarchical name; levels are separated by dots."""
    *levels, _ = cell.split(".")
    if levels[:1] == [_CORE_INSTANCE]:
        return CORE
    while levels[:1] == [_TOP_INSTANCE]:
        levels = levels[1:]
    return _longest(".".join(levels), ".")


def area_block_of_module(module: str) -> str:
    """Return the block of a module of the coprocessor: levels of its hierarchical name are separated by underscores."""
    inside = module
    while f"{inside}_".startswith(f"{_TOP_INSTANCE}_"):
        inside = inside[len(_TOP_INSTANCE) + 1:]
    return _longest(inside, "_")


class SourceLines:
    """The block of each line of Verilog.

    Parameters
    ----------
    name : str
        The file with all modules of the coprocessor; every other file is the core's.
    text : str
        Its contents.

    Attributes
    ----------
    modules : tuple of (str, int)
        Its modules and their first lines.
    """

    def __init__(self, name: str, text: str) -> None:
        self._place = re.compile(rf"(?:^|\|)(?:{re.escape(name)}|(\w+\.sv)):(\d+)")
        heads = list(_MODULE.finditer(text))
        self._first = [text.count("\n", 0, head.start()) + 1 for head in heads]
        self._blocks = [area_block_of_module(head[1]) for head in heads]
        self.modules = tuple((head[1], first) for head, first in zip(heads, self._first, strict=True))

    def block(self, src: str) -> str | None:
        """Return the block of what an attribute ``src`` names first, or nothing if all of it is the tool's own."""
        place = self._place.search(src)
        if place is None:
            return None
        if place[1]:
            return {_SYSTEM: CONTROL, _PINS: PINS_BLOCK}.get(place[1], CORE)
        return self._blocks[max(bisect_right(self._first, int(place[2])) - 1, 0)]


def _longest(path: str, separator: str) -> str:
    inside = _NUMBER.sub("", path) + separator
    fits = [place for place in _PLACES if not place or inside.startswith(place.replace(".", separator) + separator)]
    return _PLACES[max(fits, key=len)]
