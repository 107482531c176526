"""Run ranges of a model's layers in RTL and compare them with ONNX Runtime: ``--layers`` and ``--jobs``."""

from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.compiler.compile import fit_network
from tilewright.compiler.emit.artefact import ArtefactError, load_artefact
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.memory_map import words_of
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.energy.pricing import DEFAULT, Pricing
from tilewright.errors import InputError
from tilewright.isa.extension import extension_of
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.runtime.compared_run import (
    ComparedRun,
    model_outputs,
    public_outputs,
    require_folder,
    run_reference,
)
from tilewright.runtime.model_source import ModelSource, choose_inputs
from tilewright.runtime.oracle.comparison import compare, compare_outputs
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input
from tilewright.runtime.oracle.expected_tensors import inexact_tensors, with_parts
from tilewright.runtime.oracle.inputs import node_arg
from tilewright.runtime.oracle.value_ranges import tensor_statistics
from tilewright.runtime.ranges.finished_runs import StoredRuns
from tilewright.runtime.ranges.ranges import balance, parse_range
from tilewright.runtime.ranges.runner import RangeRunner, describe, merge_reports
from tilewright.tools.progress import Steps
from tilewright.tools.toolchain import cache_folder

__all__ = ["RangeRequest", "run_artefact_ranges", "run_ranges"]

_RANGES_PER_JOB = 4
"""So many ranges for each process: what an interruption can lose, against starts and borders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRequest:
    """A request for a simulation by ranges.

    Attributes
    ----------
    layers : str or None
        ``A:B``, or None for all.
    jobs : int or None
        Simulate so many ranges of about equal length at a time; None for all layers in one range.
    fresh : bool
        Simulate again what an earlier run has finished.
    pricing : Pricing
    memory : MemoryTiming or None
        Of main memory; None for the machine's default.
    """

    layers: str | None = None
    jobs: int | None = None
    fresh: bool = False
    pricing: Pricing = DEFAULT
    memory: MemoryTiming | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise InputError(f"Jobs must be one or more, not {self.jobs}")


def run_ranges(source: ModelSource, machine: Machine, input_file: Path | None, request: RangeRequest, *,
               options: Options = BEST, steps: Steps) -> ComparedRun:
    """Simulate layers of a model in RTL, by ranges, and compare every tensor with ONNX Runtime.

    Raises
    ------
    CompileError
        If the model is invalid or not supported.
    InputError
        If there are no such layers, or the input file does not hold the model's inputs.
    SimulationError
        If a program does not end as it must.
    """
    with steps.step(f"Planning {source.path.name}"):
        planned = _Planned.of(source.path, source.path.stem, machine, options)
    return _run(planned, source, input_file, request, steps)


def run_artefact_ranges(folder: Path, input_file: Path | None, request: RangeRequest, *,
                        steps: Steps) -> ComparedRun:
    """Do so with the layers of a compiled model: each range is compiled as the whole was.

    Raises
    ------
    ArtefactError
        If the folder holds no compiled model, or one whose layers are not those that its ONNX file has now.
    CompileError, InputError, SimulationError
        As :func:`run_ranges` does.
    """
    artefact = load_artefact(require_folder(folder))
    manifest = artefact.manifest
    with steps.step(f"Planning {manifest.model}"):
        planned = _Planned.of(artefact.model, manifest.model, manifest.machine, manifest.options)
    if [(layer.name, layer.writes) for layer in planned.network.layers] != [(layer.name, layer.outputs)
                                                                            for layer in manifest.layers]:
        raise ArtefactError(f"Artefact {folder} must have the layers of its model.onnx before some of them can be "
                            "simulated, and has others: compile the model again")
    return _run(planned, ModelSource.of(artefact.model), input_file, request, steps)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A network as it fits a machine, for whom and how it is compiled, and the predicted cycles of its layers."""

    network: Network
    machine: Machine
    options: Options
    predicted: list[int]

    @classmethod
    def of(cls, model: Path, name: str, machine: Machine, options: Options) -> "_Planned":
        if options.batch > 1:
            raise InputError(f"Ranges of layers must run on one image, not on a batch of {options.batch}: leave out "
                             "--layers and --jobs, or compile without --batch")
        # Each range is a run of its own, and begins with an empty chip.
        options = replace(options, keep_weights=False)
        read = compile_network(model, options, extension_of(machine))
        network, plans = fit_network(replace(read, name=name), machine, options)
        return cls(network, machine, options, [plan.cost.cycles for plan in plans])


def _run(planned: _Planned, source: ModelSource, input_file: Path | None, request: RangeRequest,
         steps: Steps) -> ComparedRun:
    network, machine, predicted = planned.network, planned.machine, planned.predicted
    chosen = parse_range(request.layers or ":", len(network.layers))
    inputs = choose_inputs(network.inputs, source, input_file, network.unread, network.defaults)
    tensors = {info.name: quantise_input(info, inputs.arrays[node_arg(info).name]) for info in network.inputs}
    with steps.step("Computing the inputs of the layers"):
        values = run_network(network, tensors)
    runner = RangeRunner(network=network, machine=machine, timing=request.memory or MemoryTiming.default(machine),
                         options=planned.options, values=values, predicted=predicted,
                         runs=StoredRuns(cache_folder() / "runs"), fresh=request.fresh,
                         pricing=request.pricing)
    jobs = request.jobs
    ranges = [chosen] if jobs is None else balance(chosen, predicted, _RANGES_PER_JOB * jobs)
    runs = runner.run(ranges, jobs or 1, steps)
    computed = {name: tensor for run in runs for name, tensor in run.tensors.items()}
    outputs = [(layer.name, words_of(layer.output, network.tensors))
               for layer in network.layers[chosen.first:chosen.stop]]
    computed = {name: computed[name] for _, name in outputs}
    with steps.step("Comparing with ONNX Runtime"):
        expected = run_reference(source.path, inputs.arrays)
        inexact = inexact_tensors([(layer.reads, layer.writes, layer.exact) for layer in network.layers],
                                  network.tensors)
        comparison = compare(outputs, computed, with_parts(expected.tensors, network.tensors), inexact,
                             expected.untrusted)
        public = {node_arg(info).name: dequantise_output(info, computed[info.name]) for info in network.outputs
                  if info.name in computed}
        comparison = compare_outputs(model_outputs(network.outputs, public, inexact),
                                     public_outputs(public, [expected]), comparison)
    report = replace(merge_reports(runs, network.name), matches_reference=comparison.matches,
                     judged=comparison.of_layers, judged_outputs=comparison.of_outputs,
                     notes=(*source.notes, f"input: {inputs.origin}", describe(runs), str(comparison)))
    zero_points = {name: info.zero_point for name, info in network.tensors.items()}
    return ComparedRun(
        report=report, comparison=comparison, outputs=public,
        statistics=tensor_statistics(outputs, computed, zero_points))
