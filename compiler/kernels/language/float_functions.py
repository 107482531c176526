"""Elementary functions of float32 as sequences of float32 operations, for NumPy and C alike.

The hyperbolic tangent near 0 follows S. Moshier's Cephes library (``tanhf.c``; netlib.org/cephes), the error function
N. Juffa's two polynomials (stackoverflow.com/questions/35148198), whose fused multiply-adds are two roundings here. The
power goes through float64, as the exponent magnifies the logarithm's error; exponential and logarithm are integers
inside (``fixed_point.py``). Bounds hold where the result is a normal number;
tests/compiler/kernels/language/test_float_functions.py measures them.
"""

from collections.abc import Sequence

import numpy as np

from tilewright.compiler.kernels.language.expression import (
    Expression,
    Operand,
    ScalarFunction,
    both,
    constant,
    copysign,
    equal,
    function,
    is_nan,
    not_equal,
    variable,
    where,
)
from tilewright.compiler.kernels.language.fixed_point import exp, log, rint

__all__ = ["DIVIDED_LEVELS", "INFINITY", "ceil", "clipped", "erf", "exp", "floor", "hard_swish", "leaky", "level_int8",
           "level_uint8", "log", "log1p", "polynomial", "power", "rint", "round_to_integer", "saturate", "sigmoid",
           "softplus", "tanh", "to_int32", "to_int64"]

INFINITY = float("inf")
NAN = float("nan")

def polynomial(x: Expression, coefficients: Sequence[Operand]) -> Expression:
    """Return the polynomial in ``x``, highest power first, by Horner's rule."""
    result = coefficients[0]
    for each in coefficients[1:]:
        result = result * x + each
    return result if isinstance(result, Expression) else constant(result, x.dtype)


@function("float32")
def floor(x: Expression) -> Expression:
    """Largest integer not above x."""
    near = rint(x).named("near")
    return copysign(where(near > x, near - 1, near), x)


@function("float32")
def ceil(x: Expression) -> Expression:
    """Smallest integer not below x."""
    near = rint(x).named("near")
    return copysign(where(near < x, near + 1, near), x)


def _to_integer(x: Expression, dtype: str, bound: int) -> Expression:
    lowest, highest, none = (constant(value, dtype) for value in (-bound, bound - 1, 0))
    below = where(x < float(bound), x.cast(dtype), highest)
    return where(x > -float(bound), below, where(is_nan(x), none, lowest))


@function("float32")
def to_int32(x: Expression) -> Expression:
    """Integer towards 0; beyond the range its bounds, of NaN 0."""
    return _to_integer(x, "int32", 2**31)


@function("float32")
def to_int64(x: Expression) -> Expression:
    """Integer towards 0; beyond the range its bounds, of NaN 0."""
    return _to_integer(x, "int64", 2**63)


@function("float32")
def log1p(x: Expression) -> Expression:
    """Logarithm of 1 + x for x from 0 to 1, within 3 units in the last place (W. Kahan's quotient)."""
    u = (x + 1).named("u")
    return where(equal(u, 1), x, log(u) * (x / (u - 1)))


@function("float32")
def tanh(x: Expression) -> Expression:
    """Hyperbolic tangent, within 3 units in the last place (Cephes, tanhf.c)."""
    size = abs(x).named("size")
    z = (x * x).named("z")
    p = polynomial(z, (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
                       -3.33332819422e-1)).named("p")
    large = copysign(1 - 2 / (exp(size + size) + 1), x)
    return where(size < 0.625, p * z * x + x, large)


@function("float32")
def sigmoid(x: Expression) -> Expression:
    """Logistic function, within 3 units in the last place down to exp(-87)."""
    return 1 / (1 + exp(-x))


@function("float32")
def softplus(x: Expression) -> Expression:
    """Logarithm of 1 + exp(x), within 4 units in the last place."""
    return where(x > 0, x, constant(0, "float32")) + log1p(exp(-abs(x)))


@function("float32")
def erf(x: Expression) -> Expression:
    """Error function, within 3 units in the last place (N. Juffa)."""
    size = abs(x).named("size")
    square = (x * x).named("square")
    near = polynomial(square, (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1,
                               1.28379166e-1)) * x + x
    r = polynomial(size, (-1.72853470e-5, 3.83197126e-4))
    u = polynomial(size, (-3.88396438e-3, 2.42546219e-2))
    exponent = polynomial(size, (r * square + u, -1.06777877e-1, -6.34846687e-1, -1.28717512e-1)) * size - size
    return where(size > 0.927734375, copysign(1 - exp(exponent), x), near)


