"""Run a compiled model on either engine; the results are the same except for the time.

A run on engine ``rtl`` runs the whole fast engine too, unless it counts toggles: the RTL does not show what the array's
operands are like, from which the energy estimate predicts toggles.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from tilewright.compiler.channels.whole_tensors import whole_values
from tilewright.compiler.kernels.execute import run_on_core
from tilewright.compiler.network.memory_map import tensor_bytes
from tilewright.compiler.network.operands import from_memory, to_memory
from tilewright.errors import SimulationError
from tilewright.isa.core_names import HOST_CORE
from tilewright.isa.encoding import EncodingError
from tilewright.isa.machine import MemoryTiming
from tilewright.runtime.execution.job import Job
from tilewright.runtime.execution.records import RECORD_BYTES, Counts, read_record
from tilewright.sim.fast_engine import run_fast
from tilewright.sim.measured_times import measured_times
from tilewright.sim.rtl_engine import Progress, Simulation, run_rtl, train_rtl
from tilewright.sim.run_result import RunResult
from tilewright.sim.timing.command_times import CommandTimes
from tilewright.sim.values.operand_samples import OperandToggles
from tilewright.sim.verilator.build import BuildError, build_simulator
from tilewright.sim.verilator.worth import is_worth_profiling, keep_unprofiled
from tilewright.sim.waves.draft import finish_wave, wave_draft
from tilewright.sim.waves.scopes import modules_of
from tilewright.sim.waves.wave import Wave
from tilewright.tools.progress import Steps

__all__ = ["ENGINES", "EngineName", "Execution", "Opening", "execute", "show_rate"]

EngineName = Literal["rtl", "fast"]
ENGINES = ("rtl", "fast")


@dataclass(frozen=True, slots=True)
class Opening:
    """Counts up to the end of a program's opening, which the first call alone runs.

    ``counts`` are the counters, ``predicted_cycles`` those of engine ``fast``, ``toggles`` as an `Execution` has them.
    """

    counts: Counts
    predicted_cycles: int
    toggles: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Results of one run.

    Attributes
    ----------
    cycles, instructions : int
        Of the whole run; instructions that the host core retired.
    tensors : dict of str to ndarray
        Those asked for: int8 of shape (channels, height, width), or of a type and dims of their own. Constant channels
        that are not in memory are filled in; a tensor of which others are not there is left out.
    records : tuple of Counts
        The counters at the end of each layer.
    wall_seconds, cycles_per_second : float
        Of the simulation.
    toggles : tuple of dict of str to int
        Register bits of each block (`sim.verilog.energy_blocks.ENERGY_BLOCKS`) that have changed up to the end of each
        layer, and up to the end of the run; empty unless they were counted.
    operands : tuple of OperandToggles
        Statistics of the array's operands in each layer, to predict toggles; empty if they were counted.
    times : CommandTimes or None
        When each command was sent, begun and ended: as the hardware was, or as engine ``fast`` predicts.
    sleeps : tuple of (first, end)
        Cycles in which the host core slept, as `sim.run_result.RunResult` has them.
    predicted_cycles : int or None
        Cycles of the whole run that engine ``fast`` predicts, with CV32E40X as the host; None likewise.
    opening : Opening or None
        Of a program that has one.
    """

    cycles: int
    instructions: int
    tensors: dict[str, np.ndarray]
    records: tuple[Counts, ...]
    wall_seconds: float
    cycles_per_second: float
    toggles: tuple[dict[str, int], ...] = ()
    operands: tuple[OperandToggles, ...] = ()
    times: CommandTimes | None = None
    predicted_cycles: int | None = None
    sleeps: tuple[tuple[int, int], ...] = ()
    opening: Opening | None = None


def execute(job: Job, engine: EngineName, inputs: Mapping[str, np.ndarray], wanted: list[str], timing: MemoryTiming,
            *, wave: Wave | None = None, count_toggles: bool = False, steps: Steps) -> Execution:
    """Run ``job`` to its end.

    Parameters
    ----------
    inputs : mapping of str to ndarray
        By the names of ``job.inputs``: int8 of shape (channels, height, width), or of a type and dims of their own.
    wanted : list of str
        Tensors to read when the program has ended.
    wave : Wave, optional
        Waveform that engine ``rtl`` writes.
    count_toggles : bool
        Whether engine ``rtl`` shall count the toggles of the coprocessor's registers.

    Raises
    ------
    SimulationError
        If the program does not end as it must, or the engine cannot run.
    InputError
        If the waveform shows no cycle or layer of the run, or cannot be written.
    """
    placed = {name: job.tensors[name] for name in inputs}
    images = [*job.images, *((address, to_memory(inputs[name], info)) for name, (info, address) in placed.items())]
    marks = [layer.record for layer in job.layers] + ([] if job.opening is None else [job.opening])
    dumps = [(record, RECORD_BYTES) for record in marks]
    dumps += [(job.tensors[name][1], tensor_bytes(job.tensors[name][0])) for name in wanted]
    if engine == "rtl":
        result = _run_rtl(job, images, dumps, timing, wave, count_toggles, steps)
        predicted = None if count_toggles else _run_fast(job, images, dumps[:len(marks)], timing, steps)
    else:
        result = predicted = _run_fast(job, images, dumps, timing, steps)
    records, contents = result.dumps[:len(marks)], result.dumps[len(marks):]
    toggles, opening = tuple(map(dict, result.toggles)), None
    if job.opening is not None:
        # The first toggles are those up to the first record, which is the opening's.
        before, toggles = (toggles[0] if toggles else {}), toggles[1:]
        opening = Opening(read_record(records[-1]),
                          read_record(predicted.dumps[len(job.layers)])["cycles"] if predicted else 0, before)
    return Execution(
        cycles=result.cycles, instructions=result.instructions,
        tensors=whole_values({name: from_memory(content, job.tensors[name][0])
                              for name, content in zip(wanted, contents, strict=True)},
                             {name: job.tensors[name][0] for name in wanted}),
        records=tuple(map(read_record, records[:len(job.layers)])), wall_seconds=result.wall_seconds,
        cycles_per_second=result.cycles_per_second,
        toggles=toggles, operands=predicted.operands if predicted else (),
        times=result.times, predicted_cycles=predicted.cycles if predicted else None,
        sleeps=result.sleeps, opening=opening)


