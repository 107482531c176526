"""Pooling, means and sums of TensorFlow Lite."""

import math
from typing import Any

import numpy as np

from tilewright.compiler.kernels.levels.softmax.softmax_steps import integer_softmax
from tilewright.compiler.tflite.bounds import clamped, level_bounds, put_result, result_of
from tilewright.compiler.tflite.element_moves import inner_axis, put_in_file_layout
from tilewright.compiler.tflite.graph_builder import FLOAT, INT32, INT64, LAST, GraphBuilder, LevelNumbers, constant_of
from tilewright.compiler.tflite.long_products import EXACT, LongProduct, put_long
from tilewright.compiler.tflite.numbers import kernel_numbers
from tilewright.compiler.tflite.numbers.litert_numbers import fixed_point
from tilewright.compiler.tflite.numbers.one_sided import one_sided
from tilewright.compiler.tflite.stored.tensors import TfliteOperator
from tilewright.compiler.tflite.weighted_sums import window

__all__ = [
    "AWAY", "average_pool", "largest", "max_pool", "mean", "place", "smallest", "softmax", "total", "unit_length",
]

AWAY = np.float32(1 / (1 + 2.0**-19))
"""A step of the result in which halves of whole numbers up to 128 lie above, and nothing else changes its side:
averages of up to 1,024 numbers are at least 1 / 2,048 away from a half, and float32 rounds by 2**-24 of a number."""

_MOST = 1024
_IMAGE = {1, 2}
_PLACES = {"int32": INT32, "int64": INT64}
_UNIT = -128, 1 / 256
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
    put_result(builder, operator, average, LevelNumbers(AWAY, 0, y.dtype))


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
    if builder.engine != "litert" and x.is_levels and y.is_levels and axes:
        _long_mean(builder, operator, axes)
        return
    if len(x.shape) != 4 or set(axes) != _IMAGE or not x.is_levels:
        if x.is_levels:
            builder.near(operator, f"it is one over axes {axes}")
        _reduced(builder, operator, "ReduceMean", axes)
        return
    own = LevelNumbers.of(x), LevelNumbers.of(y)
    before, behind = own
    if (found := _of_mean(before, behind, x.shape[1] * x.shape[2])) is None:
        builder.near(operator, "halves go to another side by its scales and zero points")
    else:
        before, behind = found
    name = builder.node("GlobalAveragePool", [builder.real(operator.inputs[0], before)], like=y.name)
    _put_reduced(builder, operator, name, None if behind == own[1] else behind)


def _long_mean(builder: GraphBuilder, operator: TfliteOperator, axes: list[int]) -> None:
    """Add a MEAN of the kernels, whose multiplier of sums is divided by their number.

    Of an image it is a convolution with ones. A multiplier that then has 30 bits is none of the datapath's: sums of
    each sign are computed by themselves, where weights and biases are found that give the same (`one_sided`), and
    else left whole for the core.
    Source: ``QuantizedMeanOrSum`` in TensorFlow Lite's ``kernels/internal/reference/reduce.h``.
    """
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    count = math.prod(x.shape[axis] for axis in axes)
    multiplier, shift = fixed_point(float(x.scale) / float(y.scale))
    cut = min(count.bit_length() - 1, 31 + shift)
    divided, down = (multiplier << cut) // count, 31 - shift + cut
    levels = LevelNumbers(np.float32(1), y.zero, y.dtype)
    real = None
    if len(x.shape) == 4 and 0 not in axes and x.dtype == y.dtype == "int8":
        real = _image_mean(builder, operator, axes, divided, down)
    if real is None:
        real = _summed(builder, operator, axes, divided, down)
    _put_reduced(builder, operator, real, levels)


def _image_mean(builder: GraphBuilder, operator: TfliteOperator, axes: list[int], multiplier: int,
                shift: int) -> str | None:
    """Return the mean of an image as levels less the zero point, of one or two convolutions; None if there are none."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    name, channels = builder.stored(operator.inputs[0]), x.shape[3]
    group = {"group": 1 if 3 in axes else channels}
    kernel = [x.shape[axis] if axis in axes else 1 for axis in sorted(_IMAGE)]
    ones = np.ones((1, channels, *kernel) if 3 in axes else (channels, 1, *kernel), np.int8)
    count = ones[0].size
    whole = LongProduct(x, ones, None, np.array(math.ldexp(multiplier, -shift)), twice=True)
    if whole.hindrance:
        return None
    if multiplier >> 30 == 1:
        return whole.put(builder, "Conv", name, y, group)
    sums = [each for each in (count * (-128 - x.zero), count * (127 - x.zero)) if each]
    found = [one_sided(end, multiplier, shift) for end in sums]
    parts = []
    for end, numbers in zip(sums, found, strict=True):
        if numbers is None:
            return _by_whole_sums(builder, operator, ones, group, (multiplier, shift))
        weight, bias, factor = numbers
        part = LongProduct(x, ones * np.int8(weight), np.full(len(ones), bias), np.array(factor), twice=False)
        if part.hindrance:
            return None
        real = part.put(builder, "Conv", name, y, group)
        if len(sums) > 1:
            own = LevelNumbers(np.float32(1), y.zero, y.dtype)
            bounds = (y.zero, 127) if end > 0 else (-128, y.zero)
            stored = clamped(builder, builder.quantised(real, own, like=y.name), bounds, y)
            real = builder.dequantised(stored, own)
        parts.append(real)
    return parts[0] if len(parts) == 1 else builder.node("Add", parts, like=y.name)


def _by_whole_sums(builder: GraphBuilder, operator: TfliteOperator, ones: np.ndarray, group: dict[str, Any],
                   numbers: tuple[int, int]) -> str | None:
    """Return the mean of whole sums, which the core brings to levels; None if float32 does not hold them."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if ones[0].size * max(127 - x.zero, x.zero + 128) >= EXACT:
        return None
    real = builder.dequantised(builder.stored(operator.inputs[0]), LevelNumbers(np.float32(1), x.zero))
    weights = builder.dequantised(builder.constant(ones, f"{y.name}:ones"), LevelNumbers(np.float32(1), 0))
    sums = builder.node("Conv", [real, weights], like=y.name, **group)
    return put_long(builder, (sums,), y.name, tuple(np.full(1, each, np.int64) for each in (*numbers, 0)), twice=True)


