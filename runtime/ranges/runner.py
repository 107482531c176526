"""RTL runs cut at layer borders: every range of layers is a separate program, and several run at a time.

What a range reads comes from the integer reference, so no range waits for another. Two things differ from a run in
one piece: nothing is fetched ahead across a border, and each range starts up and ends on its own. So the figure that
counts is that of the run in one piece; this is the quick way to see layers, and the way that survives interruption.
"""

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np

from tilewright.compiler.compile import compile_layers, emit_elf
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.memory_map import words_of
from tilewright.compiler.network.options import Options
from tilewright.compiler.network.parts.part_of_network import given, slice_network
from tilewright.energy.energies import sum_energies
from tilewright.energy.pricing import DEFAULT, Pricing
from tilewright.errors import Error
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.runtime.execution.accounting import account
from tilewright.runtime.execution.engines import Execution, execute
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.report import Report, add_counts
from tilewright.runtime.ranges.finished_runs import StoredRuns
from tilewright.runtime.ranges.ranges import LayerRange
from tilewright.sim.verilator.build import build_simulator
from tilewright.tools.progress import Cycles, Silence, Steps

__all__ = ["Interrupted", "RangeRun", "RangeRunner", "describe", "merge_reports"]


class Interrupted(Error):
    """Ends the threads of a run whose caller no longer waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRun:
    """One range: what it cost, the tensors it computed, and whether it was simulated now or earlier."""

    layers: LayerRange
    report: Report
    tensors: dict[str, np.ndarray]
    stored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRunner:
    """Simulates ranges of one network for one input.

    Attributes
    ----------
    network : Network
    machine : Machine
    timing : MemoryTiming
    options : Options
        Of the compiler.
    values : dict of str to ndarray
        Every tensor of the network, int8 (C, H, W), as `compiler.network.reference.run_network` returns them.
    predicted : sequence of int
        Cycles of every layer, for the progress bar.
    runs : StoredRuns
    fresh : bool
        Simulate what is stored again.
    pricing : Pricing
    """

    network: Network
    machine: Machine
    timing: MemoryTiming
    options: Options
    values: Mapping[str, np.ndarray]
    predicted: Sequence[int]
    runs: StoredRuns
    fresh: bool = False
    pricing: Pricing = DEFAULT
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self, ranges: Sequence[LayerRange], jobs: int, steps: Steps) -> list[RangeRun]:
        """Return the runs of ``ranges``, of which ``jobs`` are simulated at a time, the longest first.

        Raises
        ------
        SimulationError
            If a program does not end as it must, or the simulator cannot be built.
        """
        with steps.step(f"Building the simulator of {self.machine.name}"):
            simulator = build_simulator(self.machine)
        names = [(layer.name, cycles) for layer, cycles in zip(self.network.layers, self.predicted, strict=True)]
        covered = [names[index] for each in ranges for index in range(each.first, each.stop)]
        cycles = {each: sum(self.predicted[each.first:each.stop]) for each in ranges}
        with steps.simulation(f"Simulating {self.network.name} in RTL, {len(ranges)} ranges", covered) as show:
            bar = _SharedBar(show, self._stop)
            pool = ThreadPoolExecutor(jobs)
            try:
                futures = {each: pool.submit(self._run, each, simulator, bar)
                           for each in sorted(ranges, key=lambda each: -cycles[each])}
                return [futures[each].result() for each in ranges]
            finally:
                self._stop.set()
                pool.shutdown(cancel_futures=True)

    def _run(self, layers: LayerRange, simulator: Path, bar: "_SharedBar") -> RangeRun:
        network = slice_network(self.network, layers.first, layers.stop)
        compiled = compile_layers(network, self.machine, keep_tensors=True, options=self.options)
        job = job_of_compiled(compiled, network.name)
        inputs = given(network, self.values)
        key = self.runs.key(job, inputs, self.timing, simulator)
        execution = None if self.fresh else self.runs.load(key)
        stored = execution is not None
        if execution is None:
            with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
                job = replace(job, elf=emit_elf(compiled, network.name, Path(scratch)))
                execution = execute(job, "rtl", inputs, job.lasting, self.timing, steps=bar)
            self.runs.save(key, execution)
        bar.done(layers, execution)
        # The inputs of the range would hide the results of an earlier one.
        written = {words_of(name, network.tensors) for layer in network.layers for name in layer.writes}
        tensors = {name: tensor for name, tensor in execution.tensors.items() if name in written}
        return RangeRun(layers=layers, report=account(job, "rtl", self.timing, execution, self.pricing),
                        tensors=tensors, stored=stored)


class _SharedBar(Silence):
    """One progress bar for several simulations at a time: shows the sum of their cycles."""

    def __init__(self, show: Cycles, stop: threading.Event) -> None:
        super().__init__()
        self._show = show
        self._stop = stop
        self._lock = threading.Lock()
        self._cycles: dict[object, int] = {}

    @contextmanager
    def simulation(self, text: str, layers: Sequence[tuple[str, int]]) -> Iterator[Cycles]:
        """Add this simulation's cycles to the bar."""
        mine = object()
        yield lambda cycles, mark: self._note(mine, cycles)
        with self._lock:
            del self._cycles[mine]

    def done(self, layers: LayerRange, execution: Execution) -> None:
        """Add a finished simulation's cycles for good."""
        self._note(layers, execution.cycles)

    def _note(self, which: object, cycles: int) -> None:
        if self._stop.is_set():
            raise Interrupted
        with self._lock:
            self._cycles[which] = cycles
            self._show(sum(self._cycles.values()), None)


def merge_reports(runs: Sequence[RangeRun], name: str) -> Report:
    """Return one report of all ranges: layers in order, everything else added."""
    reports = [run.report for run in runs]
    cycles, seconds = sum(report.cycles for report in reports), sum(report.wall_seconds for report in reports)
    instructions = {word: sum(report.instructions[word] for report in reports) for word in reports[0].instructions}
    return replace(
        reports[0], model=name, cycles=cycles, instructions=instructions,
        energy=sum_energies([report.energy for report in reports]),
        toggles=add_counts([report.toggles for report in reports]), wall_seconds=seconds,
        simulated_cycles_per_second=cycles / seconds,
        layers=tuple(chain.from_iterable(report.layers for report in reports)))


def describe(runs: Sequence[RangeRun]) -> str:
    """Say how a run was cut, for its report."""
    earlier = sum(run.stored for run in runs)
    ranges = ", ".join(str(run.layers) for run in runs)
    said = f"layers {ranges} simulated separately" if len(runs) > 1 else f"only layers {ranges} simulated"
    said += f", {earlier} of {len(runs)} in an earlier run" if earlier else ""
    return f"{said}: prefetching across their borders, as in a single run, is not counted"


