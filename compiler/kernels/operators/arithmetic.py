"""Arithmetic, comparisons and activations: the formulas of ONNX's elementwise operators."""

from collections.abc import Callable

from tilewright.compiler.kernels.language import float_functions as f
from tilewright.compiler.kernels.language.checked import ALL, INTEGERS, Refused, attribute
from tilewright.compiler.kernels.language.expression import (
    Expression,
    binary,
    compare,
    constant,
    is_nan,
    not_equal,
    sqrt,
    where,
)
from tilewright.compiler.kernels.operators.elementwise import Elementwise, Formula
from tilewright.isa.program import Call

__all__ = ["FLOAT", "KERNELS", "NUMBERS", "ONNX_DTYPES", "TRANSCENDENTAL", "UNARY", "cast", "greatest", "least"]

NUMBERS = ("float32", *INTEGERS)
FLOAT = ("float32",)
_NEAR = "relative 1e-6, absolute 3e-7 near 0"
_MANY = 1000
"""More inputs than any n-ary operator has."""

ONNX_DTYPES = {1: "float32", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 9: "bool"}
"""ONNX's TensorProto.DataType, those that Cast knows."""


def least(a: Expression, b: Expression) -> Expression:
    """Return the smaller of two; NaN if one is."""
    return where(_or(a < b, a), a, b)


def greatest(a: Expression, b: Expression) -> Expression:
    """Return the larger of two; NaN if one is."""
    return where(_or(a > b, a), a, b)


def _or(condition: Expression, value: Expression) -> Expression:
    """Return ``condition``, or whether ``value`` is NaN where it can be."""
    return binary("bitwise_or", condition, is_nan(value)) if value.dtype == "float32" else condition


def _clamp(x: Expression, low: float, high: float) -> Expression:
    """Return ``x`` bounded by constants."""
    return where(x < low, low, where(x > high, high, x))


def cast(x: Expression, dtype: str) -> Expression:
    """Return ``x`` as ``dtype``: a float towards zero, beyond int32 (int64) its bounds, NaN as 0; then wrapped."""
    if dtype == "bool":
        return x if x.dtype == "bool" else not_equal(x, constant(0, x.dtype))
    if x.dtype != "float32" or dtype == "float32":
        return x.cast(dtype)
    return f.to_int64(x) if dtype == "int64" else f.to_int32(x).cast(dtype)


def _clip(call: Call, x: Expression, low: Expression | None = None, high: Expression | None = None) -> Expression:
    if low is None and (given := attribute(call, "min", None)) is not None:
        low = constant(given, x.dtype)
    if high is None and (given := attribute(call, "max", None)) is not None:
        high = constant(given, x.dtype)
    if low is not None:
        x = where(x < low, low, x)
    return x if high is None else where(x > high, high, x)


def _power(call: Call, x: Expression, y: Expression) -> Expression:
    return f.power(x, y.cast("float32"))


def _cast(call: Call, x: Expression) -> Expression:
    to = ONNX_DTYPES.get(call.attrs["to"])
    if to is None:
        raise Refused(f"Cast goes to {' '.join(ONNX_DTYPES.values())}, not to ONNX's type {call.attrs['to']!r}")
    return cast(x, to)


def _gelu(call: Call, x: Expression) -> Expression:
    match attribute(call, "approximate", "none"):
        case "none":
            return x * 0.5 * (f.erf(x * 0.70710678118654752) + 1)
        case "tanh":
            return x * 0.5 * (f.tanh((x * x * x * 0.044715 + x) * 0.7978845608028654) + 1)
        case other:
            raise Refused(f"Gelu must be approximated by none or tanh, not {other!r}")


def _number(call: Call, name: str, default: float) -> float:
    return float(attribute(call, name, default))


def _elu(call: Call, x: Expression) -> Expression:
    return where(x < 0, (f.exp(x) - 1) * _number(call, "alpha", 1), x)


def _selu(call: Call, x: Expression) -> Expression:
    alpha, gamma = _number(call, "alpha", 1.67326319217681884765625), _number(call, "gamma", 1.05070102214813232421875)
    return where(x > 0, x, (f.exp(x) - 1) * alpha) * gamma


def _celu(call: Call, x: Expression) -> Expression:
    alpha = _number(call, "alpha", 1)
    return where(x < 0, (f.exp(x / alpha) - 1) * alpha, x)


def _hard_sigmoid(call: Call, x: Expression) -> Expression:
    return _clamp((x * _number(call, "alpha", 0.2) + _number(call, "beta", 0.5)).named("line"), 0, 1)


def _hard_swish(call: Call, x: Expression) -> Expression:
    return x * _clamp((x * (1 / 6) + 0.5).named("line"), 0, 1)


def _sign(call: Call, x: Expression) -> Expression:
    one = constant(1, x.dtype)
    negative = constant(-1, x.dtype) if x.dtype != "uint8" else one
    return where(x > 0, one, where(x < 0, negative, x))


def _fold(pair: Callable[[Expression, Expression], Expression]) -> Formula:
    def folded(call: Call, *args: Expression) -> Expression:
        result, *rest = args
        for each in rest:
            result = pair(result, each).named("")
        return result
    return folded


