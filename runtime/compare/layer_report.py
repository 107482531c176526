"""``tilewright compare``: a model in ONNX Runtime, in the integer reference and on an engine, layer by layer.

Where two part, the program is replayed to name the instruction that wrote the first wrong byte. Of a float model that
was quantised here it also tells what quantisation has cost.
"""

import math
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, JustifyMethod
from rich.table import Table

from tilewright.compiler.compile import Compiled, compile_file, emit_artifact
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.runtime.compare.last_writer import Writer, find_writer
from tilewright.runtime.compare.three_ways import SideBySide, Verdict, side_by_side
from tilewright.runtime.evaluate import Expected, run_reference
from tilewright.runtime.execution.engines import EngineName, execute
from tilewright.runtime.execution.job import Job, job_of_artifact, job_of_compiled
from tilewright.runtime.execution.report_tables import plain
from tilewright.runtime.model_files import choose_inputs
from tilewright.runtime.oracle import onnx_runtime as onnx_reference
from tilewright.runtime.oracle.conversion import quantize_input
from tilewright.runtime.oracle.inputs import node_arg
from tilewright.runtime.oracle.onnx_runtime import FloatReference
from tilewright.runtime.quantise.quantisation_error import QuantisationError, quantisation_error
from tilewright.runtime.quantise.quantised_model import calibration_note, quantised_here
from tilewright.tools.progress import Steps

_TICKS: dict[Verdict, str] = {"equal": "✓", "alone": "✓ from its inputs", "near": "≈", "hidden": "–", "differs": "✗"}

_LEGEND = ("✓ every element equal; ✓ from its inputs: equal if given ONNX Runtime's inputs, a layer before being off; "
           "≈ off as far as is allowed where ONNX Runtime computes in float, one level or the last digits of a float; "
           "– not to be seen in ONNX Runtime; ✗ different")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerComparison:
    """What was found.

    Attributes
    ----------
    model, machine, engine, origin : str
        ``origin`` tells where the input is from.
    ranges : str or None
        What the model's ranges are from, if it was quantised here.
    found : SideBySide
    writer : Writer or None
        Of the first wrong byte, if there is one.
    error : QuantisationError or None
        If the model was quantised here.
    untrusted : str
        Why ONNX Runtime's tensors were not compared with, if they were not.
    """

    model: str
    machine: str
    engine: EngineName
    origin: str
    ranges: str | None
    found: SideBySide
    writer: Writer | None
    error: QuantisationError | None
    untrusted: str = ""

    @property
    def matches(self) -> bool:
        """Whether no layer differs where it must not."""
        return self.found.divergence is None

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers; the keys are a contract."""
        ratios = {each.tensor: each.sqnr for each in self.error.layers} if self.error else {}
        rows = [{"index": row.index, "name": row.name, "by": row.kind, "tensor": row.tensor, "shape": list(row.shape),
                 "exact": row.exact, "onnx_runtime": row.onnx_runtime, "engine": row.engine, "off": row.off,
                 "sqnr_db": _finite(ratios.get(row.tensor))} for row in self.found.rows]
        return {
            "model": self.model, "machine": self.machine, "engine": self.engine, "input": self.origin,
            "ranges": self.ranges, "matches": self.matches,
            "onnxruntime": {"version": onnx_reference.VERSION, "settings": onnx_reference.settings(),
                            "not_compared": self.untrusted or None},
            "layers": rows, "layers_in_all": self.found.layers,
            "divergence": asdict(self.found.divergence) if self.found.divergence else None,
            "writer": asdict(self.writer) if self.writer else None,
            "quantisation": None if self.error is None else {
                "samples": self.error.samples, "top1_agreeing": self.error.agreeing, "top1_answers": self.error.answers,
                "worst": [each.layer for each in self.error.worst]},
        }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def compare_layers(model: Path, machine: Machine, engine: EngineName, input_file: Path | None, *,
                   steps: Steps) -> LayerComparison:
    """Compile an ONNX file with every tensor kept, run it three ways, and compare.

    Raises
    ------
    CompileError
        If the model is invalid or not supported.
    InputError
        If the input file does not hold the model's inputs, or ONNX Runtime refuses the model.
    SimulationError
        If the program does not end as it must.
    """
    with steps.step(f"Compiling {model.name}"):
        compiled = compile_file(model, machine, keep_tensors=True)
    network = compiled.network
    inputs = choose_inputs(network.inputs, model, input_file)
    tensors = {info.name: quantize_input(info, inputs.arrays[node_arg(info).name]) for info in network.inputs}
    with steps.step("Running ONNX Runtime"):
        expected = _onnx_runtime(model, network, inputs.arrays)
    with steps.step("Running the integer reference"):
        ours = run_network(network, tensors)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        job = _job(compiled, model, engine, Path(folder))
        execution = execute(job, engine, tensors, job.lasting, MemoryTiming.default(machine), steps=steps)
        found = side_by_side(network, job, expected.tensors, ours, execution.tensors)
        writer = None
        if found.divergence is not None:
            with steps.step("Looking for the instruction that wrote it"):
                writer = find_writer(job, tensors, found.divergence.address)
    quantised = quantised_here(model)
    error = quantisation_error(quantised, network, steps) if quantised else None
    return LayerComparison(model=model.stem, machine=machine.name, engine=engine, origin=inputs.origin,
                           ranges=calibration_note(model), found=found, writer=writer, error=error,
                           untrusted=expected.untrusted)


def _onnx_runtime(model: Path, network: Network, inputs: Mapping[str, np.ndarray]) -> Expected:
    """Return what ONNX Runtime makes of as many of a network's tensors as it shows."""
    floats = {name for name, info in network.tensors.items() if info.dtype == "float32"}
    found = run_reference(model, inputs, floats)
    if not found.untrusted and all(info.dtype != "int8" for info in network.tensors.values()):
        # Nothing depends on what is fused, and without fusion there is more to be seen.
        found.tensors.update(FloatReference(model, floats).run(inputs))
    return found


