"""From an execution to its report: cycles by cause and energy for each layer, commands by mnemonic."""

from collections import Counter
from collections.abc import Sequence

from tilewright.compiler.kernels.staging import bytes_read
from tilewright.compiler.words.word_tensors import is_lower
from tilewright.energy.actions import actions_of
from tilewright.energy.activity import doubts, predict_toggles
from tilewright.energy.energies import EnergyEstimate, sum_energies
from tilewright.energy.estimate import estimate
from tilewright.energy.pricing import DEFAULT, Pricing
from tilewright.errors import SimulationError
from tilewright.isa.counters import COUNTERS
from tilewright.isa.encoding import BY_MNEMONIC, KNOWN
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call, Program
from tilewright.runtime.design.design import Design
from tilewright.runtime.execution.engines import Execution
from tilewright.runtime.execution.job import Job, JobLayer
from tilewright.runtime.execution.records import CAUSES, STALLS, Counts
from tilewright.runtime.execution.report import LayerReport, Report, add_counts
from tilewright.runtime.execution.shares import groups_of, layer_counts, share_groups, share_out
from tilewright.sim.values.core_calls import instructions_of

__all__ = ["account", "count_commands"]


def account(job: Job, engine: str, memory: MemoryTiming, execution: Execution, pricing: Pricing = DEFAULT) -> Report:
    """Return the report of a run.

    Toggles are those that the run has counted, or what energy/activity.py predicts.

    Raises
    ------
    InputError
        If there is no such technology.
    SimulationError
        If the records contradict each other or the run's cycles.
    """
    technology = pricing.load(job.machine.array)
    clock = pricing.clock(technology)
    counts = [_with_core(each, calls) for each, calls in
              zip(layer_counts(job.layers, execution.records), _calls_of(job.program), strict=False)]
    tail = execution.cycles - sum(each["cycles"] for each in counts)
    if tail < 0:
        raise SimulationError(f"Cycles of the layers must not be more than the run's {execution.cycles}, "
                              f"but they are {-tail} more")
    mnemonics, commands = count_commands(job.program, [layer.predicted_cycles for layer in job.layers])
    commands = [each["commands"] for each in share_groups(job.layers, [{"commands": count} for count in commands])]
    shares = share_out(execution.instructions, commands[:len(counts)])
    rest = dict.fromkeys((counter.name for counter in COUNTERS), 0) | {"cycles": tail, "mac_idle_host": tail}
    curved = [*(_curved_words(*each) for each in zip(job.layers, counts, strict=True)), 0]
    toggles = _toggles(job, execution, [*counts, rest], curved)
    doubtful = None if execution.toggles else doubts(job.machine.array)
    asleep = _asleep(execution.sleeps, [each["cycles"] for each in (*counts, rest)])
    energies = [estimate(actions_of(each, job.machine, share, toggled, clock, asleep=slept, curved=words), technology,
                         doubtful) for each, share, toggled, slept, words
                in zip([*counts, rest], [*shares, 0], toggles, asleep, curved, strict=True)]
    layers = tuple(_layer(*each)
                   for each in zip(job.layers, counts, energies[:-1], toggles[:-1], shares, curved[:-1], strict=True))
    return Report(
        model=job.name, machine=job.machine.name, engine=engine, host=job.host, memory=memory,
        multipliers=job.machine.multipliers, cycles=execution.cycles, predicted_cycles=execution.predicted_cycles,
        asleep_cycles=sum(asleep), images=job.batch,
        instructions=mnemonics | {"riscv": execution.instructions},
        energy=sum_energies(energies), technology=pricing.describe(technology), technology_name=technology.name,
        dram=pricing.dram, clock_mhz=clock.mhz, clocks_gated=pricing.gated,
        toggles=add_counts(toggles), toggles_counted=bool(execution.toggles),
        design=Design(machine=job.machine, memory=memory, pricing=pricing).to_json(),
        wall_seconds=execution.wall_seconds, simulated_cycles_per_second=execution.cycles_per_second, layers=layers)


def _asleep(sleeps: Sequence[tuple[int, int]], cycles: Sequence[int]) -> list[int]:
    """Return in how many of the cycles of each layer, and of those behind the last, the host core slept."""
    found, first = [], 0
    for each in cycles:
        found.append(sum(max(0, min(end, first + each) - max(begin, first)) for begin, end in sleeps))
        first += each
    return found


