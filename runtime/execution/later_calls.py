"""A call behind the first, from a run that begins as the first does: without what that one alone loads.

Every simulation begins with an empty chip and runs the opening of the program. What is on the chip behind it is what a
call has left there, so the rest is a later call: its counters are those of the end less those behind the opening.
"""

from dataclasses import replace

from tilewright.errors import SimulationError
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.program import Program
from tilewright.runtime.execution.engines import Execution
from tilewright.runtime.execution.job import Job
from tilewright.runtime.execution.records import Counts
from tilewright.sim.host_commands import HostRegisters
from tilewright.sim.timing.command_times import CallTime, CommandTimes

__all__ = ["kept_sentences", "later_call", "later_times", "opening_bytes", "opening_commands"]

_WORD = 1 << 32


def opening_commands(program: Program) -> list[EncodedCommand]:
    """Return the commands that the first call alone sends."""
    return [command for _, command in Program((), program.opening).commands()]


def opening_bytes(job: Job) -> int:
    """Return the bytes of weights, parameters and tables that stay on the chip from call to call."""
    commands = (each for each in opening_commands(job.program) if each.instruction.mnemonic == "ldw")
    return sum(each.operands.get("words", 0) for each in commands) * job.machine.bus_bytes


def kept_sentences(job: Job, cycles: int) -> tuple[str, ...]:
    """Return a sentence on what stays on the chip, and on the ``cycles`` that its loads take; none without."""
    if job.opening is None:
        return ()
    kept = f"weights: {opening_bytes(job):,} bytes stay on the chip between calls"
    return (f"{kept}; the first call, and one behind a reset or another network, loads them in {cycles:,} cycles more",)


def later_call(job: Job, execution: Execution) -> tuple[Job, Execution]:
    """Return the job and the run of a later call; those given where each call loads all.

    Raises
    ------
    SimulationError
        If the run ended before its opening did.
    """
    opening = execution.opening
    if opening is None:
        return job, execution
    cycles, commands = opening.counts["cycles"], opening_commands(job.program)
    if execution.cycles < cycles:
        raise SimulationError(f"Loads of the first call must end within its {execution.cycles} cycles, not at {cycles}")
    host = HostRegisters()
    toggles = tuple({block: after[block] - count for block, count in opening.toggles.items()}
                    for after in execution.toggles)
    predicted = execution.predicted_cycles
    return replace(job, program=Program(job.program.functions), opening=None), replace(
        execution, cycles=execution.cycles - cycles, opening=None, toggles=toggles,
        instructions=execution.instructions - sum(map(host.instructions, commands)),
        records=tuple(_since(record, opening.counts) for record in execution.records),
        predicted_cycles=None if predicted is None else predicted - opening.predicted_cycles,
        times=None if execution.times is None else later_times(execution.times, len(commands), cycles),
        sleeps=tuple((max(0, first - cycles), end - cycles) for first, end in execution.sleeps if end > cycles))


def _since(record: Counts, before: Counts) -> Counts:
    """Return the counters of ``record`` since those ``before``; all but ``cycles`` wrap at 32 bits."""
    return {name: (value - before[name]) % _WORD for name, value in record.items()} | {
        "cycles": record["cycles"] - before["cycles"]}


def later_times(times: CommandTimes, commands: int, cycles: int) -> CommandTimes:
    """Return ``times`` without the first ``commands``, from cycle ``cycles`` on."""
    def later(values: list[int]) -> list[int]:
        return [max(0, value - cycles) for value in values[commands:]]

    traffic = times.traffic
    if traffic is not None:
        first = cycles // traffic.interval
        traffic = replace(traffic, read=traffic.read[first:], written=traffic.written[first:])
    calls = [CallTime(each.function, each.kernel, max(0, each.begin - cycles), each.end - cycles,
                      each.before - commands) for each in times.calls]
    return CommandTimes(functions=times.functions[commands:], asked=later(times.asked), sent=later(times.sent),
                        taken=later(times.taken), begun=later(times.begun), ended=later(times.ended),
                        moved=times.moved[commands:], calls=calls, measured=times.measured, traffic=traffic)
