"""The question to every twin: has it the plain model's values, bit by bit, and its cycles, within a twentieth?"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.external_data_helper import set_external_data
from onnxruntime import GraphOptimizationLevel as Level

from tests.fuzz.twins.rewriting import Step, Twin, twin_of
from tests.fuzz.twins.sources import Source, plain_model
from tests.support.exactness import random_inputs
from tilewright.compiler.compile import Compiled, compile_layers
from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import preset
from tilewright.runtime.compared_run import ONNX_RUNTIME_ERRORS
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.prediction import predict_report
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input
from tilewright.runtime.oracle.onnx_runtime import Reference

__all__ = ["MOST", "Finding", "judge", "not_a_twin", "smallest", "write_twin"]

MOST = 1.05
"""Cycles of a twin, by the plain model's."""

_MACHINE = preset("base")

_WITH_WEIGHTS = {"QuantizeLinear", "DequantizeLinear", "Conv", "QLinearConv", "QLinearMatMul", "QGemm", "Gemm",
                 "MatMul"}
"""Operators whose constants say nothing about shapes."""

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Finding:
    """What was found out about one twin.

    Attributes
    ----------
    outcome : str
        ``equal``; ``no plain`` if the plain model itself is not compiled or not run; ``no twin`` if ONNX Runtime
        computes something else, so that the rewriting is wrong; ``refused``, ``values``, ``cycles`` or ``error``, of
        either model.
    text : str
        A sentence.
    factor : float
        Cycles by the plain model's; 0 if it has none.
    """

    outcome: str
    text: str = ""
    factor: float = 0.0

    @property
    def fails(self) -> bool:
        return self.outcome not in ("equal", "no plain")


@dataclass(frozen=True)
class _Plain:
    inputs: Arrays
    outputs: Arrays
    cycles: int


def judge(source: Source, steps: Sequence[Step], *, verify: bool = True) -> tuple[Finding, tuple[Step, ...]]:
    """Compare a twin with its plain model; also return the steps that found a place.

    ``verify`` asks ONNX Runtime whether it is a twin.
    """
    try:
        model, plain = plain_model(source), _plain(source)
    except Exception as error:  # noqa: BLE001
        return Finding("error", f"of the plain model: {type(error).__name__}: {error}"), ()
    if model is None or isinstance(plain, str):
        return Finding("no plain", plain if isinstance(plain, str) else "no graph"), ()
    twin = twin_of(model, steps)
    if not twin.applied:
        return Finding("equal", "no rewriting has a place", 1.0), ()
    with tempfile.TemporaryDirectory(prefix="tilewright-twin-") as folder:
        path = write_twin(twin, Path(folder, "twin.onnx"))
        if verify and (text := not_a_twin(model, twin, path, plain.inputs)):
            return Finding("no twin", text), twin.applied
        return _compared(path, plain), twin.applied


def _compared(path: Path, plain: _Plain) -> Finding:
    try:
        network = compile_network(path)
        compiled = compile_layers(network, _MACHINE, keep_tensors=True)
    except CompileError as error:
        return Finding("refused", str(error))
    except Exception as error:  # noqa: BLE001
        return Finding("error", f"{type(error).__name__}: {error}")
    factor = _cycles(compiled) / plain.cycles
    outputs = _outputs(network, plain.inputs)
    if list(outputs) != list(plain.outputs):
        return Finding("values", f"outputs are {', '.join(outputs)}, not {', '.join(plain.outputs)}", factor)
    for name, expected in plain.outputs.items():
        if outputs[name].dtype != expected.dtype or not np.array_equal(outputs[name], expected, equal_nan=True):
            return Finding("values", f"output {name} differs in {_differing(outputs[name], expected)}", factor)
    if factor > MOST:
        return Finding("cycles", f"{factor:,.2f} times the cycles", factor)
    return Finding("equal", "", factor)


def _differing(found: np.ndarray, expected: np.ndarray) -> str:
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"type or shape: {found.dtype} {found.shape}, not {expected.dtype} {expected.shape}"
    return f"{np.count_nonzero(found != expected)} of {found.size} elements"


