"""The coprocessor as Verilog for use elsewhere: one file, and the list of files that other tools read."""

from pathlib import Path

from tilewright.isa.machine import Machine
from tilewright.runtime.errors import RunError
from tilewright.runtime.files import write_file
from tilewright.sim.elaborate import ElaborationError, coprocessor_verilog


def write_verilog(machine: Machine, folder: Path) -> list[Path]:
    """Write ``coprocessor.v`` and ``coprocessor.f`` to ``folder`` and return their paths.

    Raises
    ------
    RunError
        If Yosys fails.
    InputError
        If the folder cannot be written to.
    """
    try:
        text = coprocessor_verilog(machine)
    except ElaborationError as error:
        raise RunError(str(error)) from error
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "coprocessor.v", folder / "coprocessor.f"]
    write_file(files[0], text.encode())
    write_file(files[1], f"{files[0].name}\n".encode())
    return files
