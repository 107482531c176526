"""Pooling, means and sums of TensorFlow Lite."""

import math

import numpy as np

from tilewright.compiler.tflite.bounds import clamped, level_bounds, put_result, result_of
from tilewright.compiler.tflite.element_moves import inner_axis, put_in_file_layout
from tilewright.compiler.tflite.graph_builder import GraphBuilder, LevelNumbers, constant_of
from tilewright.compiler.tflite.long_products import LongProduct
from tilewright.compiler.tflite.numbers.litert_numbers import fixed_point
from tilewright.compiler.tflite.tensors import TfliteOperator
from tilewright.compiler.tflite.weighted_sums import window

__all__ = ["average_pool", "largest", "max_pool", "mean", "softmax", "total"]

_AWAY = np.float32(1 / (1 + 2.0**-19))
"""A step of the result in which halves of whole numbers up to 128 lie above, and nothing else changes its side:
averages of up to 1,024 numbers are at least 1 / 2,048 away from a half, and float32 rounds by 2**-24 of a number."""

_MOST = 1024
_IMAGE = {1, 2}
_MOST_SUMS = 1 << 22


def average_pool(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add an AVERAGE_POOL_2D: whole sums of the levels themselves, divided by their number, halves away from zero.

    Source: ``AveragePool`` in TensorFlow Lite's ``kernels/internal/reference/integer_ops/pooling.h``.
    """
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    kernel = int(operator.options["FilterHeight"]), int(operator.options["FilterWidth"])
    attributes = window(operator, x, y, kernel)
    del attributes["dilations"]
    if not x.is_levels:
        put_result(builder, operator, builder.node("AveragePool", [builder.real(operator.inputs[0])], like=y.name,
                                                   **attributes))
        return
    if (x.scale, x.zero, x.dtype) != (y.scale, y.zero, y.dtype):
        raise operator.refusal("its input and its output have different scales or zero points",
                               "convert the model again")
    if math.prod(kernel) > _MOST:
        builder.near(operator, f"its window has more than {_MOST} pixels")
    real = builder.real(operator.inputs[0], LevelNumbers(np.float32(1), 0, x.dtype))
    average = builder.node("AveragePool", [real], like=y.name, **attributes)
    put_result(builder, operator, average, LevelNumbers(_AWAY, 0, y.dtype))


def max_pool(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a MAX_POOL_2D, of levels as they are."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    kernel = int(operator.options["FilterHeight"]), int(operator.options["FilterWidth"])
    attributes = window(operator, x, y, kernel)
    del attributes["dilations"]
    name = builder.stored(operator.inputs[0])
    if not y.is_levels:
        put_result(builder, operator, builder.node("MaxPool", [name], like=y.name, **attributes))
        return
    index, bounds = operator.outputs[0], level_bounds(int(operator.options["FusedActivationFunction"]), y)
    if bounds is None:
        builder.put(index, "MaxPool", [name], **attributes)
    else:
        pooled = builder.node("MaxPool", [name], like=y.name, **attributes)
        builder.write(index, clamped(builder, pooled, bounds, y, builder.target(index)))


def _axes(builder: GraphBuilder, operator: TfliteOperator) -> list[int]:
    rank = len(builder.tensor(operator.inputs[0]).shape)
    found = constant_of(builder, operator, 1, "axis").reshape(-1).tolist()
    for axis in found:
        inner_axis(operator, axis, rank)
    return sorted({axis % rank for axis in found})


def mean(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a MEAN: over rows and columns LiteRT scales the whole sum in float32, as ONNX Runtime's global average."""
    x, y, axes = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0]), _axes(builder, operator)
    if len(x.shape) != 4 or set(axes) != _IMAGE or not x.is_levels:
        if x.is_levels:
            builder.near(operator, f"it is one over axes {axes}")
        _reduced(builder, operator, "ReduceMean", axes)
        return
    if builder.engine != "litert":
        _long_mean(builder, operator)
        return
    own = LevelNumbers.of(x), LevelNumbers.of(y)
    before, behind = own
    if (found := _of_mean(before, behind, x.shape[1] * x.shape[2])) is None:
        builder.near(operator, "halves go to another side by its scales and zero points")
    else:
        before, behind = found
    name = builder.node("GlobalAveragePool", [builder.real(operator.inputs[0], before)], like=y.name)
    _put_reduced(builder, operator, name, None if behind == own[1] else behind)


