"""A waveform on its way: the simulator writes a draft, which becomes the file, and what a viewer shows at first."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tilewright.errors import InputError
from tilewright.sim.waves.fst_file import compress_fst, variables
from tilewright.sim.waves.save_file import save_text
from tilewright.sim.waves.wave import Wave
from tilewright.tools.files import not_written, write_file

__all__ = ["finish_wave", "wave_draft"]


@contextmanager
def wave_draft(wave: Wave | None) -> Iterator[Path | None]:
    """Give a file for the simulator to write: of FST one beside its place, which is gone when the block ends.

    Raises
    ------
    InputError
        If there is no room for it there.
    """
    if wave is None or not wave.is_fst:
        yield None if wave is None else wave.path
        return
    try:
        folder = tempfile.TemporaryDirectory(prefix=f".{wave.path.name}-", dir=wave.path.parent)
    except OSError as error:
        raise InputError(not_written(f"File {str(wave.path)!r}", error)) from error
    with folder as name:
        yield Path(name) / "draft.fst"


def finish_wave(wave: Wave, draft: Path) -> None:
    """Make the waveform of its draft, and beside it a save file for GTKWave, if there is none: that may be the user's.

    Raises
    ------
    InputError
        If they cannot be written.
    """
    if not wave.is_fst:
        return
    compressed = draft.with_name("compressed.fst")
    try:
        compress_fst(draft, compressed)
        compressed.replace(wave.path)
    except OSError as error:
        raise InputError(not_written(f"File {str(wave.path)!r}", error)) from error
    saved = wave.path.with_suffix(".gtkw")
    if not saved.exists():
        write_file(saved, save_text(wave.path, variables(draft)).encode())
