"""FST files: what the simulator has written without compression, compressed as a whole."""

import gzip
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Variable", "compress_fst", "variables"]

_WRAPPER = 254
"""Block type FST_BL_ZWRAPPER: a whole file in gzip, behind its own length and that of what is in it."""

_HIERARCHY = 6
"""Block type FST_BL_HIER_LZ4: names of scopes and signals."""

_SCOPE, _UPSCOPE, _ATTRIBUTE, _END = 254, 255, 252, 253
"""Entries of it; any other is a signal."""

_NAMES = bytes([0, 7])
"""Kinds of an attribute that is a table of names, or says which one the next signal has."""

_LEVEL = 6
_NUMBER = 8
"""Bytes of a length, the highest first."""


def compress_fst(source: Path, target: Path) -> None:
    """Write the FST file ``source`` to ``target``, as GTKWave and Surfer read it too."""
    with open(source, "rb") as plain, open(target, "wb") as wrapped:
        wrapped.write(bytes([_WRAPPER]) + bytes(2 * _NUMBER))
        with gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=wrapped, mtime=0) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)
        size = wrapped.tell() - 1
        wrapped.seek(1)
        wrapped.write(size.to_bytes(_NUMBER, "big") + source.stat().st_size.to_bytes(_NUMBER, "big"))


@dataclass(frozen=True, slots=True)
class Variable:
    """A signal by its name with all scopes, joined by dots, and the bits that the name stands for, as viewers write it.

    ``named`` tells that its values have names.
    """

    name: str
    bits: str
    named: bool


def variables(path: Path) -> Iterator[Variable]:
    """Yield the signals of an FST file that the simulator has written.

    Its hierarchy is a single sequence of literals (sim/verilator/harness/stored/lz4.h).
    """
    scopes: list[str] = []
    text, place, named = _hierarchy(path), 0, False
    while place < len(text):
        kind = text[place]
        if kind == _SCOPE:
            name, place = _string(text, place + 2)
            _, place = _string(text, place)
            scopes.append(name)
        elif kind == _UPSCOPE:
            scopes.pop()
            place += 1
        elif kind == _ATTRIBUTE:
            of_names = text[place + 1:place + 3] == _NAMES
            name, place = _string(text, place + 3)
            _, place = _number(text, place)
            named = of_names and not name       # with a name it is the table itself
        elif kind == _END:
            place += 1
        else:
            name, place = _string(text, place + 2)
            _, place = _number(text, place)
            _, place = _number(text, place)
            plain, _, bits = name.partition(" ")
            yield Variable(".".join([*scopes, plain]), bits, named)
            named = False


def _hierarchy(path: Path) -> bytes:
    """Return the block of names."""
    with open(path, "rb") as file:
        while head := file.read(1 + _NUMBER):
            rest = int.from_bytes(head[1:], "big") - _NUMBER
            if head[0] == _HIERARCHY:
                size = int.from_bytes(file.read(_NUMBER), "big")
                return file.read(rest - _NUMBER)[-size:]
            file.seek(rest, 1)
    raise ValueError(f"FST file {path.name} must have names, and has none")


def _string(text: bytes, place: int) -> tuple[str, int]:
    end = text.index(0, place)
    return text[place:end].decode(), end + 1


def _number(text: bytes, place: int) -> tuple[int, int]:
    """Read an LEB128 number."""
    value = shift = 0
    while True:
        byte = text[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
