"""Requantisation by a multiplier of 31 bits and a shift for each channel: gemmlowp's two roundings, or one, halves up.

    long_requantise    clamp(rounded((acc + bias) * multiplier / 2**shift) + zero_point)

With n = |acc + bias|, a nudge of 2**30 if ``twice`` and shift >= 32, else 0, and 1 less of it where acc + bias < 0::

    rounded = ± floor((n * multiplier + nudge) / 2**shift + 1/2)

which `isa.integers.gemmlowp` derives: it is ``twice_rounded`` with ``twice``, else ``once_rounded``, of a shift there
of 31 - shift.

A channel's parameters are one word of 64 bits: bias 28 bits, multiplier 30, as its top bit is always set, shift 6.

Arguments are Python integers: NumPy scalars would wrap silently.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.integers.shift_requantise import BIAS_BITS, SHIFT_BITS
from tilewright.isa.numerics import clamp, wrap

__all__ = ["LONG_BITS", "NUDGE_BITS", "channel_word", "long_levels", "long_requantise", "parameters_of_words"]

LONG_BITS, NUDGE_BITS = 31, 30
"""Bits of a multiplier, whose top bit is set; the nudge before the second rounding is 1 shifted by NUDGE_BITS."""

_MIDDLE, _LOW, _SHIFT_AT, _TOP_AT = 24, 32 - BIAS_BITS, 56, 56 + SHIFT_BITS
_LARGEST_BIAS, _TOP = 1 << BIAS_BITS - 1, 1 << LONG_BITS - 1


def long_requantise(acc: int, *, bias: int, multiplier: int, shift: int, twice: int, zero_point: int, low: int,
                    high: int) -> int:
    """Bring an accumulator to int8 by a long multiplier.

    Parameters
    ----------
    acc, bias : int
        int32; their sum wraps to int32.
    multiplier : int
        In 2**30 .. 2**31 - 1.
    shift : int
        In 1 .. 63.
    twice : int
        Whether there are two roundings, or one.
    zero_point : int
        int8, of the output.
    low, high : int
        int8 bounds of the output, ``low <= high``.

    Returns
    -------
    int
        In ``low .. high``.
    """
    total = wrap(acc + bias, 32)
    nudge = (1 << NUDGE_BITS if twice and shift > LONG_BITS else 0) - (total < 0)
    magnitude = (abs(total) * multiplier + nudge + (1 << shift - 1)) >> shift
    return clamp((-magnitude if total < 0 else magnitude) + zero_point, low, high)


def long_levels(totals: NDArray[np.int32], multipliers: NDArray[np.int64], shifts: NDArray[np.int64], *,
                twice: bool) -> NDArray[np.int64]:
    """Return the rounded quotients of ``totals``, acc + bias, before zero point and bounds; the rest is broadcast."""
    magnitude = np.abs(totals.astype(np.int64))
    nudge = np.where(twice & (shifts > LONG_BITS), 1 << NUDGE_BITS, 0) - (totals < 0)
    numerator = magnitude * multipliers + nudge
    rounded = (numerator >> shifts) + (numerator >> shifts - 1 & 1)
    return np.where(totals < 0, -rounded, rounded)


def channel_word(bias: int, multiplier: int, shift: int) -> int:
    """Return a channel's parameters as they lie in memory, a little-endian word of 64 bits.

    From bit 0 on: the bias; bits 24 to 27 of the multiplier; its lowest 24 bits, where a float32 scale has its
    mantissa; the shift; bits 28 and 29 of the multiplier.

    Raises
    ------
    ValueError
        If one of them is out of its range.
    """
    if not -_LARGEST_BIAS <= bias < _LARGEST_BIAS:
        raise ValueError(f"Bias must have {BIAS_BITS} bits with its sign, and is {bias}")
    if not _TOP <= multiplier < 2 * _TOP:
        raise ValueError(f"Multiplier must have {LONG_BITS} bits, and is {multiplier}")
    if not 1 <= shift < 1 << SHIFT_BITS:
        raise ValueError(f"Shift must be in 1..{(1 << SHIFT_BITS) - 1}, and is {shift}")
    lowest, middle = multiplier & (1 << _MIDDLE) - 1, multiplier >> _MIDDLE & (1 << _LOW) - 1
    top = multiplier >> _MIDDLE + _LOW & 3
    return (bias & (1 << BIAS_BITS) - 1 | middle << BIAS_BITS | lowest << 32 | shift << _SHIFT_AT | top << _TOP_AT)


def parameters_of_words(words: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Return biases, multipliers and shifts of :func:`channel_word`, each of the shape of the uint64 ``words``."""
    lowest = words.astype(np.uint32)
    bias = (lowest << _LOW).view(np.int32) >> _LOW
    multiplier = (words >> 32 & (1 << _MIDDLE) - 1 | (lowest >> BIAS_BITS).astype(np.uint64) << _MIDDLE
                  | words >> _TOP_AT << _MIDDLE + _LOW | _TOP)
    return bias, multiplier.astype(np.int64), (words >> _SHIFT_AT & (1 << SHIFT_BITS) - 1).astype(np.int64)
