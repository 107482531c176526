"""Print tables, and make text from a model safe to print."""

from rich.console import Console
from rich.text import Text

__all__ = ["WIDTH", "console", "plain", "short_name"]

WIDTH = 160
"""Columns of a table where there is no terminal that has a width."""


def console() -> Console:
    """Return a console for results on standard output: as wide as the terminal, or ``WIDTH`` where there is none."""
    out = Console()
    return out if out.is_terminal else Console(width=WIDTH)


def plain(text: str) -> Text:
    """Return text from a model as it may be printed: no markup, and no codes that a terminal would obey."""
    return Text("".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text))


def short_name(name: str, most: int = 40) -> Text:
    """Return a layer's name for a row of a table, as `plain` does: in ``most`` characters, the middle left out.

    Converters from TensorFlow join the names of all that they fuse with semicolons; the first of these is shown.
    Reports in JSON and pages have names whole.
    """
    first, _, others = name.partition(";")
    text = plain(first + (";…" if others else "")).plain
    if len(text) > most:
        half = (most - 1) // 2
        text = f"{text[:most - 1 - half]}…{text[-half:]}"
    return Text(text)
