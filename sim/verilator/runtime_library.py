"""Verilator's library, compiled once for all models, on another processor while the gateware is elaborated."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from tilewright.tools.files import write_file
from tilewright.tools.toolchain import cache_folder, verilator_environment

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
    """Put the library's ``objects``, compiled with ``flags``, into the new folder ``model`` while the body runs.

    The objects are kept in the cache, so that only the first model compiles them. What does not compile is missing
    afterwards: the model's own makefile compiles it again, and says why it cannot.

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
    text = _MAKEFILE.format(root=Path(verilator).parents[1], flags=flags, objects=" ".join(objects))
    makefile.write_text(text)
    names = [f"{name}.o" for name in objects]
    kept = cache_folder() / "library" / _key(text, environment)
    if all((kept / name).exists() for name in names):
        for name in names:
            shutil.copyfile(kept / name, model / name)  # younger than the makefile, on which they depend
        yield
        return
    command = ["make", "-C", str(model), "-f", makefile.name, *names]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as compiling:
        try:
            yield
        except BaseException:
            compiling.terminate()
            raise
    if compiling.returncode == 0:
        kept.mkdir(parents=True, exist_ok=True)
        for name in names:
            write_file(kept / name, (model / name).read_bytes())


def _key(makefile: str, environment: Mapping[str, str]) -> str:
    """Return a hash of what the objects are made from: Verilator, rules, flags and the compiler."""
    compilers = [os.path.realpath(found) for name in ("c++", "g++", environment.get("CXX", ""))
                 if (found := shutil.which(name, path=environment["PATH"]))]
    variables = {name: value for name, value in environment.items()
                 if name in ("MAKEFLAGS", "CXX", "CXXFLAGS", "CPPFLAGS", "CPATH", "CPLUS_INCLUDE_PATH")}
    made_from = (version("verilator"), makefile, sorted(variables.items()),
                 [(path, os.stat(path).st_mtime_ns) for path in compilers])
    return hashlib.sha256(repr(made_from).encode()).hexdigest()


def flags_of_compiled_library(model: Path) -> tuple[str, ...]:
    """Return flags of Verilator by which the makefile in ``model`` takes the objects that are there as they are."""
    found = [f"{name}.o" for name in _OBJECTS if (model / f"{name}.o").exists()]
    return tuple(flag for name in found for flag in ("-MAKEFLAGS", f"-o {name}"))