@lru_cache(64)
def _plain(source: Source) -> _Plain | str:
    """Return what a plain model computes from random inputs and its cycles, or why that is not known."""
    model = plain_model(source)
    if model is None:
        return "no graph"
    try:
        network = compile_network(model.SerializeToString())
        compiled = compile_layers(network, _MACHINE, keep_tensors=True)
        inputs = random_inputs(network, np.random.default_rng(0))
        _as_written(model.SerializeToString(), inputs)
    except (CompileError, *ONNX_RUNTIME_ERRORS) as error:
        return str(error)
    return _Plain(inputs, _outputs(network, inputs), _cycles(compiled))


def _outputs(network: Network, inputs: Arrays) -> dict[str, np.ndarray]:
    """Return the outputs by the integer reference."""
    tensors = run_network(network, {info.name: quantise_input(info, inputs[info.onnx_name]) for info in network.inputs})
    return {info.onnx_name: dequantise_output(info, tensors[info.name]) for info in network.outputs}


def _cycles(compiled: Compiled) -> int:
    return predict_report(job_of_compiled(compiled, "twin")).cycles


def write_twin(twin: Twin, path: Path) -> Path:
    """Write a twin to ``path``, and its data beside it if they belong there.

    What shapes follow from stays in the file: without it ONNX infers none.
    """
    if not twin.external:
        onnx.save(twin.model, path)
        return path
    model = onnx.ModelProto()
    model.CopyFrom(twin.model)
    shaping = {name for node in model.graph.node if node.op_type not in _WITH_WEIGHTS for name in node.input}
    with path.with_suffix(".data").open("wb") as data:
        for tensor in model.graph.initializer:
            if tensor.name not in shaping:
                content = numpy_helper.to_array(tensor).tobytes()
                tensor.raw_data = content
                set_external_data(tensor, path.with_suffix(".data").name, data.tell(), len(content))
                tensor.ClearField("raw_data")
                for values in ("float_data", "int32_data", "int64_data"):
                    tensor.ClearField(values)
                data.write(content)
    path.write_bytes(model.SerializeToString())
    return path


def not_a_twin(plain: onnx.ModelProto, twin: Twin, path: Path, inputs: Arrays) -> str:
    """Tell how ONNX Runtime's outputs of the twin differ from those of the plain model, in no other way than in type.

    Sums are compared in its integer kernels, and everything else without any optimisation, as the file says.
    """
    try:
        if twin.half_way.SerializeToString() != plain.SerializeToString():
            found, expected = (_integers(model, inputs) for model in (twin.half_way, plain))
            for name in plain_outputs(plain):
                if not np.array_equal(found[name], expected[name], equal_nan=True):
                    return f"integer kernels: {name} differs in {_differing(found[name], expected[name])}"
        found, expected = (_as_written(each, inputs) for each in (path, twin.half_way.SerializeToString()))
    except ONNX_RUNTIME_ERRORS as error:
        return f"ONNX Runtime: {error}"
    for name, each in expected.items():
        if not np.array_equal(found[name], each, equal_nan=True):
            return f"{name} differs in {_differing(found[name], each)}"
    return ""


def plain_outputs(model: onnx.ModelProto) -> list[str]:
    return [value.name for value in model.graph.output]


def _integers(model: onnx.ModelProto, inputs: Arrays) -> dict[str, np.ndarray]:
    return Reference(model.SerializeToString()).run(inputs)


def _as_written(model: Path | bytes, inputs: Arrays) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = Level.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    options.enable_mem_reuse = False    # see findings/onnxruntime-ceil-shapes.sh
    found = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in found.get_outputs()]
    return dict(zip(names, found.run(names, dict(inputs)), strict=True))


def smallest(source: Source, steps: Sequence[Step], outcome: str) -> tuple[Step, ...]:
    """Return the steps left when each that is not needed for ``outcome`` has been left out."""
    left = list(steps)
    for step in steps:
        fewer = [each for each in left if each is not step]
        if fewer and judge(source, fewer)[0].outcome == outcome:
            left = fewer
    return tuple(left)
