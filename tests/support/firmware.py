"""Small C programs for the simulated system, with the intrinsics of the instruction table at hand."""

from pathlib import Path

from tilewright.compiler.emit.elf import compile_elf
from tilewright.isa import emit_c


def compile_program(source: str, folder: Path) -> Path:
    """Return the ELF of ``source``, whose ``main`` returns the exit code; ``folder`` takes the files."""
    (folder / "tilewright.h").write_text(emit_c.header())
    program, elf = folder / "program.c", folder / "program.elf"
    program.write_text(source)
    compile_elf(program, elf)
    return elf
