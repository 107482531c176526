"""A window of a waveform: the value of every signal in each of a few hundred cycles of an RTL run."""

import gzip
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.errors import Error
from tilewright.hardware.gates.mapping import plain_name

__all__ = ["WaveError", "Waves", "read_waves"]

_RESET_CYCLES = 8
"""Cycles that the harness holds reset before it counts (sim/verilator/harness/main.cpp)."""

_RANGE = re.compile(r"^(.*?)\s*(\[-?\d+:-?\d+\])?$")


class WaveError(Error, RuntimeError):
    """A waveform has no such window or signal."""


@dataclass(frozen=True, slots=True)
class Waves:
    """Signals over some cycles, as they are just before the clock rises at each one's end.

    Attributes
    ----------
    codes : dict of str to (str, int)
        By scopes and name, joined by dots, each as `mapping.plain_name` has it: the code in the file, and its width.
    values : tuple of dict
        By code, binary, highest bit first: everything in the first cycle, then what has another value than before.
    """

    codes: dict[str, tuple[str, int]]
    values: tuple[dict[str, str], ...]

    @property
    def cycles(self) -> int:
        """Number of cycles."""
        return len(self.values)

    def bits(self, name: str) -> np.ndarray:
        """Return the bits of a signal, shape (cycles, width), uint8, lowest bit first.

        Raises
        ------
        WaveError
            If there is no such signal.
        """
        if name not in self.codes:
            raise WaveError(f"Waveform must have the signal {name!r}, and has none")
        code, width = self.codes[name]
        rows, value = [], "0"
        for known in self.values:
            value = known.get(code, value)
            rows.append(value.rjust(width, "0"))
        text = "".join(rows).encode().replace(b"x", b"0").replace(b"z", b"0")
        return np.frombuffer(text, np.uint8).reshape(len(rows), width)[:, ::-1] - ord("0")

    def write(self, path: Path) -> None:
        """Keep it as a compressed waveform file of one time step per cycle."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        with gzip.open(draft, "wt", encoding="ascii", compresslevel=3) as file:
            for name, (code, width) in self.codes.items():
                scopes = name.split(".")
                file.writelines(f"$scope module {scope} $end\n" for scope in scopes[:-1])
                file.write(f"$var wire {width} {code} {scopes[-1]} $end\n")
                file.write("$upscope $end\n" * (len(scopes) - 1))
            file.write("$enddefinitions $end\n")
            for cycle, changes in enumerate(self.values):
                file.write(f"#{2 * (cycle + _RESET_CYCLES)}\n")
                file.writelines(f"b{value} {code}\n" for code, value in changes.items())
        draft.replace(path)


def read_waves(path: Path, start: int, cycles: int, inside: str = "") -> Waves:
    """Return the window of ``cycles`` cycles from ``start`` on of what the simulator has written.

    It writes at even times with the clock low, when all inputs have come, and at odd times when it has risen.

    Parameters
    ----------
    inside : str
        Beginning of the names that matter.

    Raises
    ------
    WaveError
        If the file has not all of it.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="ascii") as file:
        codes = {name: entry for name, entry in _definitions(file) if name.startswith(inside)}
        wanted = {code for code, _ in codes.values()}
        values: list[dict[str, str]] = []
        collected: dict[str, str] = {}
        for line in file:
            mark = line[0]
            if mark == "#":
                # What has come belongs to the cycles whose even time is over.
                cycle = (int(line[1:]) - 1) // 2 - _RESET_CYCLES - start
                while len(values) <= min(cycle, cycles - 1):
                    values.append(collected)
                    collected = {}
            elif mark == "b":
                value, _, code = line[1:].rstrip().partition(" ")
                if code in wanted:
                    collected[code] = value
            elif mark in "01xz" and (code := line[1:].rstrip()) in wanted:
                collected[code] = mark
    if collected and len(values) < cycles:
        values.append(collected)
    if len(values) < cycles or not codes:
        raise WaveError(f"Waveform {path.name} must have {cycles} cycles from cycle {start} on and names in "
                        f"{inside!r}, not {len(values)} cycles and {len(codes)} names")
    return Waves(codes, tuple(values))


def _definitions(lines: Iterator[str]) -> Iterator[tuple[str, tuple[str, int]]]:
    """Return path, code and width of every variable in a header."""
    scopes: list[str] = []
    for line in lines:
        words = line.split()
        if not words:
            continue
        if words[0] == "$scope":
            scopes.append(plain_name(words[2]))
        elif words[0] == "$upscope":
            scopes.pop()
        elif words[0] == "$var":
            match = _RANGE.match(" ".join(words[4:-1]))
            assert match is not None
            yield ".".join([*scopes, plain_name(match[1])]), (words[3], int(words[2]))
        elif words[0] == "$enddefinitions":
            return
