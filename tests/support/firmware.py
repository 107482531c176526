"""Small C programs for the simulated system, with the intrinsics of the instruction table at hand."""

from pathlib import Path

from tilewright.compiler.emit.elf import compile_elf, port_flags
from tilewright.isa import emit_c
from tilewright.isa.command_port import PORT_OF
from tilewright.isa.core_names import HOST_CORE, HostName


def compile_program(source: str, folder: Path, host: HostName = HOST_CORE) -> Path:
    """Return the ELF of ``source`` for ``host``, whose ``main`` returns the exit code; ``folder`` takes the files."""
    (folder / "tilewright.h").write_text(emit_c.header())
    program, elf = folder / "program.c", folder / "program.elf"
    program.write_text(source)
    compile_elf(program, elf, flags=port_flags(PORT_OF[host]))
    return elf