_Images = list[tuple[int, bytes | Path]]
_Dumps = list[tuple[int, int]]


def _run_rtl(job: Job, images: _Images, dumps: _Dumps, timing: MemoryTiming, wave: Wave | None,
             count_toggles: bool, steps: Steps) -> RunResult:
    if job.elf is None:
        raise SimulationError("Engine rtl needs a compiled ELF, and this model was compiled without one")
    beside = "" if job.host == HOST_CORE else f" with {job.host}"
    with steps.step(f"Building the simulator of {job.machine.name}{beside}"):
        build_simulator(job.machine, tracing=None if wave is None else wave.format, activity=count_toggles,
                        core=job.host)
    if wave is not None:
        wave.require_layers(len(job.layers))
    elif not count_toggles:
        _profile(job, images, timing, steps)
    layers = [(layer.name, layer.predicted_cycles) for layer in job.layers]
    with wave_draft(wave) as draft:
        simulation = _with_wave(Simulation(images=images, dumps=dumps, noted=True), wave, draft,
                                opens=job.opening is not None)
        with steps.simulation(f"Simulating {job.name} in RTL", layers) as progress:
            result = run_rtl(job.machine, job.elf, replace(simulation, progress=progress), windows=job.windows,
                             timing=timing, count_toggles=count_toggles, host=job.host)
        if wave is not None and draft is not None:
            with steps.step(f"Compressing {wave.path.name}"):
                finish_wave(wave, draft)
    result.require_exit()
    assert result.notes is not None
    result = replace(result, times=measured_times(job.program, result.notes))
    if wave is not None:
        wave.require_shown(result.cycles)
    return result


def _profile(job: Job, images: _Images, timing: MemoryTiming, steps: Steps) -> None:
    """Compile the simulator by a profile of this run, if so many cycles have been and will be simulated on it."""
    assert job.elf is not None
    if not is_worth_profiling(job.machine, sum(layer.predicted_cycles for layer in job.layers), job.host):
        return
    with steps.step(f"Compiling the simulator of {job.machine.name} once more, to run faster"):
        try:
            train_rtl(job.machine, job.elf, Simulation(images=images), windows=job.windows, timing=timing,
                      host=job.host)
        except BuildError as error:
            keep_unprofiled(job.machine, job.host)
            warnings.warn(f"{error}; the simulator stays as it is", RuntimeWarning, stacklevel=2)


def _with_wave(simulation: Simulation, wave: Wave | None, draft: Path | None, *, opens: bool) -> Simulation:
    """Return ``simulation``, of a program that ``opens`` or not, with what a waveform shall show."""
    if wave is None:
        return simulation
    layers = wave.layers
    if opens and layers is not None:  # they are counted by their records
        layers = range(layers.start + 1, layers.stop + 1)
    return replace(simulation, wave=draft, wave_cycles=() if wave.cycles is None else (wave.cycles,),
                   wave_layers=layers, wave_modules=modules_of(wave.scope) if wave.is_fst else ())


def _run_fast(job: Job, images: _Images, dumps: _Dumps, timing: MemoryTiming,
              steps: Steps) -> RunResult:
    contents = [(address, content if isinstance(content, bytes) else content.read_bytes())
                for address, content in images]
    with steps.step(f"Computing {job.name} command by command"):
        try:
            result = run_fast(job.machine, job.program, images=contents, windows=job.windows, dumps=dumps,
                              timing=timing, memory_bytes=job.memory_bytes, core=run_on_core)
        except EncodingError as error:  # of a program that somebody has changed
            raise SimulationError(str(error)) from error
    if result.fault is not None:
        raise SimulationError(f"Program was stopped by a fault of the coprocessor: {result.fault}")
    return result


def show_rate(show: Callable[[str], None]) -> Progress:
    """Return a callback that shows how far a simulation is and how fast."""
    start = time.monotonic()

    def report(cycles: int, mark: int | None) -> None:
        seconds = time.monotonic() - start
        show(f"{cycles:,} cycles, {cycles / seconds:,.0f} per second" if seconds else "")

    return report
