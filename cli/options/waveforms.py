"""Options of waveforms: the file, and the cycles, layers and units that it shows."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.errors import InputError

if TYPE_CHECKING:
    from tilewright.sim.waves.wave import Wave

__all__ = ["WaveOptions"]


@dataclass(frozen=True, kw_only=True)    # no slots: another group is made of this one and files
class WaveOptions:
    """The file of the waveform, and the cycles that it shows."""

    wave: Annotated[Path | None, typer.Option(
        "--wave", metavar="FILE", show_default=False,
        help="Write a waveform, in engine rtl: .fst, with a save file for GTKWave beside it, or .vcd of every signal "
             "(docs/waves.md).")] = None
    wave_cycles: Annotated[str | None, typer.Option(
        "--wave-cycles", metavar="A:B", show_default=False,
        help="Let the waveform show only cycles A to B - 1; either may be left out.")] = None
    wave_layers: Annotated[str | None, typer.Option(
        "--wave-layers", metavar="A:B", show_default=False,
        help="Let the waveform show only layers A to B - 1, counted from 0; either may be left out.")] = None
    wave_scope: Annotated[str | None, typer.Option(
        "--wave-scope", metavar="NAMES", show_default="overview",
        help="Units that the waveform shows with all that is in them, such as array,load; all for everything.")] = None

    def chosen(self) -> "Wave | None":
        """Return the waveform that is asked for, if one is.

        Raises
        ------
        InputError
            If there are other options and no file, they have another form, or exclude each other.
        """
        others = {"--wave-cycles": self.wave_cycles, "--wave-layers": self.wave_layers, "--wave-scope": self.wave_scope}
        if self.wave is None:
            for option, value in others.items():
                if value is not None:
                    raise InputError(f"Option {option} needs --wave FILE: no waveform is written without")
            return None
        from tilewright.sim.waves.scopes import DEFAULT_SCOPE
        from tilewright.sim.waves.wave import Wave, read_span

        cycles, layers = (None if value is None else read_span(value, option)
                          for option, value in list(others.items())[:2])
        scope = DEFAULT_SCOPE if self.wave_scope is None else tuple(self.wave_scope.split(","))
        return Wave(self.wave, cycles, layers, scope)
