"""The two roundings of gemmlowp, by which TensorFlow Lite's reference kernels requantise, as their sources have them.

    high_product(a, b)          SaturatingRoundingDoublingHighMul: the upper 32 bits of 2ab, halves up
    divide_by_power(x, e)       RoundingDivideByPOT: x / 2**e, halves away from zero
    twice_rounded(x, m, s)      MultiplyByQuantizedMultiplier of both, of s > 0 by a shift left before
    once_rounded(x, m, s)       the same of the 64-bit product: one rounding, halves up

Sources: gemmlowp's ``fixedpoint/fixedpoint.h``; TensorFlow Lite's ``kernels/internal/common.cc`` and
``kernels/internal/common.h`` (TFLITE_SINGLE_ROUNDING), of which the reference kernels' FULLY_CONNECTED takes the
second, and all that TensorFlow Lite Micro requantises the first. A shift there is the exponent of the real number
m * 2**(s - 31).

**Two roundings are one.** floor(floor(a) / b) = floor(a / b), and both halves are such floors. With n = |x|,
t = 31 - s and s < 0::

    x >= 0      high product    (n m + 2**30) >> 31, never negative, and the division adds half a step:
                result          floor((n m + 2**30) / 2**t + 1/2)
    x < 0       high product    -((n m + 2**30 - 1) >> 31), for halves go up; away from zero then adds to its magnitude:
                result          -floor((n m + 2**30 - 1) / 2**t + 1/2)

and with s >= 0 floor(x m / 2**t + 1/2), which is -floor((n m - 1) / 2**t + 1/2) for x < 0. So a datapath of magnitudes
adds a constant, shifts once and adds the last bit that was shifted out.
"""

__all__ = ["divide_by_power", "high_product", "once_rounded", "twice_rounded"]

_LEAST, _LARGEST = -(1 << 31), (1 << 31) - 1


def high_product(a: int, b: int) -> int:
    """Return the upper 32 bits of 2ab of two int32, rounded halves up."""
    if a == b == _LEAST:
        return _LARGEST
    product = a * b
    nudge = 1 << 30 if product >= 0 else 1 - (1 << 30)
    total = product + nudge
    return total >> 31 if total >= 0 else -(-total >> 31)   # C cuts toward zero


def divide_by_power(x: int, exponent: int) -> int:
    """Return x / 2**exponent, halves away from zero."""
    mask = (1 << exponent) - 1
    return (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))


def twice_rounded(x: int, multiplier: int, shift: int) -> int:
    """Return x * multiplier * 2**(shift - 31) by both roundings; x shifted left must be an int32."""
    return divide_by_power(high_product(x << max(shift, 0), multiplier), max(-shift, 0))


def once_rounded(x: int, multiplier: int, shift: int) -> int:
    """Return the same, rounded halves up once."""
    total = 31 - shift
    return (x * multiplier + (1 << total - 1)) >> total
