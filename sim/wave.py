"""Waveforms that a caller asks of the RTL engine: the file, and the cycles that it shows."""

import re
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import InputError

__all__ = ["Wave", "read_cycles"]

_CYCLES = re.compile(r"(\d{1,18})?:(\d{1,18})?", re.ASCII)
_NO_END = 10**18


@dataclass(frozen=True, slots=True)
class Wave:
    """A waveform to write.

    Attributes
    ----------
    path : Path
        The file, VCD of every signal.
    cycles : range, optional
        The cycles that it shows, as reports count them; all if None. Cycle 0 has the reset before it.
    """

    path: Path
    cycles: range | None = None

    def require_shown(self, run_cycles: int) -> None:
        """Refuse a window that begins when a run of so many cycles is over: the file has no values.

        Raises
        ------
        InputError
            If it does.
        """
        if self.cycles is not None and self.cycles.start >= run_cycles:
            raise InputError(f"Window of the waveform must begin before the run ends, in cycle {run_cycles}, "
                             f"not in cycle {self.cycles.start}: {str(self.path)!r} shows nothing")


def read_cycles(text: str) -> range:
    """Return the cycles A to B - 1 of ``A:B``; without A from the first one on, without B to the end of the run.

    Raises
    ------
    InputError
        If the text has another form, or there is no such cycle.

    Examples
    --------
    >>> read_cycles("100:250")
    range(100, 250)
    """
    found = _CYCLES.fullmatch(text)
    if found is None:
        raise InputError(f"Option --wave-cycles must be A:B, two numbers of cycles of which either may be left out, "
                         f"not {text!r}")
    cycles = range(int(found[1] or 0), int(found[2] or _NO_END))
    if not cycles:
        raise InputError(f"Option --wave-cycles must be A:B with A below B, not {text!r}")
    return cycles
