"""Functions of one tensor of levels, as tables of 256 values that LiteRT's own formulas fill."""

import math
from collections.abc import Callable

import numpy as np

from tilewright.compiler.tflite.bounds import ACTIVATIONS, clamped, level_bounds, put_result
from tilewright.compiler.tflite.graph_builder import INT32, GraphBuilder, LevelNumbers, constant_of
from tilewright.compiler.tflite.long_products import LongProduct
from tilewright.compiler.tflite.numbers.kernel_numbers import gated, scaled_levels, tanh_levels
from tilewright.compiler.tflite.numbers.litert_numbers import (
    eighths,
    hard_swish,
    rounded,
    rounded_away,
    rounded_behind,
)
from tilewright.compiler.tflite.stored.tensors import TfliteOperator, TfliteTensor

__all__ = ["dequantise", "elementary", "gelu", "leaky_relu", "logistic", "put_table", "quantise", "rectify", "sloped",
           "swish", "tangent"]

_Function = Callable[[np.ndarray], np.ndarray]

_ELEMENTARY: dict[str, tuple[tuple[str, ...], _Function]] = {
    "ABS": (("Abs",), np.abs),
    "CEIL": (("Ceil",), np.ceil),
    "COS": (("Cos",), np.cos),
    "ELU": (("Elu",), lambda real: np.where(real < 0, np.expm1(real), real)),
    "EXP": (("Exp",), np.exp),
    "FLOOR": (("Floor",), np.floor),
    "LOG": (("Log",), np.log),
    "NEG": (("Neg",), np.negative),
    "ROUND": (("Round",), np.rint),
    "RSQRT": (("Sqrt", "Reciprocal"), lambda real: 1 / np.sqrt(real)),
    "SIN": (("Sin",), np.sin),
    "SQRT": (("Sqrt",), np.sqrt),
}
"""By TensorFlow Lite's name, ONNX's operators one behind the other, and the function of real numbers in float64."""

_TABLES = ("ELU", "EXP", "LOG")
"""Those whose tables are the engines'."""

_CUBIC = 0.044715
"""Of the approximation of GELU by tanh."""

_FAR = 1e6
"""Beyond all levels."""

_FLOATS = {"RELU": "Relu", "LOGISTIC": "Sigmoid", "TANH": "Tanh", "HARD_SWISH": "HardSwish"}


def put_table(builder: GraphBuilder, operator: TfliteOperator, x: int, values: np.ndarray) -> None:
    """Write an operator's output as a function of the levels of tensor ``x``.

    Parameters
    ----------
    values : ndarray
        Integers of (256,): the result's level for each level of x from its least, saturated and bounded here.
    """
    source, y = builder.tensor(x), builder.tensor(operator.outputs[0])
    ends = np.iinfo(y.dtype)
    bounds = level_bounds(int(operator.options.get("FusedActivationFunction", 0)), y) or (ends.min, ends.max)
    values = np.clip(np.clip(values, ends.min, ends.max), *bounds)
    levels = LevelNumbers.of(source)
    # The place of x less its zero point; those below 0 count from the end.
    places = (_levels(source) - levels.zero) % 256
    real = np.empty(256, np.float32)
    real[places] = (values - y.zero).astype(np.float32) * y.scale
    steps = builder.node("Div", [builder.real(x), builder.constant(np.array(levels.scale, np.float32),
                                                                   f"{y.name}:scale")], like=y.name)
    place = builder.node("Cast", [builder.node("Round", [steps], like=y.name)], like=y.name, to=6)
    found = builder.node("Gather", [builder.constant(real, f"{y.name}:table"), place], like=y.name, axis=0)
    builder.put_real(operator.outputs[0], found)


def _levels(tensor: TfliteTensor) -> np.ndarray:
    ends = np.iinfo(tensor.dtype)
    return np.arange(ends.min, ends.max + 1, dtype=np.int64)