def _curved_words(layer: JobLayer, counts: Counts) -> int:
    """Return how many words of 16 bits of a layer followed a curve: no other table maps words, each as two bytes."""
    return counts["table_read"] // 2 if any(map(is_lower, layer.outputs)) else 0


def _toggles(job: Job, execution: Execution, counts: Sequence[Counts],
             curved: Sequence[int]) -> list[dict[str, int]]:
    """Return the toggles of each layer by block, and those after the last layer.

    Raises
    ------
    SimulationError
        If they were counted up to other records than those of the layers.
    """
    if execution.toggles:
        if len(execution.toggles) != len(counts):
            raise SimulationError(f"Toggles must have been counted up to each of {len(counts) - 1} records and up to "
                                  f"the end, not {len(execution.toggles)} times: status records are not those of the "
                                  "layers")
        before = [dict.fromkeys(execution.toggles[0], 0), *execution.toggles]
        return share_groups(job.layers, [{block: after[block] - first[block] for block in after}
                                         for first, after in zip(before, execution.toggles, strict=False)])
    algorithms = [*(layer.algorithm for layer in job.layers[:len(counts) - 1]), ""]
    operands = [*(execution.operands or [None] * len(counts))]
    for group in groups_of(job.layers):
        operands[group.start:group.stop] = [operands[group.start]] * len(group)
    return [predict_toggles(each, algorithm, bits, job.machine, words)
            for each, algorithm, bits, words in zip(counts, algorithms, operands, curved, strict=False)]


def _layer(layer: JobLayer, counts: Counts, energy: EnergyEstimate, toggles: Counts, instructions: int,
           curved: int) -> LayerReport:
    return LayerReport(
        name=layer.name, kind=layer.kind, algorithm=layer.algorithm, onnx_nodes=layer.onnx_nodes, macs=layer.macs,
        cycles=counts["cycles"], stalls={cause: counts[cause] for cause in STALLS},
        bytes_read=counts["memory_read"], bytes_written=counts["memory_written"],
        activation_bytes_read=counts["activation_read"], energy=energy, reason=layer.reason,
        operator=layer.operator, toggles=toggles, counts=dict(counts), instructions=instructions, curved_words=curved)


def _calls_of(program: Program) -> list[list[Call]]:
    """Return what the host core computes itself in each function of a program."""
    found: list[list[Call]] = [[] for _ in program.functions]
    for index, each in program.actions():
        if isinstance(each, Call):
            found[index].append(each)
    return found


def _with_core(counts: Counts, calls: Sequence[Call]) -> Counts:
    """Return a layer's counts with what the host core's ``calls`` add that the coprocessor's counters do not show.

    They see no access of the core to main memory: each operand is counted once. And all but ``cycles`` wrap at 32 bits,
    while kernels on floats may take longer: those are cycles of the core.
    """
    if not calls:
        return counts
    wrapped = counts["cycles"] - sum(counts[cause] for cause in CAUSES)
    return counts | {
        "mac_idle_host": counts["mac_idle_host"] + wrapped,
        "memory_read": counts["memory_read"] + sum(map(bytes_read, calls)),
        "memory_written": counts["memory_written"] + sum(call.output.span_bytes for call in calls)}


def count_commands(program: Program, cycles: Sequence[int] = ()) -> tuple[dict[str, int], list[int]]:
    """Return how many commands of each mnemonic a program executes, and how many each of its functions does.

    To those of a function that calls a kernel of the host core, the kernel's instructions are added, as expected of the
    ``cycles`` that each function should take.
    """
    mnemonics: Counter[str] = Counter()
    functions: Counter[int] = Counter()
    for index, each in program.actions():
        if isinstance(each, Call):
            functions[index] += instructions_of(each, cycles[index]) if index < len(cycles) else 0
        else:
            mnemonics[each.instruction.mnemonic] += 1
            functions[index] += 1
    return ({mnemonic: mnemonics[mnemonic] for mnemonic in KNOWN if mnemonic in BY_MNEMONIC or mnemonics[mnemonic]},
            [functions[index] for index in range(len(program.functions))])

