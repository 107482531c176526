"""Words of 16 bits as two planes of bytes: x = 256 upper + lower + 128, both int8, and the requantisation to them.

So a sum of x w is 256 times that of the upper bytes, and that of the lower ones, but for 128 times the sum of the
weights, which is constant and in the bias; and an array of int8 computes it in two passes, with the same weights.

`isa.numerics.requantise` rounds as it does to int8. For words its error is more than the rounding: sum, scale and
product are float32, each within 2**-24 of its size of what it stands for, and the scale is a product and a quotient of
float32. A word less its zero point is at most 2**16, so it is within 2**16 * 4.01 * 2**-24 < `WORD_ERROR` of the real
number before it is rounded.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["LOWER_OFFSET", "WORD_ERROR", "planes_of", "requantise_words", "words_of"]

LOWER_OFFSET = 128
"""The number subtracted from a lower byte, so that it is int8."""

WORD_ERROR = 2.0**-6
"""Levels of a result of 16 bits, besides half a level of rounding."""

_Int8 = NDArray[np.int8]
_Int16 = NDArray[np.int16]
_BEYOND = 1 << 17


def planes_of(words: _Int16) -> tuple[_Int8, _Int8]:
    """Return the upper and the lower bytes of words: int8 of the same shape."""
    wide = words.astype(np.int32)
    return (wide >> 8).astype(np.int8), ((wide & 0xFF) - LOWER_OFFSET).astype(np.int8)


def words_of(upper: _Int8, lower: _Int8) -> _Int16:
    """Return the words, int16, of these upper and lower bytes."""
    return (256 * upper.astype(np.int32) + lower + LOWER_OFFSET).astype(np.int16)


def requantise_words(sums: NDArray[np.int32], bias: NDArray[np.int32], scale: NDArray[np.float32], zero_point: int,
                     bounds: tuple[int, int]) -> _Int16:
    """Return ``isa.numerics.requantise`` of (..., channels) sums with (channels,) bias and scale: int16 in bounds."""
    with np.errstate(over="ignore"):
        acc = sums + bias
    scaled = np.clip(np.rint(acc.astype(np.float32) * scale).astype(np.float64), -_BEYOND, _BEYOND)
    return np.clip(scaled + zero_point, *bounds).astype(np.int16)