def _summed(builder: GraphBuilder, operator: TfliteOperator, axes: list[int], multiplier: int, shift: int) -> str:
    """Return the mean as levels less the zero point, of sums that the host core adds."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    inner = builder.constant(np.array([inner_axis(operator, axis, len(x.shape)) for axis in axes], np.int64),
                             f"{y.name}:axes")
    wide = builder.node("Cast", [builder.stored(operator.inputs[0])], like=y.name, to=INT32)
    zero = builder.constant(np.array(x.zero, np.int32), f"{y.name}:zero")
    sums = builder.node("ReduceSum", [builder.node("Sub", [wide, zero], like=y.name), inner], like=y.name, keepdims=1)
    return put_long(builder, (sums,), y.name, tuple(np.array(each, np.int64) for each in (multiplier, shift, 0)),
                    twice=True)


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
    x = builder.tensor(operator.inputs[0])
    if builder.engine == "litert-reference" and x.is_levels and x.dtype == "int8":
        builder.apart(operator, "its kernel reads int8 as uint8 (findings/litert-reference-sum.sh)")
    elif x.is_levels:
        builder.near(operator, "it sums integers")
    _reduced(builder, operator, "ReduceSum", axes)


def largest(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a REDUCE_MAX."""
    _reduced(builder, operator, "ReduceMax", _axes(builder, operator))


def smallest(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a REDUCE_MIN."""
    _reduced(builder, operator, "ReduceMin", _axes(builder, operator))


def place(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add an ARG_MAX or ARG_MIN along one axis, which is gone from the result; the first place of equal levels."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    found = _axes(builder, operator)
    rest = [extent for axis, extent in enumerate(x.shape) if axis not in found]
    if len(found) != 1 or list(y.shape) != rest or y.dtype not in _PLACES:
        raise operator.refusal(f"its input has the shape {list(x.shape)}, its axes are {found} and its output is "
                               f"{y.dtype} of {list(y.shape)}", "convert the model again")
    kind = "ArgMax" if operator.kind == "ARG_MAX" else "ArgMin"
    name = builder.node(kind, [builder.real(operator.inputs[0])], like=y.name, keepdims=1,
                        axis=inner_axis(operator, found[0], len(x.shape)))
    if y.dtype != "int64":
        name = builder.node("Cast", [name], like=y.name, to=_PLACES[y.dtype])
    if len(x.shape) == 4:
        name = builder.node("Transpose", [name], like=y.name, perm=LAST)
    put_in_file_layout(builder, operator.outputs[0], name)


def unit_length(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add an L2_NORMALIZATION of the last axis."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if y.is_levels:
        builder.near(operator, "its lengths are float32")
    put_result(builder, operator, builder.node("LpNormalization", [builder.real(operator.inputs[0])], like=y.name, p=2,
                                               axis=inner_axis(operator, -1, len(x.shape))))


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
    if builder.engine != "litert" and x.dtype == y.dtype == "int8" and (y.zero, float(y.scale)) == _UNIT:
        _softmax_in_integers(builder, operator)
        return
    name, beta = builder.real(operator.inputs[0]), np.float32(operator.options["Beta"])
    if y.is_levels:
        builder.near(operator, "its exponentials are float32")
    if beta != 1:
        name = builder.node("Mul", [name, builder.constant(np.array(beta, np.float32), f"{y.name}:beta")], like=y.name)
    axis = inner_axis(operator, -1, len(x.shape))
    put_result(builder, operator, builder.node("Softmax", [name], like=y.name, axis=axis))


def _softmax_in_integers(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a SOFTMAX of the kernels' own, whose result is in 256ths."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    axis = inner_axis(operator, -1, len(x.shape))
    terms = kernel_numbers.softmax_terms(float(x.scale), float(np.float32(operator.options["Beta"])))

    def put(op: str, *inputs: str | int) -> str:
        names = [builder.constant(np.array(each, np.int64), f"{y.name}:number") if isinstance(each, int) else each
                 for each in inputs]
        if op == "ReduceSum":
            names.append(builder.constant(np.array([axis], np.int64), f"{y.name}:axis"))
        more: dict[str, dict[str, Any]] = {"Cast": {"to": INT64}, "ReduceMax": {"axes": [axis]}}
        return builder.node(op, names, like=y.name, output="", **more.get(op, {}))

    levels = integer_softmax(put, builder.stored(operator.inputs[0]), builder.constant(terms, f"{y.name}:terms"))
    put_result(builder, operator, builder.node("Cast", [levels], like=y.name, to=FLOAT),
               LevelNumbers(np.float32(1), y.zero, y.dtype))
