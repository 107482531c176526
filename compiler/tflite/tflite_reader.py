"""From a .tflite file to an ONNX model of the same integers: which function adds each of its operators.

The reference is LiteRT's default session, which leaves convolutions, dense layers, sums and products to XNNPACK. Its
requantisation is ONNX Runtime's. Where an operator's is not, its numbers are chosen so that every result is the same
(`adder`, `pools`), or it becomes a table (`level_functions`); a note names what is left, up to one level off.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx

from tilewright.compiler.errors import UnsupportedNodeError, raise_all
from tilewright.compiler.tflite import comparisons as choices
from tilewright.compiler.tflite import element_moves as moves
from tilewright.compiler.tflite import level_functions as tables
from tilewright.compiler.tflite import pools, resizing
from tilewright.compiler.tflite import two_operands as pairs
from tilewright.compiler.tflite import weighted_sums as products
from tilewright.compiler.tflite.early_quantisation import with_early_quantisation
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.compiler.tflite.graph_builder import TITLES, GraphBuilder
from tilewright.compiler.tflite.mark import EngineName
from tilewright.compiler.tflite.stored.tensors import TfliteModel, TfliteOperator, TfliteTensor

__all__ = ["OPERATORS", "TFLITE_NOTE", "onnx_of_tflite"]

TFLITE_NOTE = "read from TensorFlow Lite; what is equal to LiteRT's default session is in docs/tflite.md"
_KERNELS_NOTE = "read from TensorFlow Lite, in the arithmetic of {}; what is equal is in docs/tflite.md"

OPERATORS: dict[str, Callable[[GraphBuilder, TfliteOperator], None]] = {
    "ABS": tables.elementary,
    "ADD": pairs.add,
    "ARG_MAX": pools.place,
    "ARG_MIN": pools.place,
    "AVERAGE_POOL_2D": pools.average_pool,
    "BATCH_MATMUL": products.batch_product,
    "CAST": choices.cast,
    "CEIL": tables.elementary,
    "CONCATENATION": moves.concatenate,
    "CONV_2D": products.convolution,
    "COS": tables.elementary,
    "DEPTHWISE_CONV_2D": products.depthwise,
    "DEPTH_TO_SPACE": moves.depth_to_space,
    "DEQUANTIZE": tables.dequantise,
    "DIV": pairs.divide,
    "ELU": tables.elementary,
    "EQUAL": choices.compare,
    "EXP": tables.elementary,
    "EXPAND_DIMS": moves.reshape,
    "FLOOR": tables.elementary,
    "FULLY_CONNECTED": products.fully_connected,
    "GATHER": moves.gather,
    "GELU": tables.gelu,
    "GREATER": choices.compare,
    "GREATER_EQUAL": choices.compare,
    "HARD_SWISH": tables.swish,
    "L2_NORMALIZATION": pools.unit_length,
    "LEAKY_RELU": tables.leaky_relu,
    "LESS": choices.compare,
    "LESS_EQUAL": choices.compare,
    "LOG": tables.elementary,
    "LOGICAL_AND": choices.combine,
    "LOGICAL_NOT": choices.invert,
    "LOGICAL_OR": choices.combine,
    "LOGISTIC": tables.logistic,
    "MAXIMUM": pairs.maximum,
    "MAX_POOL_2D": pools.max_pool,
    "MEAN": pools.mean,
    "MINIMUM": pairs.minimum,
    "MIRROR_PAD": moves.mirror_pad,
    "MUL": pairs.multiply,
    "NEG": tables.elementary,
    "NOT_EQUAL": choices.compare,
    "PACK": moves.pack,
    "PAD": moves.pad,
    "PADV2": moves.pad,
    "PRELU": tables.sloped,
    "QUANTIZE": tables.quantise,
    "REDUCE_MAX": pools.largest,
    "REDUCE_MIN": pools.smallest,
    "RELU": tables.rectify,
    "RELU6": tables.rectify,
    "RELU_N1_TO_1": tables.rectify,
    "RESHAPE": moves.reshape,
    "RESIZE_BILINEAR": resizing.resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": moves.resize_nearest,
    "REVERSE_V2": moves.reverse,
    "ROUND": tables.elementary,
    "RSQRT": tables.elementary,
    "SELECT": choices.select,
    "SELECT_V2": choices.select,
    "SIN": tables.elementary,
    "SLICE": moves.sub_slice,
    "SOFTMAX": pools.softmax,
    "SPACE_TO_DEPTH": moves.space_to_depth,
    "SPLIT": moves.split,
    "SPLIT_V": moves.split_by_sizes,
    "SQRT": tables.elementary,
    "SQUARE": pairs.square,
    "SQUARED_DIFFERENCE": pairs.squared_difference,
    "SQUEEZE": moves.reshape,
    "STRIDED_SLICE": moves.strided_slice,
    "SUB": pairs.subtract,
    "SUM": pools.total,
    "TANH": tables.tangent,
    "TILE": moves.tile,
    "TRANSPOSE": moves.transpose,
    "TRANSPOSE_CONV": products.transposed_convolution,
    "UNPACK": moves.unpack,
    "custom Convolution2DTransposeBias": products.biased_transposed_convolution,
}
"""Every operator that is read, by TensorFlow Lite's name."""