def _pair(builder: GraphBuilder, operator: TfliteOperator) -> tuple[TfliteTensor, TfliteTensor]:
    """Return an operator's input and output, both of levels or both of floats."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if x.is_levels != y.is_levels or x.shape != y.shape:
        raise operator.refusal("its input and its output must both be quantised or both be floats, of one shape",
                               "convert the model again")
    return x, y


def _put_float(builder: GraphBuilder, operator: TfliteOperator, kind: str) -> None:
    builder.put(operator.outputs[0], kind, [builder.stored(operator.inputs[0])])


def elementary(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a function of each element by itself: of levels a table of the function of the real numbers they stand for.

    Where a function has no finite value, the level is that of the largest number, or of the least. Tables of ELU, EXP
    and LOG are the engines' own: halves go away from zero, but in XNNPACK's, which has ELU, to even behind the zero
    point. Source: ``LUTPopulate`` in TensorFlow Lite's ``kernels/internal/common.h``, and XNNPACK's
    ``src/operators/unary-elementwise-nc.c``.
    """
    kinds, function = _ELEMENTARY[operator.kind]
    x, y = _pair(builder, operator)
    if not y.is_levels:
        name = builder.stored(operator.inputs[0])
        for kind in kinds[:-1]:
            name = builder.node(kind, [name], like=y.name)
        builder.put(operator.outputs[0], kinds[-1], [name])
        return
    with np.errstate(all="ignore"):
        real = ((_levels(x) - x.zero).astype(np.float32) * x.scale).astype(np.float64)
        if operator.kind in _TABLES:
            values = np.nan_to_num(function(real).astype(np.float32), nan=0.0, posinf=_FAR, neginf=-_FAR)
            even = builder.engine == "litert" and operator.kind == "ELU"
            put_table(builder, operator, operator.inputs[0], (rounded_behind if even else rounded_away)(
                values, np.float32(1) / y.scale, y.zero))
            return
        steps = function(real) / np.float64(y.scale)
    far = np.nan_to_num(steps, nan=0.0, posinf=_FAR, neginf=-_FAR)
    builder.near(operator, "its table is rounded once from real numbers")
    put_table(builder, operator, operator.inputs[0],
              np.rint(np.clip(far, -_FAR, _FAR)).astype(np.int64) + y.zero)


