"""Text files that a user wrote, with whatever editor: UTF-8, or UTF-16 as Windows writes it, with or without a mark."""

import codecs
from pathlib import Path

__all__ = ["read_user_text", "user_text"]

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_user_text(path: Path) -> str:
    """Return the text of a file; see :func:`user_text`. Raises OSError too."""
    return user_text(path.read_bytes())


def user_text(content: bytes) -> str:
    """Return text without a byte order mark, with lines that end as Python's do.

    Raises
    ------
    UnicodeDecodeError
        If it is neither UTF-8 nor, behind a byte order mark, UTF-16.
    """
    text = content.decode("utf-16" if content.startswith(_UTF_16) else "utf-8-sig")
    return text.replace("\r\n", "\n")