def _long_mean(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a MEAN over an image as a convolution with ones, whose sums' multiplier is divided by their number.

    Source: ``QuantizedMeanOrSum`` in TensorFlow Lite's ``kernels/internal/reference/reduce.h``.
    """
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    count = x.shape[1] * x.shape[2]
    multiplier, shift = fixed_point(float(x.scale) / float(y.scale))
    cut = min(count.bit_length() - 1, 31 + shift)
    ones = np.ones((x.shape[3], 1, *x.shape[1:3]), np.int8)
    divided = (multiplier << cut) // count
    product = LongProduct(x, ones, None, np.array(math.ldexp(divided, shift - cut - 31)), twice=True)
    if divided >> 30 != 1 or product.hindrance or x.dtype != "int8" or y.dtype != "int8":
        builder.near(operator, "its multiplier has fewer than 31 bits")
        _reduced(builder, operator, "ReduceMean", _axes(builder, operator))
        return
    real = product.put(builder, "Conv", builder.stored(operator.inputs[0]), y, {"group": x.shape[3]})
    _put_reduced(builder, operator, real, LevelNumbers(np.float32(1), y.zero, y.dtype))


def _of_mean(x: LevelNumbers, y: LevelNumbers, count: int) -> tuple[LevelNumbers, LevelNumbers] | None:
    """Return how to read levels and to write their mean, so that ONNX Runtime's global average is LiteRT's.

    LiteRT adds the zero point before it rounds halves to even, and ONNX Runtime behind it: a half goes to the other
    side where that is odd. Then both zero points move by the same number, if that is a whole one in both scales.
    All sums are tried.
    """
    factor = np.float32(np.float32(x.scale / y.scale) / np.float32(count))
    scale = next((each for each in _beside(x.scale) if
                  np.float32(each / np.float32(y.scale * np.float32(count))) == factor), None)
    if scale is None or count * 256 > _MOST_SUMS:
        return None
    ends = np.iinfo(x.dtype)
    sums = np.arange(count * (ends.min - x.zero), count * (ends.max - x.zero) + 1)
    wanted = np.rint(sums.astype(np.float32) * factor + np.float32(y.zero))
    step = y.scale / x.scale
    for moved in (0, 1, -1):
        zeros = x.zero - moved * step, y.zero - moved
        if zeros[0] != round(zeros[0]) or not all(ends.min <= zero <= ends.max for zero in zeros):
            continue
        made = np.rint((sums + count * round(moved * step)).astype(np.float32) * factor) + zeros[1]
        if np.array_equal(np.clip(made, ends.min, ends.max), np.clip(wanted, ends.min, ends.max)):
            return LevelNumbers(scale, int(zeros[0]), x.dtype), LevelNumbers(y.scale, zeros[1], y.dtype)
    return None


def _beside(scale: np.float32) -> list[np.float32]:
    """Return a scale and the float32 values beside it."""
    found = [scale]
    for end in (np.float32(0), np.float32(np.inf)):
        near = scale
        for _ in range(4):
            found.append(near := np.nextafter(near, end))
    return found


def total(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a SUM."""
    axes = _axes(builder, operator)
    if builder.tensor(operator.inputs[0]).is_levels:
        builder.near(operator, "it sums integers")
    _reduced(builder, operator, "ReduceSum", axes)


def largest(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a REDUCE_MAX."""
    _reduced(builder, operator, "ReduceMax", _axes(builder, operator))


def _reduced(builder: GraphBuilder, operator: TfliteOperator, kind: str, axes: list[int]) -> None:
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    inner = [inner_axis(operator, axis, len(x.shape)) for axis in axes]
    name = builder.real(operator.inputs[0])
    if kind == "ReduceSum":
        axes_name = builder.constant(np.array(inner, np.int64), f"{y.name}:axes")
        name = builder.node(kind, [name, axes_name], like=y.name, keepdims=1)
    else:
        name = builder.node(kind, [name], like=y.name, axes=inner, keepdims=1)
    _put_reduced(builder, operator, name)


def _put_reduced(builder: GraphBuilder, operator: TfliteOperator, name: str,
                 levels: LevelNumbers | None = None) -> None:
    """Write a result that has all axes of its input, of which the file's may lack those of one element."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if len(y.shape) == len(x.shape):
        put_result(builder, operator, name, levels)
        return
    stored = result_of(builder, operator, name, levels)
    axes = [axis for axis in range(len(x.shape)) if axis not in _axes(builder, operator)]
    if len(x.shape) == 4 and len(axes) > 1:
        stored = builder.node("Transpose", [stored], like=y.name, perm=(0, 2, 3, 1))
    put_in_file_layout(builder, operator.outputs[0], stored)


def softmax(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a SOFTMAX over the last axis."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    name, beta = builder.real(operator.inputs[0]), np.float32(operator.options["Beta"])
    if y.is_levels:
        builder.near(operator, "its exponentials are float32")
    if beta != 1:
        name = builder.node("Mul", [name, builder.constant(np.array(beta, np.float32), f"{y.name}:beta")], like=y.name)
    axis = inner_axis(operator, -1, len(x.shape))
    put_result(builder, operator, builder.node("Softmax", [name], like=y.name, axis=axis))
