"""``tilewright compare``: a model in ONNX Runtime, in the integer reference and on an engine, layer by layer.

Where two part, the program is replayed to name the instruction that wrote the first wrong byte. Of a float model that
was quantised here it also tells what quantisation has cost.
"""

import math
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.compiler.channels.whole_tensors import in_model, whole_values
from tilewright.compiler.compile import Compiled, compile_file, emit_artefact
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.runtime.changes_by_session import changes_said
from tilewright.runtime.compare.last_writer import Writer, find_writer
from tilewright.runtime.compare.three_ways import SideBySide, side_by_side
from tilewright.runtime.compared_run import Expected, model_outputs, public_outputs, run_reference
from tilewright.runtime.execution.engines import EngineName, execute
from tilewright.runtime.execution.job import Job, job_of_artefact, job_of_compiled
from tilewright.runtime.execution.verdict import Judged, TensorVerdict, counts, not_compared
from tilewright.runtime.model_source import ModelSource, choose_inputs
from tilewright.runtime.oracle import onnx_runtime as onnx_reference
from tilewright.runtime.oracle.comparison import Comparison, compare_outputs
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input
from tilewright.runtime.oracle.expected_tensors import inexact_tensors
from tilewright.runtime.oracle.inputs import node_arg
from tilewright.runtime.oracle.onnx_runtime import FloatReference
from tilewright.runtime.quantise.quantisation_error import QuantisationError, quantisation_error
from tilewright.runtime.quantise.quantised_model import RangesOrigin
from tilewright.tools.progress import Steps

