"""Where a line of text may be broken: at spaces, else behind the marks in a name, and never within a number."""

import re

from rich.cells import cell_len

__all__ = ["broken", "longest_number"]

_NUMBER = re.compile(r"[+-]?\d[\d,.]*(?<=\d)(?: (?:%|[kMGµm]?(?:J|W|Hz|B|s)|dB|k|M|G|x)(?![\w]))?|[+-]?\d")
"""A number with its sign, its thousands, its decimals, and a unit that stands behind a space."""

_BEHIND = frozenset("/._,;:=-)")
"""Marks behind which a word that is too long for a line is broken."""


def longest_number(text: str) -> int:
    """Return the letters of the longest number in a text, with its unit; 0 if there is none."""
    return max((cell_len(each[0]) for each in _NUMBER.finditer(text)), default=0)


def broken(text: str, width: int) -> list[str]:
    """Return a text in lines of at most ``width`` letters.

    Words stay whole where they fit a line, and numbers always, unless a number is longer than a line.
    """
    return [part for line in text.split("\n") for part in _lines(line, max(width, 1))]


def _lines(line: str, width: int) -> list[str]:
    found = []
    while cell_len(line) > width:
        place = _place(line, width)
        found.append(line[:place].rstrip())
        line = line[place:].lstrip()
    return [*found, line] if line or not found else found


def _place(line: str, width: int) -> int:
    """Return where to break a line that is too long."""
    within = {place for each in _NUMBER.finditer(line) for place in range(each.start() + 1, each.end())}
    most = next(place for place in range(len(line), 0, -1) if cell_len(line[:place]) <= width or place == 1)
    allowed = [place for place in range(1, most + 1) if place not in within]
    spaces = [place for place in range(1, min(most + 2, len(line))) if line[place - 1] == " " and place not in within]
    marks = [place for place in allowed if line[place - 1] in _BEHIND]
    at = max(spaces, default=0)
    if at and cell_len(line[at:].split(" ", 1)[0]) <= width:
        return at
    return max((place for place in marks if place > at), default=0) or at or max(allowed, default=most)
