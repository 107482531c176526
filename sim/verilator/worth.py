"""When a simulator has so much to do that it is worth compiling it again, by the profile of a run.

For `base` that takes 40 seconds of two processors and saves one cycle in eight, so it pays from some 100 million cycles
on. Long runs on one simulator are added up.
"""

import shutil
import subprocess
from pathlib import Path

from tilewright.isa.core_names import HOST_CORE, HostName
from tilewright.isa.machine import Machine
from tilewright.sim.verilator.build import profiled_place

__all__ = ["LONG_RUN", "WORTH_PROFILING", "is_worth_profiling", "keep_unprofiled"]

LONG_RUN = 10_000_000
"""Cycles from which a run counts."""

WORTH_PROFILING = 100_000_000
"""Cycles of long runs from which a profile pays."""


def is_worth_profiling(machine: Machine, cycles: int, host: HostName = HOST_CORE) -> bool:
    """Count a run of ``cycles``, and tell whether the simulator shall be compiled by its profile before it."""
    if cycles < LONG_RUN or (place := profiled_place(machine, host)).exists() or not _is_gcc():
        return False
    counter = _counter(place)
    counted = _read(counter) + cycles
    counter.write_text(str(counted))
    return counted >= WORTH_PROFILING


def keep_unprofiled(machine: Machine, host: HostName = HOST_CORE) -> None:
    """Let no run on this simulator be worth a profile any more: it could not be compiled by one."""
    _counter(profiled_place(machine, host)).write_text(str(-(1 << 62)))


def _counter(place: Path) -> Path:
    return place.parent.with_suffix(".cycles")


def _read(counter: Path) -> int:
    try:
        return int(counter.read_text())
    except (OSError, ValueError):   # none yet, or half written when a run was stopped
        return 0


def _is_gcc() -> bool:
    """Tell whether c++ is GCC: Clang needs another tool between the two compilations."""
    compiler = shutil.which("c++")
    if compiler is None:
        return False
    defined = subprocess.run([compiler, "-dM", "-E", "-x", "c++", "/dev/null"], capture_output=True, text=True,
                             check=False)
    return defined.returncode == 0 and "__GNUC__" in defined.stdout and "__clang__" not in defined.stdout
