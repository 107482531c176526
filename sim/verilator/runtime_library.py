"""Verilator's library, compiled on another processor while the gateware is elaborated."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tilewright.tools.toolchain import verilator_environment

__all__ = ["flags_of_compiled_library", "library_compiled_meanwhile"]

_OBJECTS = ("verilated", "verilated_threads")
"""Those of a model without waveforms, without coverage and without VPI."""

# What Verilator writes for such a model, but for the model's own files; its rules say how the library is compiled.
_MAKEFILE = """\
PERL = perl
VERILATOR_ROOT = {root}
VM_PREFIX = Vlibrary
VM_USER_CFLAGS = {flags}
VM_COVERAGE = 0
VM_SC = 0
VM_TIMING = 0
VM_TRACE = 0
VM_TRACE_FST = 0
VM_TRACE_SAIF = 0
VM_TRACE_VCD = 0
VM_GLOBAL_FAST = {objects}
include $(VERILATOR_ROOT)/include/verilated.mk
"""


@contextmanager
def library_compiled_meanwhile(model: Path, flags: str, objects: Sequence[str] = _OBJECTS) -> Iterator[None]:
    """Compile the library's ``objects`` into the new folder ``model`` with ``flags`` while the body runs.

    What does not compile is missing afterwards: the model's own makefile compiles it again, and says why it cannot.

    Raises
    ------
    ToolMissingError
        If Verilator or something it needs is not installed.
    """
    environment = verilator_environment()
    model.mkdir()
    makefile = model / "Vlibrary.mk"  # by the prefix: the objects depend on it
    verilator = shutil.which("verilator", path=environment["PATH"])
    assert verilator is not None
    makefile.write_text(_MAKEFILE.format(root=Path(verilator).parents[1], flags=flags, objects=" ".join(objects)))
    command = ["make", "-C", str(model), "-f", makefile.name, *(f"{name}.o" for name in objects)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as compiling:
        try:
            yield
        except BaseException:
            compiling.terminate()
            raise


def flags_of_compiled_library(model: Path) -> tuple[str, ...]:
    """Return flags of Verilator by which the makefile in ``model`` takes the objects that are there as they are."""
    found = [f"{name}.o" for name in _OBJECTS if (model / f"{name}.o").exists()]
    return tuple(flag for name in found for flag in ("-MAKEFLAGS", f"-o {name}"))
