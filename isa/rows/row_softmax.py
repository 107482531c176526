"""Softmax of a row of levels, in integers: a table of exponentials, their sum, one factor for the whole row.

Of a row x of int8::

    entry    table[max x - x]                               24 bits; 2**24 - 1 for the largest element
    factor   floor(mantissa · 2**places / Σ entry)          places: the fewest with which it has 24 bits
    level    requantise(entry), its scale factor · 2**-(shift + places)

mantissa · 2**-shift is how many levels stand for 1. ONNX Runtime's QLinearSoftmax, which its optimiser makes of
DequantizeLinear, Softmax and QuantizeLinear, takes the whole part of 1 / y_scale, and so does :class:`RowSoftmax`
(``qlinear_softmax.cc``). It sums float32 in the order of the elements, so that about one element in a million lies a
level beside these.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tilewright.isa.numerics import MANTISSA_BITS, pack_scale, requantise, round_float32

__all__ = ["ENTRY_BITS", "LEAST_FIRST_ENTRY", "TABLE_WORDS", "RowSoftmax", "row_factor", "softmax_row"]

ENTRY_BITS = MANTISSA_BITS
"""Of an exponential: a float32 holds it exactly."""

LEAST_FIRST_ENTRY = 1 << ENTRY_BITS - 1
"""Of the largest element of a row: with it a sum is no less, and the first digit of a factor is one digit."""

TABLE_WORDS = 256
"""Words of 32 bits in a table, one for each difference of two levels."""


def row_factor(mantissa: int, total: int) -> tuple[int, int]:
    """Return ``(factor, places)``: factor · 2**-places is mantissa / total, cut off behind 24 significant bits.

    Parameters
    ----------
    mantissa : int
        In 2**23 .. 2**24 - 1.
    total : int
        At least 2**23.
    """
    places = max(total.bit_length() - 1, 0)
    if mantissa << places < total << MANTISSA_BITS - 1:
        places += 1
    return (mantissa << places) // total, places


@dataclass(frozen=True, slots=True)
class RowSoftmax:
    """The numbers that the unit of rows needs for a softmax.

    Attributes
    ----------
    table : tuple of int
        256 exponentials, by how many levels an element is below the largest.
    mantissa, shift : int
        How many levels stand for 1, as :func:`isa.numerics.pack_scale` gives it.
    zero_point, low, high : int
        int8, of the result.
    """

    table: tuple[int, ...]
    mantissa: int
    shift: int
    zero_point: int = -128
    low: int = -128
    high: int = 127

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, x_scale: float, y_scale: float, zero_point: int = -128) -> "RowSoftmax":
        """Return the softmax of levels of ``x_scale``, its result in levels of ``y_scale``; both are float32 values.

        Raises
        ------
        ValueError
            If fewer than one level stands for 1, or 2**24 and more.
        """
        one = math.floor(_round_to_float32(1 / y_scale))
        mantissa, shift = pack_scale(float(one))
        top = (1 << ENTRY_BITS) - 1
        return cls(tuple(round(math.exp(-below * x_scale) * top) for below in range(TABLE_WORDS)), mantissa, shift,
                   zero_point)


def _round_to_float32(value: float) -> float:
    """Return the float32 nearest to a positive number."""
    fraction, exponent = math.frexp(value)
    # 53 bits are an integer, which is rounded as such.
    return math.ldexp(round_float32(int(math.ldexp(fraction, 53))), exponent - 53)


def softmax_row(levels: Sequence[int], softmax: RowSoftmax, *, low: int = -128, high: int = 127) -> list[int]:
    """Return the softmax of one row of int8 levels.

    Parameters
    ----------
    levels : sequence of int
        At least one.
    softmax : RowSoftmax
    low, high : int
        As :func:`isa.numerics.requantise` takes them.
    """
    top = max(levels)
    entries = [softmax.table[top - x] for x in levels]
    factor, places = row_factor(softmax.mantissa, sum(entries))
    return [requantise(entry, bias=0, mantissa=factor, shift=softmax.shift + places,
                       zero_point=softmax.zero_point, low=low, high=high) for entry in entries]
