"""The licence of a Verilog package: its text, and the line of each file that names it."""

from importlib.metadata import distribution
from pathlib import PurePath

__all__ = ["IDENTIFIER", "licence_text", "licensed"]

IDENTIFIER = "Apache-2.0"
"""As SPDX names it."""

_COMMENTS = {".v": "// {}\n", ".sv": "// {}\n", ".lpf": "# {}\n", ".xdc": "# {}\n", ".sdc": "# {}\n"}
_NAMED = {"Makefile": "# {}\n"}


def licence_text() -> str:
    """Return the text of Tilewright's licence, as it was installed.

    Raises
    ------
    LookupError
        If the installation has lost it.
    """
    for file in distribution("tilewright").files or ():
        if file.name == "LICENSE":
            return file.read_text(encoding="utf-8")
    raise LookupError("the installation of tilewright has no LICENSE")


def licensed(path: str, text: str) -> str:
    """Return a file's ``text`` with SPDX's line first, if files of its kind have comments."""
    pure = PurePath(path)
    comment = _NAMED.get(pure.name) or _COMMENTS.get(pure.suffix)
    return text if comment is None else comment.format(f"SPDX-License-Identifier: {IDENTIFIER}") + text