def onnx_of_tflite(content: bytes, subject: str, name: str, engine: EngineName = "litert",
                   ) -> tuple[onnx.ModelProto, tuple[str, ...], dict[str, str]]:
    """Return the ONNX model of a .tflite file, notes on what it is, and its state: outputs by inputs.

    Parameters
    ----------
    content : bytes
        The whole file, untrusted.
    subject : str
        Begins sentences: ``Model 'net.tflite'``.
    name : str
        Of the graph.
    engine : {"litert", "litert-reference", "tflm"}
        Whose arithmetic the model has.

    Raises
    ------
    CompileError
        If the file is damaged or too large, or has what is not compiled; the message names operator and tensor.
    """
    model = with_early_quantisation(_with_known_values(read_file(content, subject)))
    raise_all([_refusal(operator) for operator in model.operators if operator.kind not in OPERATORS])
    builder = GraphBuilder(model, engine)
    for operator in model.operators:
        if not operator.outputs or not operator.inputs or operator.inputs[0] < 0:
            raise operator.refusal("it has no input or no output", "convert the model again")
        OPERATORS[operator.kind](builder, operator)
    note = TFLITE_NOTE if engine == "litert" else _KERNELS_NOTE.format(TITLES[engine])
    return builder.finished(name), (note, *builder.notes), builder.state


def _with_known_values(model: TfliteModel) -> TfliteModel:
    """Return the model with what DEQUANTIZE, QUANTIZE and DENSIFY make of constants, and what SHAPE tells, as such.

    TensorFlow's converter quantises weights that training has rounded, and may state no shape of the result.
    """
    tensors, left = list(model.tensors), []
    for operator in model.operators:
        x = tensors[operator.inputs[0]] if operator.kind in _KNOWN and operator.has(0) else None
        if x is None or len(operator.outputs) != 1 or operator.outputs[0] in model.outputs or (
                x.data is None and operator.kind != "SHAPE") or (operator.kind == "QUANTIZE" and x.dtype != "float32"):
            left.append(operator)
            continue
        y = tensors[operator.outputs[0]]
        if operator.kind == "QUANTIZE":
            y = replace(y, shape=y.shape or x.shape)
        tensors[y.index] = replace(y, data=_KNOWN[operator.kind](operator, x, y))
    return replace(model, tensors=tuple(tensors), operators=tuple(left))


def _dequantised(operator: TfliteOperator, x: TfliteTensor, y: TfliteTensor) -> np.ndarray:
    """Return the real numbers of a constant of fewer bits than float32."""
    assert x.data is not None
    if x.shape != y.shape or y.dtype != "float32" or x.dtype not in ("int8", "uint8", "float16", "float32"):
        raise _unlike(operator, x, y)
    return x.real().reshape(y.shape)


def _whole(operator: TfliteOperator, x: TfliteTensor, y: TfliteTensor) -> np.ndarray:
    """Return a sparse constant, which was made whole when it was read."""
    assert x.data is not None
    if x.shape != y.shape or x.dtype != y.dtype:
        raise _unlike(operator, x, y)
    return x.data


def _shape(operator: TfliteOperator, x: TfliteTensor, y: TfliteTensor) -> np.ndarray:
    if y.dtype not in ("int32", "int64") or y.shape != (len(x.shape),):
        raise _unlike(operator, x, y)
    return np.array(x.shape, y.dtype)


def _unlike(operator: TfliteOperator, x: TfliteTensor, y: TfliteTensor) -> Exception:
    return operator.refusal(f"its input is {x.dtype} of {list(x.shape)} and its output {y.dtype} of {list(y.shape)}",
                            "convert the model again")


def _quantised(operator: TfliteOperator, x: TfliteTensor, y: TfliteTensor) -> np.ndarray:
    assert x.data is not None
    if x.shape != y.shape or not y.is_levels:
        raise _unlike(operator, x, y)
    return y.levels(x.data)


_KNOWN = {"DENSIFY": _whole, "DEQUANTIZE": _dequantised, "QUANTIZE": _quantised, "SHAPE": _shape}


def _refusal(operator: TfliteOperator) -> UnsupportedNodeError:
    if operator.kind.startswith("custom"):
        return operator.refusal("it is an operator of the converter's own")
    return operator.refusal("the operator is not compiled from TensorFlow Lite")
