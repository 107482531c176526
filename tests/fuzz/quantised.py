"""Random float graphs as onnxruntime.quantization quantises them, with ranges from random inputs."""

import contextlib
import io
import logging
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from tests.fuzz.choices import Choices
from tests.fuzz.fuzz_graph import FuzzGraph
from tests.fuzz.graphs import focused_graph, random_graph
from tilewright.runtime.compared_run import ONNX_RUNTIME_ERRORS

_SAMPLES = 2


class _Samples(CalibrationDataReader):
    def __init__(self, model: onnx.ModelProto, rng: np.random.Generator) -> None:
        self._left = [{value.name: _drawn(value, rng) for value in model.graph.input} for _ in range(_SAMPLES)]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self._left.pop() if self._left else None


def _drawn(value: onnx.ValueInfoProto, rng: np.random.Generator) -> np.ndarray:
    """Return an input of floats, or an image of bytes."""
    kind = value.type.tensor_type
    shape = [dim.dim_value for dim in kind.shape.dim]
    if kind.elem_type == onnx.TensorProto.UINT8:
        return rng.integers(0, 256, shape, dtype=np.uint8)
    return rng.standard_normal(shape).astype(np.float32)


class QuantiserError(ValueError):
    """ONNX Runtime's quantiser cannot quantise a graph; it has no error of its own for that."""


def through_quantiser(choices: Choices, focus: str = "") -> FuzzGraph:
    """Return a random float graph, quantised: QDQ or QOperator, of int8 or uint8, symmetric or not.

    It has what ``focus`` says, one of `tests.fuzz.graphs.FOCUSES`.

    Raises
    ------
    QuantiserError
        If the quantiser makes no graph of it.
    """
    form = choices.pick((QuantFormat.QDQ, QuantFormat.QDQ, QuantFormat.QOperator))
    activations = choices.pick((QuantType.QInt8, QuantType.QUInt8))
    weights = QuantType.QInt8 if activations is QuantType.QInt8 or choices.chance(50) else QuantType.QUInt8
    per_channel, symmetric = choices.chance(50), choices.chance(50)
    # In the QOperator form its weights stay float, and ONNX Runtime quantises them when it loads the model
    # (weight_bias_quantization.cc): then its result is that of another model.
    transposed = form is QuantFormat.QDQ
    graph = focused_graph(choices, focus, "float", transposed=transposed) if focus else \
        random_graph(choices, "float", transposed=transposed)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), \
            contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        source, target = Path(folder, "float.onnx"), Path(folder, "int8.onnx")
        onnx.save(graph.model, source)
        try:
            quantize_static(
                source, target, _Samples(graph.model, np.random.default_rng(0)), quant_format=form,
                per_channel=per_channel, activation_type=activations, weight_type=weights,
                extra_options={"ActivationSymmetric": symmetric and activations is QuantType.QInt8})
        except (AssertionError, *ONNX_RUNTIME_ERRORS) as error:
            raise QuantiserError(f"quantize_static: {str(error)[:200]}") from error
        finally:
            logging.disable(logging.NOTSET)
        model = onnx.load(target)
    return FuzzGraph(model, "static", tuple(node.op_type for node in model.graph.node))