def _mean(call: Call, *args: Expression) -> Expression:
    return _fold(lambda a, b: a + b)(call, *args) / float(len(args))


def _pair(op: str) -> Formula:
    return lambda call, a, b: binary(op, a, b)


def _comparison(op: str) -> Formula:
    return lambda call, a, b: compare(op, a, b)


def _unary(formula: Callable[[Expression], Expression]) -> Formula:
    return lambda call, x: formula(x)


_TWO = (2, 2)
_ARITHMETIC = (
    *(Elementwise(op, _pair(name), [NUMBERS], inputs=_TWO)
      for op, name in (("Add", "add"), ("Sub", "subtract"), ("Mul", "multiply"), ("Div", "divide"))),
    Elementwise("Pow", _power, [FLOAT, ("float32", "int32", "int64")], inputs=_TWO, same=False, exactness="1 ulp",
                limits="float32, exponents also int32 int64"),
    Elementwise("PRelu", lambda call, x, slope: where(x < 0, x * slope, x), [FLOAT], inputs=_TWO),
    Elementwise("Min", _fold(least), [NUMBERS], inputs=(1, _MANY)),
    Elementwise("Max", _fold(greatest), [NUMBERS], inputs=(1, _MANY)),
    Elementwise("Sum", _fold(lambda a, b: a + b), [FLOAT], inputs=(1, _MANY)),
    Elementwise("Mean", _mean, [FLOAT], inputs=(1, _MANY)),
)
_LOGIC = (
    Elementwise("Equal", _comparison("equal"), [ALL], inputs=_TWO),
    *(Elementwise(op, _comparison(name), [NUMBERS], inputs=_TWO)
      for op, name in (("Greater", "greater"), ("GreaterOrEqual", "greater_equal"), ("Less", "less"),
                       ("LessOrEqual", "less_equal"))),
    *(Elementwise(op, _pair(f"bitwise_{name}"), [("bool",)], inputs=_TWO)
      for op, name in (("And", "and"), ("Or", "or"), ("Xor", "xor"))),
    Elementwise("Not", _unary(lambda x: Expression("logical_not", "bool", (x,))), [("bool",)]),
    Elementwise("IsNaN", _unary(is_nan), [FLOAT]),
    Elementwise("Where", lambda call, choice, a, b: where(choice, a, b), [("bool",), ALL], inputs=(3, 3), same=False,
                limits="any dtype"),
)
UNARY = (
    *(Elementwise(op, _unary(formula), [("float32", "int8", "int32", "int64")])
      for op, formula in (("Neg", lambda x: -x), ("Abs", abs))),
    *(Elementwise(op, _unary(formula), [FLOAT])
      for op, formula in (("Floor", f.floor), ("Ceil", f.ceil), ("Round", f.rint), ("Sqrt", sqrt),
                          ("Reciprocal", lambda x: 1 / x), ("Softsign", lambda x: x * (1 / (abs(x) + 1))))),
    Elementwise("Sign", _sign, [NUMBERS]),
    Elementwise("Relu", _unary(lambda x: where(x < 0, constant(0, x.dtype), x)), [("float32", "int8", "int32")]),
    Elementwise("LeakyRelu", lambda call, x: where(x < 0, x * _number(call, "alpha", 0.01), x), [FLOAT]),
    Elementwise("ThresholdedRelu", lambda call, x: where(x > _number(call, "alpha", 1), x, 0.0), [FLOAT]),
    Elementwise("Clip", _clip, [NUMBERS], inputs=(1, 3),
                limits="float32 int8 uint8 int32 int64; infinities stay where a bound is missing"),
    Elementwise("Identity", _unary(lambda x: x), [ALL]),
    Elementwise("Dropout", lambda call, x, ratio=None, training=None: x, [FLOAT], inputs=(1, 1),
                limits="float32, inference only"),
    Elementwise("Cast", _cast, [ALL]),
    Elementwise("HardSigmoid", _hard_sigmoid, [FLOAT], exactness=_NEAR),
    Elementwise("HardSwish", _hard_swish, [FLOAT], exactness=_NEAR),
)
TRANSCENDENTAL = (
    *(Elementwise(op, _unary(formula), [FLOAT], exactness=f"{bound} ulp")
      for op, formula, bound in (("Exp", f.exp, 1), ("Log", f.log, 1), ("Tanh", f.tanh, 3), ("Sigmoid", f.sigmoid, 3),
                                 ("Softplus", f.softplus, 4), ("Erf", f.erf, 3))),
    *(Elementwise(op, formula, [FLOAT], exactness=_NEAR)
      for op, formula in (("Elu", _elu), ("Selu", _selu), ("Celu", _celu), ("Gelu", _gelu))),
    Elementwise("Mish", _unary(lambda x: x * f.tanh(f.softplus(x))), [FLOAT], exactness="4 ulp"),
    Elementwise("Swish", lambda call, x: x * f.sigmoid(x * _number(call, "alpha", 1)), [FLOAT], exactness="4 ulp"),
    Elementwise("QuickGelu", lambda call, x: x * f.sigmoid(x * _number(call, "alpha", 1.702)), [FLOAT],
                exactness="relative 2e-6"),
)
KERNELS = (*_ARITHMETIC, *_LOGIC, *UNARY, *TRANSCENDENTAL)
