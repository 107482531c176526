"""Cycles, counters and energy of a job without its values: nothing is computed, and nothing compared.

Of what energy depends on, the toggles of the array's operands alone depend on values; they are taken as those of
typical data (``energy/activity.toml``).
"""

from dataclasses import replace

from tilewright.compiler.kernels.staging import call_cycles
from tilewright.energy.pricing import DEFAULT, Pricing
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import EncodedProgram, Function, Program
from tilewright.runtime.execution.accounting import account
from tilewright.runtime.execution.engines import Execution, Opening
from tilewright.runtime.execution.job import Job
from tilewright.runtime.execution.later_calls import later_call
from tilewright.runtime.execution.records import read_record
from tilewright.runtime.execution.report import Report
from tilewright.runtime.execution.shares import layer_counts
from tilewright.sim.cycle_engine import predict_run
from tilewright.sim.timing.command_times import CommandTimes

__all__ = ["CYCLES_ENGINE", "predict_layer_cycles", "predict_opening", "predict_report", "predict_with_times"]

CYCLES_ENGINE = "cycles"
"""Name of the engine in such a report."""


def predict_report(job: Job, memory: MemoryTiming | None = None, pricing: Pricing = DEFAULT) -> Report:
    """Return the report that engine ``fast`` would give, except for values and what depends on them.

    Where weights stay on the chip between calls, it is that of a later call, which finds them there.

    Raises
    ------
    InputError
        If there is no such technology.
    ExecutionError
        If the program waits for what nobody signals.
    """
    return predict_with_times(job, memory, pricing)[0]


def predict_with_times(job: Job, memory: MemoryTiming | None = None,
                       pricing: Pricing = DEFAULT) -> tuple[Report, CommandTimes]:
    """Return the same report and the times of the commands; raises the same errors as :func:`predict_report`."""
    timing = memory or MemoryTiming.default(job.machine)
    job, execution = _predicted(job, timing)
    assert execution.times is not None
    return account(job, CYCLES_ENGINE, timing, execution, pricing), execution.times


def predict_layer_cycles(job: Job, memory: MemoryTiming) -> tuple[list[int], int]:
    """Return the cycles of each layer of a job, in order, and those after the last: the same as in its report.

    Raises
    ------
    ExecutionError
        If the program waits for what nobody signals.
    """
    job, execution = _predicted(job, memory)
    cycles = [each["cycles"] for each in layer_counts(job.layers, execution.records)]
    return cycles, execution.cycles - sum(cycles)


def predict_opening(job: Job, memory: MemoryTiming) -> int:
    """Return the cycles that the first call takes for what it alone loads; 0 where each call loads all."""
    if job.opening is None:
        return 0
    opening = replace(job, program=Program((Function("none", "", ()),), job.program.opening))
    run = predict_run(job.machine, opening.program, memory, call_cycles, _coded_weights(job))
    return read_record(run.records[job.opening])["cycles"]


def _predicted(job: Job, timing: MemoryTiming) -> tuple[Job, Execution]:
    """Return the job and its predicted execution, of a later call."""
    job = replace(job, program=EncodedProgram.of(job.program))
    run = predict_run(job.machine, job.program, timing, call_cycles, _coded_weights(job))
    opening = None if job.opening is None else Opening(read_record(run.records[job.opening]), 0, {})
    execution = Execution(
        cycles=run.cycles, instructions=run.instructions, tensors={},
        records=tuple(read_record(run.records[layer.record]) for layer in job.layers),
        wall_seconds=run.wall_seconds, cycles_per_second=run.cycles / run.wall_seconds, times=run.times,
        opening=opening)
    return later_call(job, execution)


def _coded_weights(job: Job) -> list[tuple[int, bytes]]:
    """Return the images of a job in which weights may lie coded."""
    if not job.machine.coded_weights:
        return []
    return [(address, content if isinstance(content, bytes) else content.read_bytes())
            for address, content in job.images]
