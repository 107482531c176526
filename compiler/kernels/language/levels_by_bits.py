"""Quantising by a constant scale: the level of a float32 from its bits, in integer arithmetic.

A quotient by a positive scale, rounded, grows with the dividend, and so does its rounding: each level has a smallest
magnitude. An integer product with the scale's reciprocal gives a level that is right or one too low, and one comparison
with the smallest magnitude of the next tells which. About 40 cycles, where a soft quotient and its rounding take 200.
"""

from functools import lru_cache

import numpy as np

from tilewright.compiler.kernels.language.expression import Expression, both, constant, high, look_up, where

__all__ = ["LEVEL_CYCLES", "RUN_TIME_LEVEL_CYCLES", "level_at_run_time", "level_of_bits", "smallest_magnitudes"]

_INFINITE = 0x7F80_0000
_SMALLEST_NORMAL = 0x80_0000
_NEVER = 0x7FFF_FFFF

LEVEL_CYCLES = 35
"""Of a level on the core, measured in RTL on normally distributed numbers: 34 to 36."""

RUN_TIME_LEVEL_CYCLES = 50
"""The same where the scale is computed while the model runs."""

_FRACTION = 12
"""Bits of a quotient below its point, by which it is rounded; where they are next to a half, it is divided."""

_LARGEST_SHIFT, _LEAST_SHIFT = 9, -3
"""Powers of two by which a dividend's exponent is above the scale's: beyond them, every level is a bound or 0."""

_NORMAL_EXPONENTS = 4, 254
"""Of scales whose quotients are computed in integers."""

_RECIPROCAL_BITS = 53
"""Of the reciprocal of a 24-bit mantissa: the quotient then has 29 bits below its first, and shifts of up to 31."""


def level_of_bits(x: Expression, scale: float, zero_point: int, dtype: str) -> Expression | None:
    """Return clamp(rne(x / scale) + zero_point) as int8 or uint8 ``dtype``, of NaN the lowest; None if it cannot.

    It cannot where the scale is not positive, or where a float of some level is subnormal or infinite.
    """
    bounds = np.iinfo(dtype)
    if not bounds.min <= zero_point <= bounds.max:
        return None
    above, below = bounds.max - zero_point, zero_point - bounds.min
    limits = smallest_magnitudes(np.float32(scale), max(above, below))
    return None if limits is None else _level(x, limits, np.float32(scale), zero_point, dtype)


def level_at_run_time(x: Expression, scale: Expression, zero_point: Expression, divided: Expression,
                      dtype: str) -> Expression:
    """Return clamp(rne(x / scale) + zero_point) as int8 or uint8 ``dtype``, by a scale that is computed.

    The quotient of the mantissas, 2**29 m / s, comes from the scale's reciprocal, which is the same for a whole tensor.
    ``divided`` is the same level by a true division, for quotients that lie next to a half, and for anything odd.
    """
    bounds = np.iinfo(dtype)
    bits, word = x.view("int32").named("bits"), scale.view("int32").named("word")
    size, exponent = (bits & _NEVER).named("size"), (word >> 23).named("exponent")
    mantissa = ((word & 0x7F_FFFF) | _SMALLEST_NORMAL).cast("int64")
    reciprocal = (constant(1 << _RECIPROCAL_BITS, "int64") / mantissa).cast("uint32").named("reciprocal")
    above = ((size >> 23) - exponent).named("above")
    shift = where(above > _LARGEST_SHIFT, constant(_LARGEST_SHIFT, "int32"),
                  where(above < _LEAST_SHIFT, constant(_LEAST_SHIFT, "int32"), above))
    quotient = high(((size << 8) | -2**31).cast("uint32"), reciprocal)
    fixed = (quotient >> (constant(29 - _FRACTION, "int32") - shift).cast("uint32")).cast("int32")
    rounded = (fixed + (1 << _FRACTION - 1)).named("rounded")
    sign = (bits >> 31).named("sign")
    level = ((((rounded >> _FRACTION) ^ sign) - sign) + zero_point).named("level")
    bounded = where(level > int(bounds.max), constant(int(bounds.max), "int32"),
                    where(level < int(bounds.min), constant(int(bounds.min), "int32"), level)).cast(dtype)
    apart = ((rounded + 2) & ((1 << _FRACTION) - 1)) >= 4
    low, high_ = _NORMAL_EXPONENTS
    known = both(both(exponent >= low, exponent <= high_), size < _INFINITE)
    return where(both(known, apart), bounded, divided)      # used once, so that C divides where it must


def _level(x: Expression, limits: np.ndarray, scale: np.float32, zero_point: int, dtype: str) -> Expression:
    bounds = np.iinfo(dtype)
    bits = x.view("int32").named("bits")
    # What gives level 0 at most, and at least: neither moves a level, and shifts stay below 32.
    lowest = int(limits[1]) - 1
    most, least = (int(limits[count]) if count else lowest for count in (bounds.max - zero_point,
                                                                         zero_point - bounds.min))
    size = (bits & _NEVER).named("size")
    bound = where(bits < 0, constant(least, "int32"), constant(most, "int32")).named("bound")
    upper = where(size < bound, size, bound).named("upper")
    bounded = where(upper > lowest, upper, constant(lowest, "int32")).named("bounded")

    word = np.array(scale).view(np.int32)[()]
    exponent, mantissa = int(word >> 23), int(word & 0x7F_FFFF) | _SMALLEST_NORMAL
    reciprocal = constant((1 << _RECIPROCAL_BITS) // mantissa, "uint32")
    quotient = high(((bounded << 8) | -2**31).cast("uint32"), reciprocal)
    guess = (quotient >> (constant(exponent + 29, "int32") - (bounded >> 23)).cast("uint32")).cast("int32")
    guess = guess.named("guess")
    next_up = look_up(np.append(limits[1:], np.int32(_NEVER)).astype(np.int32), guess)
    magnitude = (guess + where(bounded >= next_up, constant(1, "int32"), constant(0, "int32"))).named("magnitude")
    sign = (bits >> 31).named("sign")
    level = (((magnitude ^ sign) - sign) + zero_point).cast(dtype)
    return where(size > _INFINITE, constant(bounds.min, dtype), level)


@lru_cache(maxsize=1024)
def smallest_magnitudes(scale: np.float32, count: int) -> np.ndarray | None:
    """Return the bits of the smallest float32 whose quotient by ``scale`` rounds to 0, 1, .. ``count`` or more.

    None if ``scale`` is not a positive normal number, or one of those beyond 0 is not normal.
    """
    if not scale > 0 or not np.isfinite(scale) or np.array(scale).view(np.int32) < _SMALLEST_NORMAL:
        return None
    levels = np.arange(count + 1)
    low, high_ = np.full(count + 1, -1, np.int64), np.full(count + 1, _INFINITE, np.int64)
    with np.errstate(all="ignore"):
        while np.any(high_ - low > 1):
            middle = (low + high_) // 2
            enough = np.rint(middle.astype(np.int32).view(np.float32) / scale) >= levels
            low, high_ = np.where(enough, low, middle), np.where(enough, middle, high_)
    if high_[1] - 1 < _SMALLEST_NORMAL or high_[-1] >= _INFINITE:
        return None
    found = high_.astype(np.int32)
    found.setflags(write=False)
    return found
