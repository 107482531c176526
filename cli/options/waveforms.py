"""Options of waveforms: the file, and the cycles that it shows."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.errors import InputError

if TYPE_CHECKING:
    from tilewright.sim.wave import Wave

__all__ = ["WaveOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveOptions:
    """Where the waveform goes, and what it shows."""

    wave: Annotated[Path | None, typer.Option(
        "--wave", metavar="FILE", show_default=False, help="Write all signals as VCD; engine rtl only.")] = None
    wave_cycles: Annotated[str | None, typer.Option(
        "--wave-cycles", metavar="A:B", show_default=False,
        help="Let the waveform show only cycles A to B - 1; either may be left out.")] = None

    def chosen(self) -> "Wave | None":
        """Return the waveform that is asked for, if one is.

        Raises
        ------
        InputError
            If there are cycles and no file, or they have another form.
        """
        from tilewright.sim.wave import Wave, read_cycles

        if self.wave is None:
            if self.wave_cycles is not None:
                raise InputError("Option --wave-cycles needs --wave FILE: no waveform is written without")
            return None
        return Wave(self.wave, None if self.wave_cycles is None else read_cycles(self.wave_cycles))
