"""Convolutions and dense layers of TensorFlow Lite: ONNX's, with weights and padding as ONNX has them.

LiteRT's default requantises their sums by float32(x_scale · w_scale) / y_scale, halves to even, as ONNX Runtime does,
the other engines in whole numbers (`long_products`).
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.compiler.tflite.bounds import put_result, result_of
from tilewright.compiler.tflite.element_moves import in_file_layout, put_in_file_layout
from tilewright.compiler.tflite.graph_builder import GraphBuilder, LevelNumbers, constant_of
from tilewright.compiler.tflite.long_products import EXACT, LongProduct, multipliers_of, put_long, too_far
from tilewright.compiler.tflite.numbers.kernel_numbers import long_numbers
from tilewright.compiler.tflite.stored.tensors import TfliteOperator, TfliteTensor

__all__ = ["batch_product", "convolution", "depthwise", "fully_connected", "transposed_convolution", "window"]

SAME, VALID = 0, 1


def window(operator: TfliteOperator, x: TfliteTensor, y: TfliteTensor, kernel: tuple[int, int]) -> dict[str, Any]:
    """Return a window's attributes as ONNX has them; of two kinds of padding, SAME puts the odd pixel behind.

    Raises
    ------
    UnsupportedNodeError
        If the shapes are no images, or the strides do not fit them.
    """
    if len(x.shape) != 4 or len(y.shape) != 4:
        raise operator.refusal(f"its input and output have the shapes {list(x.shape)} and {list(y.shape)}",
                               "convert the model again")
    options = operator.options
    strides = int(options["StrideH"]), int(options["StrideW"])
    dilations = int(options.get("DilationHFactor", 1)), int(options.get("DilationWFactor", 1))
    if min(*strides, *dilations, *kernel) < 1 or options["Padding"] not in (SAME, VALID):
        raise operator.refusal(f"its strides are {strides}, its dilations {dilations}, its window {kernel} and its "
                               f"padding {options['Padding']}", "convert the model again")
    before, behind = [], []
    for axis in (0, 1):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        size = x.shape[1 + axis]
        count = -(-size // strides[axis]) if options["Padding"] == SAME else -(-(size - reach + 1) // strides[axis])
        if count != y.shape[1 + axis]:
            raise operator.refusal(f"its output has the shape {list(y.shape)}, and its window gives {count} in axis "
                                   f"{1 + axis}", "convert the model again")
        total = max((count - 1) * strides[axis] + reach - size, 0) if options["Padding"] == SAME else 0
        before.append(total // 2)
        behind.append(total - total // 2)
    return {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": [*before, *behind]}


def convolution(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a CONV_2D: weights (outputs, height, width, inputs of a group)."""
    weights = constant_of(builder, operator, 1, "weight")
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if weights.ndim != 4 or len(x.shape) != 4 or len(y.shape) != 4 or not weights.size \
            or not x.shape[3] or x.shape[3] % weights.shape[3] \
            or weights.shape[0] % (x.shape[3] // weights.shape[3]) or weights.shape[0] != y.shape[-1]:
        raise operator.refusal(f"its weights have the shape {list(weights.shape)} and its input {list(x.shape)}",
                               "convert the model again")
    attributes = window(operator, x, y, weights.shape[1:3])
    _put_product(builder, operator, "Conv", weights.transpose(0, 3, 1, 2), 0,
                 attributes | {"group": x.shape[3] // weights.shape[3]})


def depthwise(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a DEPTHWISE_CONV_2D: weights (1, height, width, channels · multiplier)."""
    weights = constant_of(builder, operator, 1, "weight")
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if weights.ndim != 4 or weights.shape[0] != 1 or not weights.size or len(x.shape) != 4 or len(y.shape) != 4 \
            or not x.shape[3] \
            or weights.shape[3] % x.shape[3] or weights.shape[3] != y.shape[-1]:
        raise operator.refusal(f"its weights have the shape {list(weights.shape)} and its input {list(x.shape)}",
                               "convert the model again")
    attributes = window(operator, x, y, weights.shape[1:3])
    _put_product(builder, operator, "Conv", weights.transpose(3, 0, 1, 2), 0, attributes | {"group": x.shape[3]})


def batch_product(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a BATCH_MATMUL of two tensors, each maybe with its last two axes exchanged."""
    y = builder.tensor(operator.outputs[0])
    long = _is_long_batch_product(builder, operator)
    names = []
    for index, exchanged in zip(operator.inputs[:2], ("AdjX", "AdjY"), strict=True):
        tensor = builder.tensor(index)
        shape = builder.constant(np.array(tensor.shape, np.int64), f"{tensor.name}:shape")
        laid = builder.node("Reshape", [in_file_layout(builder, index), shape], like=tensor.name)
        real = builder.dequantised(laid, LevelNumbers(np.float32(1), tensor.zero, tensor.dtype)) if long else \
            builder.as_real(laid, tensor)
        if operator.options[exchanged]:
            rank = len(tensor.shape)
            order = [*range(rank - 2), rank - 1, rank - 2]
            real = builder.node("Transpose", [real], like=tensor.name, perm=order)
        names.append(real)
    result = builder.node("MatMul", names, like=y.name)
    if long:
        factor, shift = (np.array(each, np.int64) for each in long_numbers([_batch_multiplier(builder, operator)]))
        result = put_long(builder, (result,), y.name, (factor, shift, np.zeros(1, np.int64)), twice=True)
    if y.is_levels:
        result = builder.quantised(result, LevelNumbers(np.float32(1), y.zero, y.dtype) if long else LevelNumbers.of(y),
                                   like=y.name)
    put_in_file_layout(builder, operator.outputs[0], result)


def _is_long_batch_product(builder: GraphBuilder, operator: TfliteOperator) -> bool:
    """Tell whether a product of matrices is requantised in whole numbers here; note if it should be and is not."""
    x, z, y = (builder.tensor(index) for index in (*operator.inputs[:2], operator.outputs[0]))
    if not y.is_levels:
        return False
    ends = [(np.iinfo(each.dtype), each.zero) for each in (x, z) if each.is_levels and each.dtype == y.dtype]
    why = "its sums are scaled by a float32 factor"
    if builder.engine != "litert" and len(ends) == 2:
        reach = x.shape[-2 if operator.options["AdjX"] else -1] * math.prod(
            max(info.max - zero, zero - info.min) for info, zero in ends)
        _, shifts = long_numbers([_batch_multiplier(builder, operator)])
        why = f"its sums may reach {reach:,}, which float32 does not hold" if reach >= EXACT else too_far(
            np.array(shifts))
    if why:
        builder.near(operator, why)
    return not why


def _batch_multiplier(builder: GraphBuilder, operator: TfliteOperator) -> float:
    x, z, y = (builder.tensor(index) for index in (*operator.inputs[:2], operator.outputs[0]))
    return float(x.scale) * float(z.scale) / float(y.scale)


def transposed_convolution(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a TRANSPOSE_CONV: its input comes behind the shape of the result and the weights."""
    weights = constant_of(builder, operator, 1, "weight")
    x, y = builder.tensor(operator.inputs[2]), builder.tensor(operator.outputs[0])
    if weights.ndim != 4 or not weights.size or len(x.shape) != 4 or len(y.shape) != 4 \
            or weights.shape[3] != x.shape[3] or weights.shape[0] != y.shape[3]:
        raise operator.refusal(f"its weights have the shape {list(weights.shape)} and its input {list(x.shape)}",
                               "convert the model again")
    strides = int(operator.options["StrideH"]), int(operator.options["StrideW"])
    if min(strides) < 1:
        raise operator.refusal(f"its strides are {strides}", "convert the model again")
    totals = [(x.shape[1 + axis] - 1) * strides[axis] + weights.shape[1 + axis] - y.shape[1 + axis] for axis in (0, 1)]
    if any(total <= -strides[axis] for axis, total in enumerate(totals)):
        raise operator.refusal(f"its output has the shape {list(y.shape)}", "convert the model again")
    before = [max(total, 0) // 2 for total in totals]
    behind = [max(total, 0) - first for total, first in zip(totals, before, strict=True)]
    attributes = {"kernel_shape": weights.shape[1:3], "strides": strides, "pads": [*before, *behind],
                  "output_padding": [max(-total, 0) for total in totals]}
    _put_product(builder, operator, "ConvTranspose", weights.transpose(3, 0, 1, 2), 1, attributes, data=2, bias=3)


def biased_transposed_convolution(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add MediaPipe's Convolution2DTransposeBias: a TRANSPOSE_CONV whose input comes first.

    Source: ``TransposeConvBias`` in MediaPipe's ``util/tflite/operations/transpose_conv_bias.cc``.
    """
    if len(operator.inputs) != 3:
        raise operator.refusal(f"it has {len(operator.inputs)} inputs, not 3", "convert the model again")
    x, weights, bias = operator.inputs
    transposed_convolution(builder, replace(operator, inputs=(-1, weights, x, bias)))


def fully_connected(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a FULLY_CONNECTED of any number of rows: weights (outputs, inputs)."""
    weights = constant_of(builder, operator, 1, "weight")
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if weights.ndim != 2 or not weights.size or operator.options["WeightsFormat"] \
            or math.prod(x.shape) % weights.shape[1]:
        raise operator.refusal(f"its weights have the shape {list(weights.shape)}, format "
                               f"{operator.options['WeightsFormat']}, and its input {list(x.shape)}",
                               "convert the model again")
    rows = math.prod(x.shape) // weights.shape[1]
    if math.prod(y.shape) != rows * weights.shape[0]:
        raise operator.refusal(f"its output has the shape {list(y.shape)}", "convert the model again")
    name = in_file_layout(builder, operator.inputs[0])
    if x.shape != (rows, weights.shape[1]):
        shape = builder.constant(np.array([rows, weights.shape[1]], np.int64), f"{y.name}:as a matrix")
        name = builder.node("Reshape", [name, shape], like=y.name)
    levels = None
    if (long := _long_product(builder, operator, weights, dense=True)) is not None:
        product = long.put(builder, "Gemm", name, y, {"transB": 1})
        levels = LevelNumbers(np.float32(1), y.zero, y.dtype)
    else:
        inputs = [builder.as_real(name, x), builder.weights(weights, builder.tensor(operator.inputs[1]), 0)]
        inputs += _bias(builder, operator, 0, 2)
        product = builder.node("Gemm", inputs, like=y.name, transB=1)
    if len(y.shape) == 2:
        put_result(builder, operator, product, levels)
    else:
        put_in_file_layout(builder, operator.outputs[0], result_of(builder, operator, product, levels))


def _long_product(builder: GraphBuilder, operator: TfliteOperator, weights: np.ndarray, *, dense: bool = False,
                  data: int = 0, bias: int = 2) -> LongProduct | None:
    """Return a product with output channels first, if its engine requantises it in whole numbers; note if we do not."""
    x, given, y = (builder.tensor(index) for index in (operator.inputs[data], operator.inputs[1], operator.outputs[0]))
    if builder.engine == "litert" or not (x.is_levels and y.is_levels and given.is_levels):
        return None
    values = constant_of(builder, operator, bias, "bias").reshape(-1) if operator.has(bias) else None
    if np.unique(given.zeros).size > 1 or weights.dtype.name not in ("int8", "uint8") or x.dtype != y.dtype:
        builder.near(operator, "its levels are of several types, or its weights have several zero points")
        return None
    made = LongProduct(x, weights.astype(np.int16) - int(given.zeros[0]), values,
                       multipliers_of(x, given, y), twice=not dense or builder.engine == "tflm")
    if made.hindrance:
        builder.near(operator, made.hindrance)
    return None if made.hindrance else made


def _put_product(builder: GraphBuilder, operator: TfliteOperator, kind: str, weights: np.ndarray, axis: int,
                 attributes: dict[str, Any], data: int = 0, bias: int = 2) -> None:
    if (long := _long_product(builder, operator, weights.swapaxes(0, axis), data=data, bias=bias)) is not None:
        y = builder.tensor(operator.outputs[0])
        real = long.put(builder, kind, builder.stored(operator.inputs[data]), y, attributes)
        put_result(builder, operator, real, LevelNumbers(np.float32(1), y.zero, y.dtype))
        return
    inputs = [builder.real(operator.inputs[data]),
              builder.weights(weights, builder.tensor(operator.inputs[1]), axis),
              *_bias(builder, operator, data, bias)]
    put_result(builder, operator, builder.node(kind, inputs, like=builder.tensor(operator.outputs[0]).name,
                                               **attributes))


def _bias(builder: GraphBuilder, operator: TfliteOperator, data: int, position: int) -> list[str]:
    """Return the bias, if there is one: int32 in steps of input scale · weight scale, or float."""
    if not operator.has(position):
        return []
    values = constant_of(builder, operator, position, "bias").reshape(-1)
    x, weights, y = (builder.tensor(index) for index in (operator.inputs[data], operator.inputs[1],
                                                         operator.outputs[0]))
    if not y.shape or values.size != y.shape[-1]:
        raise operator.refusal(f"its bias has {values.size} elements for {y.shape[-1]} channels",
                               "convert the model again")
    if not x.is_levels:
        return [builder.constant(values.astype(np.float32), f"{y.name}:bias")]
    if values.dtype != np.int32:
        raise operator.refusal(f"its bias is {values.dtype}", "convert the model with activations of 8 bits")
    steps = (x.scale * weights.scales).astype(np.float32)
    one = steps.size == 1
    name = builder.constant(values, f"{y.name}:bias")
    scale = builder.constant(steps.reshape(()) if one else steps, f"{y.name}:bias scale")
    zero = builder.constant(np.zeros(() if one else steps.shape, np.int32), f"{y.name}:bias zero")
    along: dict[str, Any] = {} if one else {"axis": 0}
    return [builder.node("DequantizeLinear", [name, scale, zero], like=f"{y.name}:bias", **along)]
