"""Lines and toggles as Verilator counts them: its files read, added up, and put together by unit and part."""

import gzip
import re
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tilewright.tools.files import write_file

__all__ = ["Counts", "Covered"]

_ENTRY = re.compile(r"^C '(.*)' (\d+)$", re.MULTILINE)
_PART = re.compile("\x01([^\x02]*)\x02([^\x01]*)")
_CODE = re.compile(r"__0([0-9A-Fa-f]{2})")
_TOP = re.compile(r"^(?:coprocessor\.?)+")
_NUMBER = re.compile(r"\$\d+")


@dataclass(slots=True)
class Covered:
    """Branches, and bits of signals up and down, of a part: those that a run has come across, and all."""

    lines: int = 0
    lines_met: int = 0
    toggles: int = 0
    toggles_met: int = 0

    @classmethod
    def sum(cls, parts: Iterable["Covered"]) -> "Covered":
        """Return what several parts have together."""
        return cls(*map(sum, zip(*map(astuple, (cls(), *parts)), strict=True)))


@dataclass(slots=True)
class Counts:
    """Verilator's points, and how often each was met in all the runs added."""

    points: list[str] = field(default_factory=list)
    met: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, path: Path) -> None:
        """Add a run's file, or one that `write` has made.

        Raises
        ------
        ValueError
            If it has no points, or others than the files before.
        """
        content = path.read_bytes()
        found = _ENTRY.findall((gzip.decompress(content) if path.suffix == ".gz" else content).decode())
        if not found:
            raise ValueError(f"Coverage file {path} must have points, and has none")
        points = [point for point, _ in found]
        if self.points and points != self.points:
            raise ValueError(f"Coverage file {path} must be of the simulator of those before; its points are others")
        counts = np.array([int(count) for _, count in found], np.int64)
        self.points, self.met = points, self.met + counts if self.points else counts

    def write(self, path: Path) -> None:
        """Write them to a file as Verilator does, compressed; its name ends in ``.gz``."""
        lines = (f"C '{point}' {count}\n" for point, count in zip(self.points, self.met.tolist(), strict=True))
        write_file(path, gzip.compress("".join(["# SystemC::Coverage-3\n", *lines]).encode(), 1))

    def by_part(self) -> dict[str, Covered]:
        """Return what of each part was met."""
        found: dict[str, Covered] = {}
        for kind, part, _, count in self._read():
            each = found.setdefault(part, Covered())
            if kind == "v_toggle":
                each.toggles += 1
                each.toggles_met += count > 0
            else:
                each.lines += 1
                each.lines_met += count > 0
        return dict(sorted(found.items()))

    def toggles(self) -> dict[tuple[str, str], int]:
        """Return how often bits of each signal have toggled, by its part and name."""
        met: dict[tuple[str, str], int] = {}
        for kind, part, comment, count in self._read():
            if kind == "v_toggle":
                signal = part, _NUMBER.sub("", _decoded(comment.partition(":")[0].partition("[")[0]))
                met[signal] = met.get(signal, 0) + count
        return met

    def _read(self) -> Iterator[tuple[str, str, str, int]]:
        """Yield kind, part, what it is about and count of each point."""
        for point, count in zip(self.points, self.met.tolist(), strict=True):
            parts = dict(_PART.findall(point))
            kind, _, module = parts["page"].partition("/")
            path = _TOP.sub("", _NUMBER.sub("", _decoded(module))).split(".")
            yield kind, ".".join(path[:2]) or "wiring", parts.get("o", ""), count


def _decoded(name: str) -> str:
    """Return a name of Verilog from Verilator's way of writing it."""
    return _CODE.sub(lambda code: chr(int(code[1], 16)), name)
