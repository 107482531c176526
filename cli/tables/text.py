"""Where tables are printed, and how text from a model is made safe to print."""

from rich.console import Console
from rich.text import Text

__all__ = ["WIDTH", "console", "plain"]

WIDTH = 160
"""Columns of a table where there is no terminal that has a width."""


def console() -> Console:
    """Return a console for results on standard output: as wide as the terminal, or ``WIDTH`` where there is none."""
    out = Console()
    return out if out.is_terminal else Console(width=WIDTH)


def plain(text: str) -> Text:
    """Return text from a model as it may be printed: no markup, and no codes that a terminal would obey."""
    return Text("".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text))