def _job(compiled: Compiled, model: Path, engine: EngineName, folder: Path) -> Job:
    if engine == "fast":
        return job_of_compiled(compiled, model.stem)
    return job_of_artifact(emit_artifact(compiled, model, folder / model.stem))


# ---- for a person


_COLUMNS: tuple[tuple[str, JustifyMethod], ...] = (
    ("", "right"), ("layer", "left"), ("by", "left"), ("tensor", "right"), ("reference =\nONNX Runtime", "left"),
    ("engine =\nreference", "left"))


def print_comparison(comparison: LayerComparison, out: Console) -> None:
    """Print the table of the layers and what follows from it."""
    out.print(comparison_table(comparison))
    for line in summary(comparison):
        out.print(plain(line), highlight=False, soft_wrap=True)


def comparison_table(comparison: LayerComparison) -> Table:
    """Return the table of the layers up to the first that differs."""
    table = Table(title=plain(f"{comparison.model} on {comparison.machine}: ONNX Runtime {onnx_reference.VERSION}, "
                              f"integer reference, engine {comparison.engine}"))
    columns = (*_COLUMNS, ("SQNR, dB", "right")) if comparison.error else _COLUMNS
    for head, justify in columns:
        table.add_column(head, justify=justify, overflow="fold", no_wrap=justify == "right")
    ratios = {each.tensor: f"{each.sqnr:.1f}" for each in comparison.error.layers} if comparison.error else {}
    for row in comparison.found.rows:
        tick = _TICKS[row.onnx_runtime] + (f" {row.off} off" if row.onnx_runtime in ("near", "differs") else "")
        shape = "x".join(map(str, row.shape)) or "1"
        table.add_row(str(row.index), plain(row.name), row.kind, shape, tick, _TICKS[row.engine],
                      *([ratios.get(row.tensor, "–")] if comparison.error else []))
    return table


def summary(comparison: LayerComparison) -> list[str]:
    """Return what holds for the comparison, one line each."""
    found, error = comparison.found, comparison.error
    lines = [_LEGEND, f"ONNX Runtime {onnx_reference.VERSION}: {onnx_reference.settings()}",
             f"input: {comparison.origin}"]
    if comparison.ranges is not None:
        lines.append(comparison.ranges)
    if comparison.untrusted:
        lines.append(comparison.untrusted)
    if error is not None:
        share = f"{100 * error.agreeing / error.answers:.1f} %" if error.answers else "none"
        worst = ", ".join(f"{each.layer} ({each.sqnr:.1f} dB)" for each in error.worst)
        lines.append(f"int8 against float over {error.samples} calibration samples: top-1 agrees in {error.agreeing} "
                     f"of {error.answers} answers ({share}); worst layers: {worst or 'none could be compared'}")
    if found.divergence is not None:
        lines.append(str(found.divergence))
        lines += _written(comparison)
        return lines
    near = [row for row in found.rows if row.onnx_runtime == "near"]
    hidden = sum(row.onnx_runtime == "hidden" for row in found.rows)
    equal = found.layers - len(near) - hidden
    lines.append(f"{found.layers} layers: the engine equals the integer reference in every one, and that equals ONNX "
                 f"Runtime in {equal}; {len(near)} off as far as is allowed, {hidden} not to be seen there")
    return lines


def _written(comparison: LayerComparison) -> list[str]:
    """Return what is known of how the first wrong element came to be."""
    writer, divergence = comparison.writer, comparison.found.divergence
    assert divergence is not None
    if writer is None:
        return ["no instruction of the program writes that address"]
    lines = [f"written by {writer}", f"    {writer.text}"]
    if writer.function_index != divergence.layer:
        lines.append(f"which is not of this layer: {writer.function} has overwritten it")
    lines.append(f"replayed by itself, the program writes the byte {writer.value} there")
    return lines
