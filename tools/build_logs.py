"""The cause in the log of a failed tool, as the end of a sentence."""

import re
from pathlib import Path

__all__ = ["cause_in"]

_CAUSES = (
    (re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE),
     "the disk is full; free some space, or let TILEWRIGHT_CACHE name a folder with room"),
    (re.compile(r"\bkilled\b.*signal|out of memory|cannot allocate memory|signal terminated program", re.IGNORECASE),
     "it ran out of memory; close other programs, or run it on a machine with more"),
    (re.compile(r"permission denied|read-only file system", re.IGNORECASE),
     "its folder cannot be written to; let TILEWRIGHT_CACHE name one that can"),
)

_FAULT = re.compile(r"%Error[^:]*: (?P<verilator>.+)|\b(?:fatal )?error: (?P<compiler>.+)|(?P<missing>\S+: not found)")

_MOST = 1 << 20
"""Bytes at the end of a log that are read."""


def cause_in(log: Path) -> str:
    """Return ``: cause; the log is FILE``, or only where the log is if it does not tell."""
    try:
        text = log.read_bytes()[-_MOST:].decode("utf-8", "replace")
    except OSError:
        return ""
    cause = next((sentence for pattern, sentence in _CAUSES if pattern.search(text)), "")
    if not cause and (fault := _FAULT.search(text)):
        cause = next(each for each in fault.groups() if each).strip()[:200]
    return f"{f': {cause}' if cause else ''}; the log is {log}"