def rectify(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a RELU, RELU6 or RELU_N1_TO_1: bounds, behind a change of scale if there is one."""
    x, y = _pair(builder, operator)
    activation = ACTIVATIONS[operator.kind]
    if not y.is_levels:
        limits = {1: (0,), 2: (-1, 1), 3: (0, 6)}[activation]
        bounds = [builder.constant(np.array(each, np.float32), f"{y.name}:bound") for each in limits]
        builder.put(operator.outputs[0], "Clip" if len(limits) > 1 else "Relu",
                    [builder.stored(operator.inputs[0]), *(bounds if len(limits) > 1 else [])])
        return
    if builder.engine == "tflm" and operator.kind == "RELU6":
        # Its kernel bounds the levels of its input, and gives them on as those of its result: relu6_prepare and
        # EvalRelu6 in tensorflow/lite/micro/kernels/activations*.cc; `findings/tflite-micro-relu6-scale.sh`.
        low, high = level_bounds(activation, x) or (0, 0)
        put_table(builder, operator, operator.inputs[0], np.clip(_levels(x), low, high))
        return
    bounded = level_bounds(activation, y)
    if (x.scale, x.zero, x.dtype) != (y.scale, y.zero, y.dtype):
        values = scaled_levels(_levels(x) - x.zero, float(x.scale) / float(y.scale)) + y.zero
        put_table(builder, operator, operator.inputs[0], np.clip(values, *bounded) if bounded else values)
    elif bounded is None:
        builder.put(operator.outputs[0], "Identity", [builder.stored(operator.inputs[0])])
    else:
        index = operator.outputs[0]
        builder.write(index, clamped(builder, builder.stored(operator.inputs[0]), bounded, y, builder.target(index)))


def logistic(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a LOGISTIC: e / (1 + e) of e = exp(x), or 1 less that.

    Source: ``xnn_create_sigmoid_nc_qs8`` in XNNPACK's ``src/operators/unary-elementwise-nc.c``.
    """
    x, y = _pair(builder, operator)
    if not y.is_levels:
        _put_float(builder, operator, _FLOATS[operator.kind])
        return
    levels = _levels(x) - x.zero
    if builder.engine == "tflm":
        put_table(builder, operator, operator.inputs[0], gated(levels, x.scale))
        return
    real = (levels.astype(np.float32) * x.scale).astype(np.float64)
    power = np.exp(-np.abs(real))
    values = np.where(real < 0, power / (1 + power), 1 / (1 + power))
    put_table(builder, operator, operator.inputs[0], rounded(values, np.float32(1) / y.scale, y.zero))


def tangent(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a TANH. Source: ``xnn_create_tanh_nc_qs8`` in the same file of XNNPACK as that of LOGISTIC."""
    x, y = _pair(builder, operator)
    if not y.is_levels:
        _put_float(builder, operator, _FLOATS[operator.kind])
        return
    levels = _levels(x) - x.zero
    if builder.engine == "tflm":
        put_table(builder, operator, operator.inputs[0], tanh_levels(levels, x.scale))
        return
    real = (levels.astype(np.float32) * x.scale).astype(np.float64)
    put_table(builder, operator, operator.inputs[0], rounded(np.tanh(real), np.float32(1) / y.scale, y.zero))


def swish(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a HARD_SWISH."""
    x, y = _pair(builder, operator)
    if not y.is_levels:
        _put_float(builder, operator, _FLOATS[operator.kind])
        return
    put_table(builder, operator, operator.inputs[0], hard_swish(_levels(x) - x.zero, x.scale, y.scale, y.zero))


def gelu(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a GELU, of the error function or of its approximation by tanh.

    Source: ``GetGeluFunction`` and ``LUTPopulate`` in TensorFlow Lite's ``kernels``; halves go away from zero.
    """
    x, y = _pair(builder, operator)
    by_tanh = bool(operator.options["Approximate"])
    if y.is_levels:
        real = ((_levels(x) - x.zero).astype(np.float32) * x.scale).astype(np.float64)
        inner = np.tanh(np.sqrt(2 / np.pi) * (real + _CUBIC * real**3)) if by_tanh else \
            np.array([math.erf(each) for each in real / np.sqrt(2)])
        values = (real * (1 + inner) / 2).astype(np.float32)
        put_table(builder, operator, operator.inputs[0], rounded_away(values, np.float32(1) / y.scale, y.zero))
        return

    def step(kind: str, first: str, second: str | float) -> str:
        if not isinstance(second, str):
            second = builder.constant(np.array(second, np.float32), f"{y.name}:number")
        return builder.node(kind, [first, second], like=y.name)

    given = builder.stored(operator.inputs[0])
    if by_tanh:
        cubes = step("Mul", step("Mul", step("Mul", given, given), given), _CUBIC)
        inner_name = builder.node("Tanh", [step("Mul", step("Add", given, cubes), float(np.sqrt(2 / np.pi)))],
                                  like=y.name)
    else:
        inner_name = builder.node("Erf", [step("Div", given, float(np.sqrt(2)))], like=y.name)
    product = step("Mul", given, step("Add", inner_name, 1.0))
    builder.put(operator.outputs[0], "Mul", [product, builder.constant(np.array(0.5, np.float32), f"{y.name}:half")])


def leaky_relu(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a LEAKY_RELU."""
    x, y = _pair(builder, operator)
    alpha = np.float32(operator.options["Alpha"])
    if not y.is_levels:
        builder.put(operator.outputs[0], "LeakyRelu", [builder.stored(operator.inputs[0])], alpha=float(alpha))
        return
    levels, ratio = _levels(x) - x.zero, np.float32(x.scale / y.scale)
    if builder.engine != "litert":
        real = float(x.scale) / float(y.scale)
        values = np.where(levels >= 0, scaled_levels(levels, real), scaled_levels(
            levels, float(np.float32(x.scale * alpha)) / float(y.scale))) + y.zero
        put_table(builder, operator, operator.inputs[0], values)
        return
    values = np.where(levels > 0, eighths(levels, ratio, y.zero), eighths(levels, np.float32(ratio * alpha), y.zero))
    put_table(builder, operator, operator.inputs[0], values)


def sloped(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a PRELU by constant slopes: a table where there is one slope for all.

    Source: ``BroadcastPrelu4DSlow`` in TensorFlow Lite's ``kernels/internal/reference/prelu.h``.
    """
    (x, y), slopes = _pair(builder, operator), builder.tensor(operator.inputs[1])
    values = constant_of(builder, operator, 1, "slope")
    if len(x.shape) not in (2, 4) or values.size not in (1, x.shape[-1]) or values.size != values.shape[-1]:
        raise operator.refusal(f"its slopes have the shape {list(values.shape)}", "give one slope for each channel")
    if y.is_levels and values.size == 1:
        levels = _levels(x) - x.zero
        slope = int(values.reshape(-1)[0]) - slopes.zero
        positive = scaled_levels(levels, float(x.scale) / float(y.scale))
        negative = scaled_levels(levels * slope, float(np.float32(x.scale * slopes.scale)) / float(y.scale))
        put_table(builder, operator, operator.inputs[0], np.where(levels >= 0, positive, negative) + y.zero)
        return
    if y.is_levels and builder.engine != "litert" and x.dtype == y.dtype == "int8" and len(x.shape) == 4:
        product = LongProduct(x, values.reshape(-1, 1, 1, 1).astype(np.int16) - slopes.zero, None,
                              np.array(float(np.float32(x.scale * slopes.scale)) / float(y.scale)), twice=True)
        if not product.hindrance:
            _sloped_in_integers(builder, operator, product)
            return
    if y.is_levels:
        builder.near(operator, "it has a slope for each channel")
        values = (values.astype(np.float32) - np.float32(slopes.zero)) * slopes.scale
    form = (-1, *(1,) * (len(x.shape) - 2))
    slope_name = builder.constant(values.astype(np.float32).reshape(form), f"{y.name}:slopes")
    builder.put_real(operator.outputs[0],
                     builder.node("PRelu", [builder.real(operator.inputs[0]), slope_name], like=y.name))


def _sloped_in_integers(builder: GraphBuilder, operator: TfliteOperator, product: LongProduct) -> None:
    """Add a PRELU by a slope for each channel: what is above 0 as a table, and a product of the rest, one of them 0."""
    x, y = _pair(builder, operator)
    levels, one = _levels(x), LevelNumbers(np.float32(1), y.zero)
    positive = scaled_levels(levels - x.zero, float(x.scale) / float(y.scale))
    above = _looked_up(builder, operator.inputs[0], np.where(levels > x.zero, np.clip(positive + y.zero, -128, 127),
                                                             y.zero), one)
    rest = _looked_up(builder, operator.inputs[0], np.minimum(levels, x.zero), LevelNumbers(np.float32(1), x.zero))
    below = product.put(builder, "Conv", rest, y, {"group": len(product.weights)})
    below = builder.dequantised(builder.quantised(below, one, like=y.name), one)
    put_result(builder, operator, builder.node("Add", [builder.dequantised(above, one), below], like=y.name), one)


def _looked_up(builder: GraphBuilder, x: int, values: np.ndarray, levels: LevelNumbers) -> str:
    """Return a function of the levels of tensor ``x`` as int8 ``levels`` of scale 1: ``values``, from the least on."""
    name, zero = builder.tensor(x).name, builder.tensor(x).zero
    real = np.empty(256, np.float32)
    real[(_levels(builder.tensor(x)) - zero) % 256] = values - levels.zero
    steps = builder.real(x, LevelNumbers(np.float32(1), zero, builder.tensor(x).dtype))
    place = builder.node("Cast", [steps], like=name, to=INT32)
    found = builder.node("Gather", [builder.constant(real, f"{name}:table"), place], like=name, axis=0)
    return builder.quantised(found, levels, like=name)


def quantise(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a QUANTIZE, of floats or of other levels."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if not y.is_levels:
        raise operator.refusal(f"its result is {y.dtype}", "convert the model with int8")
    if not x.is_levels:
        if x.dtype != "float32":
            raise operator.refusal(f"its input is {x.dtype}", "convert the model with int8")
        builder.near(operator, "it divides floats by the scale, where LiteRT multiplies by 1 / scale")
        builder.put_real(operator.outputs[0], builder.stored(operator.inputs[0]))
        return
    lowest = {"int8": -128, "uint8": 0}
    if x.scale == y.scale and x.zero - lowest[x.dtype] == y.zero - lowest[y.dtype]:
        builder.put_real(operator.outputs[0], builder.real(operator.inputs[0]))
        return
    levels = _levels(x) - x.zero
    put_table(builder, operator, operator.inputs[0],
              eighths(levels, np.float32(x.scale / y.scale), y.zero) if builder.engine == "litert" else
              scaled_levels(levels, float(x.scale) / float(y.scale)) + y.zero)


def dequantise(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a DEQUANTIZE: the real numbers of levels, or constants in half precision."""
    x = builder.tensor(operator.inputs[0])
    if not x.is_levels and x.dtype not in ("float16", "float32"):
        raise operator.refusal(f"its input is {x.dtype}", "convert the model with int8")
    if x.data is not None and x.is_levels and x.scales.size > 1:
        values = builder.weights(x.data, x, x.axis)
        builder.write(operator.outputs[0], values)
        return
    builder.put(operator.outputs[0], "Identity", [builder.real(operator.inputs[0])])
