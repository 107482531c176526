"""Exponential, logarithm and rounding of float32 in integer arithmetic, ten times as fast as in soft float.

The core multiplies 32-bit integers in a few cycles, and a soft float takes sixty. Polynomials interpolate at
Chebyshev's nodes (derived with 60 digits); their coefficients are integers of 30 or 31 fractional bits, so that the
results are within 0.6 units in the last place.
"""

from tilewright.compiler.kernels.language.expression import Expression, both, constant, equal, function, high, where

__all__ = ["LOG", "ONE", "exp", "log", "rint"]

_INFINITY = float("inf")
_NAN = float("nan")

_SIZE_MASK = 0x7FFF_FFFF
_INFINITE = 0x7F80_0000
_FRACTION_MASK = 0x7F_FFFF
ONE = 0x3F80_0000
_LEADING_ONE = 0x80_0000
"""The mantissa's bit that float32 leaves out."""

_LOG2_E = 99141248300
"""log2(e) * 2**36."""

_LN_2 = 24973259072661437
"""ln(2) * 2**55."""

_EXP2 = (44521, 313739, 2875277, 20650546, 119194876, 515882451, 1488522236)
"""(2**f - 1) / f * 2**31 for f from 0 to 1, highest power first."""

LOG = (-80006503, 137509932, -142442927, 152467582, -178331009, 214758452, -268452411, 357914070, -536870788,
       1073741823)
"""log(1 + r) / r * 2**30 for 1 + r from sqrt(1/2) to sqrt(2), highest power first."""


@function("float32")
def rint(x: Expression) -> Expression:
    """Nearest integer, halves to even."""
    bits = x.view("int32").named("bits")
    size = (bits & _SIZE_MASK).named("size")
    # From 1 to 2**23 the last ``below`` bits are the fraction; the bit above them tells whether to round a half up.
    fraction = both(size >= ONE, size < 0x4B00_0000).named("has_fraction")
    below = where(fraction, constant(150, "int32") - (size >> 23), constant(1, "int32")).named("below")
    unit = (constant(1, "int32") << below).named("unit")
    rounded = ((size + ((unit >> 1) - 1) + ((size >> below) & 1)) & -unit)
    small = where(size > 0x3F00_0000, constant(ONE, "int32"), constant(0, "int32"))
    whole = where(fraction, rounded, small) | (bits ^ size)
    return where(size < 0x4B00_0000, whole.view("float32"), x)


@function("float32")
def exp(x: Expression) -> Expression:
    """Exponential, within 1 unit in the last place."""
    bits = x.view("int32").named("bits")
    size = (bits & _SIZE_MASK).named("size")
    beyond = (size >= 0x42D0_0000).named("beyond")  # 104
    # x / ln(2) with 31 fractional bits; what is below 2**-35 counts as 0.
    mantissa = ((size & _FRACTION_MASK) | _LEADING_ONE).cast("int64")
    shift = where(both(size >= 0x2E00_0000, size < 0x42D0_0000), constant(155, "int32") - (size >> 23),
                  constant(63, "int32")).cast("int64")
    steps = ((mantissa * _LOG2_E) >> shift).named("steps")
    signed = where(bits < 0, -steps, steps).named("signed_steps")
    n = (signed >> 31).cast("int32").named("n")
    f = (signed.cast("uint32") << 1).named("f")
    total = constant(_EXP2[0], "uint32")
    for power, each in enumerate(_EXP2[1:], 1):
        total = (high(total, f) + each).named(f"p{len(_EXP2) - power}")
    fraction = ((high(total, f) + 128) >> 8).cast("int32").named("fraction")
    tiny = (((n + 191) << 23) + fraction).view("float32") * 2.0**-64
    result = where(n > 127, _INFINITY, where(n < -126, tiny, (((n + 127) << 23) + fraction).view("float32")))
    limit = where(size > _INFINITE, x, where(bits < 0, constant(0, "float32"), _INFINITY))
    return where(beyond, limit, result)


@function("float32")
def log(x: Expression) -> Expression:
    """Natural logarithm, within 1 unit in the last place."""
    bits = x.view("int32").named("bits")
    small = (bits < _LEADING_ONE).named("small")
    scaled = where(small, (x * 2.0**24).view("int32"), bits).named("scaled")
    # x = m * 2**e with m from sqrt(1/2) to sqrt(2); r = m - 1 with 31 fractional bits.
    e = ((scaled - 0x3F35_04F3) >> 23).named("e")
    m = (scaled - (e << 23)).named("m")
    mantissa = ((m & _FRACTION_MASK) | _LEADING_ONE).named("mantissa")
    r = where(m >= ONE, (mantissa - _LEADING_ONE) << 8, (mantissa - 2 * _LEADING_ONE) << 7).named("r")
    total = constant(LOG[0], "int32")
    for power, each in enumerate(LOG[1:], 1):
        total = ((high(total, r) << 1) + each).named(f"p{len(LOG) - power}")
    exponent = e - where(small, constant(24, "int32"), constant(0, "int32"))
    fixed = ((r.cast("int64") * total.cast("int64")) >> 6) + exponent.cast("int64") * _LN_2
    size = bits & _SIZE_MASK
    edge = where(equal(size, 0), -_INFINITY, where(both(bits < 0, size <= _INFINITE), _NAN, x))
    return where(both(bits > 0, bits < _INFINITE), fixed.cast("float32") * 2.0**-55, edge)