__all__ = ["LayerComparison", "compare_layers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerComparison:
    """Findings of a comparison.

    Attributes
    ----------
    model, machine, engine, origin : str
        ``origin`` is the source of the input.
    ranges : RangesOrigin or None
        Source of the model's ranges, if it was quantised here.
    found : SideBySide
    writer : Writer or None
        Of the first wrong byte, if there is one.
    error : QuantisationError or None
        If the model was quantised here.
    untrusted : str
        Reason why ONNX Runtime's tensors were not compared; empty if they were.
    changes : tuple of str
        Sentences on what a session of ONNX Runtime changes in the user's file by itself.
    """

    model: str
    machine: str
    engine: EngineName
    origin: str
    ranges: RangesOrigin | None
    found: SideBySide
    writer: Writer | None
    error: QuantisationError | None
    untrusted: str = ""
    changes: tuple[str, ...] = ()

    @property
    def matches(self) -> bool:
        """Whether every layer and output is equal where it must be."""
        return self.found.divergence is None and all(each.kind != "differs" for each in self.output_verdicts)

    @property
    def verdicts(self) -> list[TensorVerdict]:
        """Those of the layers, of which such behind one that differs were not compared."""
        rows = [row.verdict for row in self.found.rows]
        return rows + [not_compared("a layer before it differs")] * (self.found.layers - len(rows))

    @property
    def output_verdicts(self) -> list[TensorVerdict]:
        """Those of the model's outputs."""
        return [each.verdict for each in self.found.outputs]

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers; the keys are a contract."""
        ratios = {each.tensor: each.sqnr for each in self.error.layers} if self.error else {}
        rows = [row.to_json() | {"sqnr_db": _finite(ratios.get(row.tensor))} for row in self.found.rows]
        return {
            "model": self.model, "machine": self.machine, "engine": self.engine, "input": self.origin,
            "reference": "integer",
            "ranges": self.ranges.sentence if self.ranges else None, "matches": self.matches,
            "onnxruntime": {"version": onnx_reference.VERSION, "settings": onnx_reference.settings(),
                            "not_compared": self.untrusted or None, "changes": list(self.changes)},
            "compared": {"layers": counts(self.verdicts),
                         "outputs": counts(self.output_verdicts)},
            "outputs": [each.to_json() for each in self.found.outputs],
            "layers": rows, "layers_in_all": self.found.layers,
            "divergence": asdict(self.found.divergence) if self.found.divergence else None,
            "writer": asdict(self.writer) if self.writer else None,
            "quantisation": None if self.error is None else {
                "samples": self.error.samples, "top1_agreeing": self.error.agreeing, "top1_answers": self.error.answers,
                "worst": [each.layer for each in self.error.worst]},
        }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def compare_layers(source: ModelSource, machine: Machine, engine: EngineName, input_file: Path | None, *,
                   steps: Steps, memory: MemoryTiming | None = None) -> LayerComparison:
    """Compile a model with every tensor kept, run it three ways, and compare; ``memory`` None is the default timing.

    Raises
    ------
    CompileError
        If the model is invalid or not supported.
    InputError
        If the input file does not hold the model's inputs, or ONNX Runtime refuses the model.
    SimulationError
        If the program does not end correctly.
    """
    model = source.path
    with steps.step(f"Compiling {model.name}"):
        compiled = compile_file(model, machine, keep_tensors=True)
    network = compiled.network
    inputs = choose_inputs(network.inputs, source, input_file, network.unread, network.defaults)
    tensors = {info.name: quantise_input(info, inputs.arrays[node_arg(info).name]) for info in network.inputs}
    with steps.step("Running ONNX Runtime"):
        expected = _onnx_runtime(model, network, inputs.arrays)
    with steps.step("Running the integer reference"):
        ours = whole_values(run_network(network, tensors), network.tensors)
        network = replace(network, tensors=in_model(network.tensors))
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        job = _job(compiled, model, engine, Path(folder))
        execution = execute(job, engine, tensors, job.lasting, memory or MemoryTiming.default(machine), steps=steps)
        found = side_by_side(network, job, expected.tensors, ours, execution.tensors)
        found = found.with_outputs(_outputs(network, job, ours, expected))
        writer = None
        if found.divergence is not None:
            with steps.step("Searching for the instruction that wrote it"):
                writer = find_writer(job, tensors, found.divergence.address)
    public = {node_arg(info).name: dequantise_output(info, ours[info.name]) for info in network.outputs}
    changes = changes_said(source, inputs.arrays, model_outputs(network.outputs, public, ()),
                           public_outputs(public, [expected]))
    error = quantisation_error(source.quantised, network, steps) if source.quantised else None
    return LayerComparison(model=model.stem, machine=machine.name, engine=engine, origin=inputs.origin,
                           ranges=source.ranges, found=found, writer=writer, error=error,
                           untrusted=expected.untrusted, changes=changes)


def _onnx_runtime(model: Path, network: Network, inputs: Mapping[str, np.ndarray]) -> Expected:
    """Return what ONNX Runtime makes of as many of a network's tensors as it shows."""
    floats = {name for name, info in network.tensors.items() if info.dtype == "float32"}
    found = run_reference(model, inputs, floats)
    if not found.untrusted and all(info.dtype != "int8" for info in network.tensors.values()):
        # Nothing depends on what is fused, and without fusion there is more to be seen.
        found.tensors.update(FloatReference(model, floats).run(inputs))
    return found


def _outputs(network: Network, job: Job, ours: Mapping[str, np.ndarray], expected: Expected) -> tuple[Judged, ...]:
    """Return the verdict of each output of the model, as the integer reference computes it."""
    infos = {name: info for name, (info, _) in job.tensors.items()}
    inexact = inexact_tensors([(layer.inputs, layer.outputs, layer.exact) for layer in job.layers], infos)
    public = {node_arg(info).name: dequantise_output(info, ours[info.name]) for info in network.outputs}
    nothing = Comparison((), untrusted=expected.untrusted)
    return compare_outputs(model_outputs(network.outputs, public, inexact), public_outputs(public, [expected]),
                           nothing).of_outputs


def _job(compiled: Compiled, model: Path, engine: EngineName, folder: Path) -> Job:
    if engine == "fast":
        return job_of_compiled(compiled, model.stem)
    return job_of_artefact(emit_artefact(compiled, model, folder / model.stem))