@function("float32")
def log_magnitude(x: Expression) -> Expression:
    """Natural logarithm of |x|, finite and not 0, in float64: the series of the inverse hyperbolic tangent."""
    size = abs(x).named("size")
    small = (size < 1.17549435e-38).named("small")
    bits = where(small, size * 16777216, size).view("int32").named("bits")
    e = ((bits - 0x3F3504F3) >> 23).named("e")
    m = (bits - (e << 23)).view("float32").cast("float64").named("m")
    s = ((m - 1) / (m + 1)).named("s")
    square = (s * s).named("square")
    series = polynomial(square, [2 / k for k in (15, 13, 11, 9, 7, 5, 3)]).named("p") * square + 2
    exponent = e - where(small, constant(24, "int32"), constant(0, "int32"))
    return series * s + exponent.cast("float64") * 0.6931471805599453


@function("float64")
def exp_wide(x: Expression) -> Expression:
    """Exponential of a float64 as float32, within 1 unit in the last place: Taylor's series."""
    bounded = where(x < -110, -110, where(x > 95, 95, x)).named("bounded")
    n = (bounded * 1.4426950408889634 + where(bounded < 0, -0.5, constant(0.5, "float64"))).cast("int32").named("n")
    r = (bounded - n.cast("float64") * 0.6931471805599453).named("r")
    p = polynomial(r, [1 / k for k in (3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2, 1, 1)]).named("p")
    half = (n >> 1).named("half")
    return p.cast("float32") * ((half + 127) << 23).view("float32") * ((n - half + 127) << 23).view("float32")


@function("float32")
def power(x: Expression, y: Expression) -> Expression:
    """Return x to the power of y as C's pow has it, within 1 unit in the last place."""
    size = abs(x).named("size")
    zero, one, infinite = (constant(value, "float32") for value in (0, 1, INFINITY))
    whole = equal(rint(y), y).named("whole")
    half = (y * 0.5).named("half")
    odd = both(whole, not_equal(rint(half), half)).named("odd")
    edge = where(equal(size, 0), where(y > 0, zero, infinite), where(y > 0, infinite, zero))
    magnitude = where(equal(size, 1), one, where(both(size > 0, size < INFINITY),
                                                 exp_wide(y.cast("float64") * log_magnitude(x)), edge))
    signed = where(odd, copysign(magnitude, x), magnitude)
    defined = where(both(both(x < 0, size < INFINITY), not_equal(whole, constant(1, "bool"))), NAN, signed)
    number = where(is_nan(x), x, where(is_nan(y), y, defined))
    return where(equal(y, 2), x * x, where(equal(y, 0), one, where(equal(x, 1), one, number)))


_ROUNDING = 12582912.0
"""1.5 * 2**23: adding it to a float32 of up to 2**22 rounds that to an integer, which the lower bits then hold."""

_ROUNDING_BITS = 0x4B400000


def round_to_integer(x: Expression) -> Expression:
    """Return the nearest int32 of a float32 of at most 2**22 in size, halves to even."""
    return (x + _ROUNDING).view("int32") - _ROUNDING_BITS


def saturate(x: Expression, zero_point: Expression, dtype: str) -> Expression:
    """Return clamp(rne(x) + zero_point) as ``dtype`` of float32 ``x`` and int32 ``zero_point``; of NaN the lowest."""
    bounds = np.iinfo(dtype)
    low, high = ((constant(bound, "int32") - zero_point).cast("float32") for bound in (bounds.min, bounds.max))
    bounded = where(x > low, where(x < high, x, high), low)
    return (round_to_integer(bounded) + zero_point).cast(dtype)


def _divided(dtype: str) -> ScalarFunction:
    """Return the function of a float, its scale and its zero point, as a float, that divides and rounds."""
    x, scale, zero = (variable(name, "float32") for name in ("x", "scale", "zero"))
    body = saturate((x / scale).named("quotient"), zero.cast("int32").named("zero_point"), dtype)
    return ScalarFunction(f"tw_level_{dtype}", f"The {dtype} level of x: x / scale, rounded, plus zero, bounded.",
                          (x, scale, zero), body)


@function("float32")
def clipped(x: Expression, low: Expression, high: Expression) -> Expression:
    """x, at least low and then at most high: a function, so that x is computed where it is needed alone."""
    raised = where(x < low, low, x).named("raised")
    return where(raised > high, high, raised)


@function("float32")
def hard_swish(x: Expression) -> Expression:
    """Product of x and min(max(x / 6 + 1/2, 0), 1): a function for the same reason."""
    line = (x * (1 / 6) + 0.5).named("line")
    return x * where(line < 0, constant(0, "float32"), where(line > 1, constant(1, "float32"), line))


@function("float32")
def leaky(x: Expression, alpha: Expression) -> Expression:
    """x, or alpha times it below 0: a function for the same reason."""
    return where(x < 0, x * alpha, x)


level_int8, level_uint8 = _divided("int8"), _divided("uint8")

DIVIDED_LEVELS = {"int8": level_int8, "uint8": level_uint8}
"""Functions that quantise by a true division, by the dtype of the levels."""
