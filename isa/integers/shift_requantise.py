"""Requantisation by a shift, the reference of the datapath's: clamp(floor((sum * multiplier + addend) / 2**shift)).

    shift_requantise    clamp(floor(((acc + bias) * multiplier + addend) / 2**shift) + zero_point)

The addend is less than the multiplier, and what is more of it goes to the bias (:func:`split_addend`). So the sum of
product and addend has the sign of acc + bias, and a datapath of magnitudes needs no signed sum: with n = |acc + bias|,

    acc + bias >= 0     floor((n * multiplier + addend) / 2**shift)
    acc + bias < 0      ~floor((n * multiplier - addend - 1) / 2**shift)

since floor(-a / 2**s) = ~floor((a - 1) / 2**s). Neither numerator is negative.

Halves go up where the addend holds 2**(shift - 1). This is the arithmetic of Deeploy's ``RequantShift`` (halves up;
kernels of github.com/pulp-platform/Deeploy, Targets/Generic), of NEMO (floor; arXiv:2004.05930, section 3), and of
MATCH (floor; github.com/eml-eda/match).

A channel's parameters are one word of 64 bits, as those of a float32 scale are: bias 28 bits, multiplier and addend 18.

Arguments are Python integers: NumPy scalars would wrap silently.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.numerics import clamp, wrap

__all__ = ["BIAS_BITS", "MULTIPLIER_BITS", "SHIFT_BITS", "channel_word", "parameters_of_words", "shift_requantise",
           "split_addend"]

BIAS_BITS, MULTIPLIER_BITS, SHIFT_BITS = 28, 18, 6
"""Widths: of a signed bias, of a multiplier and its addend, and of the shift, which is a layer's."""

_LOW_ADDEND = 32 - BIAS_BITS


def shift_requantise(acc: int, *, bias: int, multiplier: int, addend: int, shift: int, zero_point: int, low: int,
                     high: int) -> int:
    """Bring an accumulator to int8 by a shift.

    Parameters
    ----------
    acc, bias : int
        int32; their sum wraps to int32.
    multiplier : int
        In 1 .. 2**18 - 1.
    addend : int
        In 0 .. multiplier - 1.
    shift : int
        In 0 .. 63.
    zero_point : int
        int8, of the output.
    low, high : int
        int8 bounds of the output, ``low <= high``.

    Returns
    -------
    int
        In ``low .. high``.
    """
    return clamp((wrap(acc + bias, 32) * multiplier + addend >> shift) + zero_point, low, high)


def split_addend(addend: int, multiplier: int) -> tuple[int, int]:
    """Return a bias and an addend below the multiplier with sum * multiplier + addend unchanged.

    Parameters
    ----------
    addend : int
        Of any size and sign.
    multiplier : int
        Above 0.
    """
    return divmod(addend, multiplier)


def channel_word(bias: int, multiplier: int, addend: int) -> int:
    """Return a channel's parameters as they lie in memory, a little-endian word of 64 bits.

    From bit 0 on: the bias, the lowest four bits of the addend, the multiplier, the rest of the addend. The multiplier
    lies where a float32 scale has its mantissa.

    Raises
    ------
    ValueError
        If one of them is out of its range.
    """
    if not -1 << BIAS_BITS - 1 <= bias < 1 << BIAS_BITS - 1:
        raise ValueError(f"Bias must have {BIAS_BITS} bits with its sign, and is {bias}")
    if not 1 <= multiplier < 1 << MULTIPLIER_BITS:
        raise ValueError(f"Multiplier must be in 1..{(1 << MULTIPLIER_BITS) - 1}, and is {multiplier}")
    if not 0 <= addend < multiplier:
        raise ValueError(f"Addend must be in 0..{multiplier - 1}, below its multiplier, and is {addend}")
    low = addend & (1 << _LOW_ADDEND) - 1
    return (bias & (1 << BIAS_BITS) - 1 | low << BIAS_BITS | multiplier << 32
            | addend >> _LOW_ADDEND << 32 + MULTIPLIER_BITS)


def parameters_of_words(words: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Return biases, multipliers and addends of :func:`channel_word`, each of the shape of the uint64 ``words``."""
    lowest = words.astype(np.uint32)
    bias = (lowest << _LOW_ADDEND).view(np.int32) >> _LOW_ADDEND
    multiplier = words >> 32 & (1 << MULTIPLIER_BITS) - 1
    addend = words >> 32 + MULTIPLIER_BITS << _LOW_ADDEND | lowest >> BIAS_BITS
    return bias, multiplier.astype(np.int64), addend.astype(np.int64)
