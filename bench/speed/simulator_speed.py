"""Seconds of a processor that building a simulator takes, and cycles that it simulates in one.

``python -m tilewright.bench.speed.simulator_speed resnet18-32 --machine base`` builds the simulator of each machine
anew, in a folder that is removed afterwards, and runs the network on it. Seconds are those that processes have used, so
that a busy computer changes them little, and of several runs the least. Compare two states of the code on one computer.
"""

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

from tilewright.isa.machine import PRESETS
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.inputs import random_inputs
from tilewright.runtime.session import InferenceSession
from tilewright.sim.verilator import worth
from tilewright.sim.verilator.build import build_simulator
from tilewright.tools.progress import Silence

__all__ = ["SimulatorSpeed", "main", "measure"]


@dataclass(frozen=True, slots=True)
class SimulatorSpeed:
    """Cost of building a simulator and of a run on it.

    Attributes
    ----------
    machine : str
    build_seconds : float
        Of elaboration, Yosys, Verilator and the C++ compiler, from nothing.
    cycles : int
        Of the network.
    run_seconds : float
        Of the simulator's process, the least of the runs.
    """

    machine: str
    build_seconds: float
    cycles: int
    run_seconds: float

    def __str__(self) -> str:
        """Say it in a line."""
        return (f"{self.machine}: built in {self.build_seconds:.1f} s; "
                f"{self.cycles:,} cycles in {self.run_seconds:.2f} s, "
                f"{self.cycles / self.run_seconds / 1000:.0f} thousand cycles per second of a processor")


def measure(network: str, machine: str, *, runs: int = 3, profiled: bool = False) -> SimulatorSpeed:
    """Build the simulator of ``machine``, as ``--machine`` states it, and run ``network`` on it ``runs`` times.

    A ``profiled`` one is also compiled by the profile of the network's first cycles, as for long runs.
    """
    design = design_of(machine)
    session = InferenceSession(find_model(network, Silence()).path, machine=design, engine="rtl")
    inputs = random_inputs(session.quantised_inputs).arrays
    with _empty_cache():
        before = _seconds_used()
        if profiled:
            with mock.patch.multiple(worth, LONG_RUN=0, WORTH_PROFILING=0):
                session.run(None, inputs)
        else:
            build_simulator(design.machine)
        built = _seconds_used() - before
        times = []
        for _ in range(runs):
            before = _seconds_of_children()
            session.run(None, inputs)
            times.append(_seconds_of_children() - before)
    if profiled:
        built -= min(times)   # of the run before which it was compiled
    return SimulatorSpeed(machine, built, session.report.cycles, min(times))


@contextmanager
def _empty_cache() -> Iterator[None]:
    """Let `tools.toolchain.cache_folder` be one that is empty, and is removed."""
    before = os.environ.get("TILEWRIGHT_CACHE")
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        os.environ["TILEWRIGHT_CACHE"] = folder
        try:
            yield
        finally:
            del os.environ["TILEWRIGHT_CACHE"]
            if before is not None:
                os.environ["TILEWRIGHT_CACHE"] = before


def _seconds_of_children() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def _seconds_used() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime + _seconds_of_children()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of each machine of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tilewright.bench.speed.simulator_speed", description=__doc__)
    parser.add_argument("model", nargs="?", default="resnet18-32")
    parser.add_argument("--machine", action="append", metavar="DESIGN")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--profiled", action="store_true", help="compile the simulator by a profile, as for long runs")
    given = parser.parse_args(arguments)
    for machine in given.machine or list(PRESETS):
        print(measure(given.model, machine, runs=given.runs, profiled=given.profiled), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
