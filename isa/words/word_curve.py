"""A function of words of 16 bits as parabolas behind the requantisation: one for each 512 words that follow each other.

All value tables together are a curve: 128 little-endian words of 64 bits, that of words from -32,768 on first. With l,
-256 .. 255, for the distance of a word from the middle of its piece, a result is

    (64 value + l ((slope + (curvature l + 64) // 128) mod 2**18) + 4096) // 8192, within int16

so ``value`` counts in 1/128, ``slope`` in 2**-13 and ``curvature`` in 2**-20; the sum in the middle keeps 18 bits.
"""

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.words.curve_fields import CURVATURE, PIECE, PIECES, ROUNDINGS, SLOPE, UNITS, VALUE

__all__ = ["curve_bytes", "follow_curve"]

_Int16 = NDArray[np.int16]


def follow_curve(words: _Int16, curve: NDArray[np.uint64]) -> _Int16:
    """Return what ``words`` of any shape become by ``curve``, uint64 (128,)."""
    place = words.astype(np.int64) + (PIECES * PIECE >> 1)
    entries, along = curve[place // PIECE], place % PIECE - PIECE // 2
    value, slope = _signed(entries, VALUE), _signed(entries >> np.uint64(VALUE), SLOPE)
    curvature = _signed(entries >> np.uint64(VALUE + SLOPE), CURVATURE)
    lost, gained = ROUNDINGS
    bent = slope + (curvature * along + (1 << lost - 1) >> lost)
    bent = _signed(bent.astype(np.uint64), SLOPE)
    total = (value << gained) + bent * along + (1 << UNITS[1] - 1) >> UNITS[1]
    return np.clip(total, -32_768, 32_767).astype(np.int16)


def curve_bytes(value: NDArray[np.int64], slope: NDArray[np.int64], curvature: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the curve, int8 (1024,), of the fields of its pieces, integers within their bits."""
    for given, bits in ((value, VALUE), (slope, SLOPE), (curvature, CURVATURE)):
        assert given.shape == (PIECES,)
        assert int(given.min()) >= -(1 << bits - 1)
        assert int(given.max()) < 1 << bits - 1
    entries = np.zeros(PIECES, np.uint64)
    for given, bits, place in ((value, VALUE, 0), (slope, SLOPE, VALUE), (curvature, CURVATURE, VALUE + SLOPE)):
        entries |= (given & ((1 << bits) - 1)).astype(np.uint64) << np.uint64(place)
    return entries.astype("<u8").view(np.int8)


def _signed(numbers: NDArray[np.uint64], bits: int) -> NDArray[np.int64]:
    """Return the lowest ``bits`` of numbers as signed ones."""
    kept = (numbers & np.uint64((1 << bits) - 1)).astype(np.int64)
    return kept - ((kept >> bits - 1) << bits)
