"""Waveforms as a viewer reads them: pywellen is what Surfer has."""

from dataclasses import dataclass
from pathlib import Path

import pywellen

__all__ = ["Shown", "read_waveform"]

_PICOSECONDS = 1000
"""Of a cycle."""


@dataclass(frozen=True)
class Shown:
    """Signals by name: cycles, in halves, at which one changes and what it is from then on; names of its values."""

    changes: dict[str, list[tuple[float, int]]]
    widths: dict[str, int]
    names: dict[str, dict[int, str]]

    def at(self, name: str, cycle: int) -> int:
        """Return the value of a signal as a cycle begins."""
        return next(value for when, value in reversed(self.changes[name]) if when <= cycle)

    def named_at(self, name: str, cycle: int) -> str:
        """Return the name of that value."""
        return self.names[name][self.at(name, cycle)]


def read_waveform(path: Path) -> Shown:
    """Return what a file shows."""
    waveform = pywellen.Waveform(str(path))
    variables = list(waveform.all_vars())
    changes = {each.full_name: [(time / _PICOSECONDS, value) for time, value in each.tv] for each in variables}
    tables = {each.full_name: each.enum_type for each in variables if each.enum_type}
    names = {name: {int(bits, 2): value for bits, value in table[1]} for name, table in tables.items()}
    return Shown(changes, {each.full_name: each.bitwidth for each in variables}, names)
