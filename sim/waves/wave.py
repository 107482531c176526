"""Waveforms that a caller asks of the RTL engine: the file, and the cycles, layers and units that it shows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tilewright.errors import InputError
from tilewright.sim.waves.scopes import DEFAULT_SCOPE, SCOPES

__all__ = ["SUFFIXES", "Wave", "read_span", "span_text"]

SUFFIXES = (".fst", ".vcd")
"""Of files with waveforms."""

_SPAN = re.compile(r"(\d{1,18})?:(\d{1,18})?", re.ASCII)
_NO_END = 10**18


@dataclass(frozen=True, slots=True)
class Wave:
    """A waveform to write.

    Attributes
    ----------
    path : Path
        The file: FST (``.fst``) of the units asked for, or VCD (``.vcd``) of every signal of the simulator.
    cycles : range, optional
        The cycles that it shows, as reports count them; all if None. In VCD, cycle 0 has the reset before it.
    layers : range, optional
        The same by layers, as the report has them; FST only.
    scope : sequence of str
        Names of `sim.waves.scopes.SCOPES`; FST only.
    """

    path: Path
    cycles: range | None = None
    layers: range | None = None
    scope: Sequence[str] = DEFAULT_SCOPE

    def __post_init__(self) -> None:
        if self.path.suffix not in SUFFIXES:
            raise InputError(f"Waveform must be a file that ends in {' or '.join(SUFFIXES)}, not {str(self.path)!r}")
        if unknown := [name for name in self.scope if name not in SCOPES]:
            raise InputError(f"Scope of a waveform must be of {', '.join(SCOPES)}, not {unknown[0]!r}")
        if self.cycles is not None and self.layers is not None:
            raise InputError("Waveform must be of cycles or of layers, not of both")
        if not self.is_fst and (self.layers is not None or tuple(self.scope) != DEFAULT_SCOPE):
            raise InputError(f"Waveform must be a .fst file to be of some layers or units, not {str(self.path)!r}: "
                             f"VCD has every signal")

    @property
    def format(self) -> Literal["fst", "vcd"]:
        """Format that the simulator must be able to write."""
        return "fst" if self.path.suffix == ".fst" else "vcd"

    @property
    def is_fst(self) -> bool:
        """Tell whether it is FST."""
        return self.format == "fst"

    def require_layers(self, layers: int) -> None:
        """Refuse layers that a network of so many does not have.

        Raises
        ------
        InputError
            If it has not all of them.
        """
        if self.layers is not None and (self.layers.start >= layers or layers < self.layers.stop < _NO_END):
            raise InputError(f"Layers of the waveform must be of the network's {layers}, 0 to {layers - 1}, "
                             f"not {span_text(self.layers)}")

    def require_shown(self, run_cycles: int) -> None:
        """Refuse a window that begins when a run of so many cycles is over: the file has no values.

        Raises
        ------
        InputError
            If it does.
        """
        if self.cycles is not None and self.cycles.start >= run_cycles:
            raise InputError(f"Window of the waveform must begin before the run ends, in cycle {run_cycles}, "
                             f"not in cycle {self.cycles.start}: {str(self.path)!r} would show nothing")


def read_span(text: str, option: str) -> range:
    """Return the cycles or layers A to B - 1 of ``A:B``; without A from the first one on, without B to the last.

    Raises
    ------
    InputError
        If the text has another form, or names none; it says so of ``option``.

    Examples
    --------
    >>> read_span("100:250", "--wave-cycles")
    range(100, 250)
    """
    found = _SPAN.fullmatch(text)
    if found is None:
        raise InputError(f"Option {option} must be A:B, two numbers of which either may be left out, not {text!r}")
    span = range(int(found[1] or 0), int(found[2] or _NO_END))
    if not span:
        raise InputError(f"Option {option} must be A:B with A below B, not {text!r}")
    return span


def span_text(span: range) -> str:
    """Return ``span`` as A:B."""
    return f"{span.start}:{'' if span.stop == _NO_END else span.stop}"
