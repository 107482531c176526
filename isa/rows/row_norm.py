"""Rows of levels by their own mean and deviation, in integers: LayerNormalization, and RMSNormalization about a point.

Of a row x of n int8::

    spread   n Σ x² - (Σ x)² + extra                        n² · (variance + epsilon), epsilon in squares of levels
    root     floor(√(spread · 4**digits))                   at least 2**11; digits: 10 with ``fine``, else 8
    level    requantise((n x - Σ x) gain + (shift · root >> 10) >> 5), its scale factor · 2**-(scale_shift + places)

factor and places are :func:`isa.rows.row_softmax.row_factor` of mantissa and 2**12 · root. About a point z, n z takes
the place of Σ x in the level, and the spread is n Σ x² - 2 n z Σ x + extra, whose extra has (n z)², too.

A row of more than 512 elements, an even number, is a long one. Half of n takes the place of n in n x, which so has its
17 bits, and in n z; the spread is as before, with 4 times the extra, and its root has 7 digits or 6. The level is that
of (n/2 x - floor(Σ x / 2)) gain, less floor(gain / 64) behind the last shift if the sum is odd: half the difference.

ONNX Runtime computes these in float32. With gains and shifts of 18 bits some hundreds of a million elements lie a level
beside its own, and none further.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.errors import Error
from tilewright.isa.numerics import MANTISSA_BITS, pack_scale, requantise
from tilewright.isa.rows.row_softmax import TABLE_WORDS, row_factor

__all__ = [
    "COARSE",
    "FINE",
    "GAIN_BITS",
    "LEAST_NORM_ROW",
    "LEAST_ROOT",
    "LONG_SPREAD_BITS",
    "LONG_TERMS",
    "MAX_NORM_LENGTH",
    "PRODUCT_BITS",
    "ROOT_BITS",
    "ROOT_PLACES",
    "SHIFT_PLACES",
    "SPREAD_BITS",
    "SQUARE_BITS",
    "SUM_PLACES",
    "NormRefused",
    "RowNorm",
    "norm_row",
    "root_digits",
    "row_root",
]

MAX_NORM_LENGTH = 1024
"""Elements of a row, so that half of n x has 17 bits."""

LONG_TERMS = 512
"""Elements up to which n x has 17 bits, and its difference from a mean 18, as a multiplier of an FPGA takes."""

LEAST_NORM_ROW = 32
"""Elements from which on a row of unlike ones has a root above the least, and rounding epsilon does not count."""

SQUARE_BITS, PRODUCT_BITS = 15, 17
"""Of x² and, signed, of n x: the lower and the upper part of a table's word."""

GAIN_BITS = 18
"""Of a gain and of a shift, signed."""

FINE, COARSE, LONG_LESS = 10, 8, (3, 2)
"""Binary digits of a root behind the point, and how many less the root of a long row has: fine and coarse."""

ROOT_BITS, SPREAD_BITS, LONG_SPREAD_BITS = 24, 32, 36
"""Of a root, and of a spread with the coarse ones: of a short row, also of its extra, and of a long one."""

LEAST_ROOT = 1 << 11
"""With it the first digit of a factor is one digit. A smaller root is that of a row of equal elements."""

ROOT_PLACES, SHIFT_PLACES, SUM_PLACES = 12, 10, 5
"""By which a root is shifted before the division, what is made of a shift and a root, and the sum of both products."""


class NormRefused(Error, ValueError):
    """Numbers of a normalisation are not such as the unit of rows has."""


@dataclass(frozen=True, slots=True)
class RowNorm:
    """The numbers that the unit of rows needs for a normalisation.

    Attributes
    ----------
    length : int
        Elements of a row.
    mantissa, shift : int
        Operands of ``act.set_rows``.
    extra : int
        Is added to a spread, of a long row 4 times; below 2**32.
    offset : int
        What is taken from n x, or half of it, if not the sum.
    centred : bool
        The mean is taken from the elements, not the offset.
    fine : bool
        A root has as many digits behind the point as `root_digits` says.
    gains, shifts : tuple of int
        Signed 18 bits, one for each element of a row.
    zero_point, low, high : int
        int8, of the result.
    """

    length: int
    mantissa: int
    shift: int
    extra: int
    offset: int
    centred: bool
    fine: bool
    gains: tuple[int, ...]
    shifts: tuple[int, ...]
    zero_point: int = -128
    low: int = -128
    high: int = 127

    @classmethod
    def of(cls, gains: Sequence[float], shifts: Sequence[float], epsilon: float, *, zero_point: int, low: int = -128,
           about: int | None = None) -> "RowNorm":
        """Return the normalisation of rows of as many elements as there are gains.

        Parameters
        ----------
        gains, shifts : sequence of float
            Scale and bias of the operator, in levels of the result.
        epsilon : float
            In squares of levels of what is normalised.
        zero_point, low : int
            int8, of the result, and its least level.
        about : int, optional
            The level that takes the place of the mean.

        Raises
        ------
        NormRefused
            If there are too many or too few, or the numbers are too large.
        """
        n, gain, shift = len(gains), np.asarray(gains, np.float64), np.asarray(shifts, np.float64)
        if not LEAST_NORM_ROW <= n <= MAX_NORM_LENGTH:
            raise NormRefused(f"rows of {LEAST_NORM_ROW} to {MAX_NORM_LENGTH} elements")
        if n > LONG_TERMS and n % 2:
            raise NormRefused(f"an even number of elements above {LONG_TERMS}")
        if not (np.isfinite(gain).all() and np.isfinite(shift).all() and math.isfinite(epsilon) and epsilon >= 0):
            raise NormRefused("finite gains, shifts and epsilon")
        long = n > LONG_TERMS
        offset = 0 if about is None else n * about
        # The largest spread: half of the elements at either end of int8, or all of them at the end that is further off.
        most = n**2 * (127.5**2 if about is None else max(128 + about, 127 - about)**2)
        added = round(n**2 * epsilon)
        fine, room = (most + added < 1 << 2 * (ROOT_BITS - root_digits(n, fine=each)) for each in (True, False))
        extra, offset = ((added + offset**2) >> 2, offset // 2) if long else (added + offset**2, offset)
        if not (fine or room) or extra >= 1 << SPREAD_BITS:
            raise NormRefused("a variance and an epsilon of some 16 bits")
        digits = root_digits(n, fine=fine) + long
        lifted, top = shift * 2.0**(SHIFT_PLACES - digits), (1 << GAIN_BITS - 1) - 1
        step = max(float(np.abs(gain).max()), float(np.abs(lifted).max())) / top
        try:
            mantissa, places = pack_scale(float(np.float32(step * 2.0**(SUM_PLACES + digits + ROOT_PLACES))))
        except ValueError as error:
            raise NormRefused("gains and shifts of some levels") from error
        step = math.ldexp(mantissa, -places - SUM_PLACES - digits - ROOT_PLACES)
        whole = [np.clip(np.rint(each / step), -top, top).astype(int) for each in (gain, lifted)]
        return cls(n, mantissa, places, extra, offset, about is None, fine, tuple(whole[0].tolist()),
                   tuple(whole[1].tolist()), zero_point, low)

    @property
    def long(self) -> bool:
        """Whether a row is a long one."""
        return self.length > LONG_TERMS

    @property
    def table(self) -> tuple[int, ...]:
        """256 words: x² below n x, or half of it, by how many levels an element is below 0."""
        n = self.length // 2 if self.long else self.length
        return tuple(x * x | (n * x & (1 << PRODUCT_BITS) - 1) << SQUARE_BITS
                     for x in ((128 - below) % TABLE_WORDS - 128 for below in range(TABLE_WORDS)))

    @property
    def parameters(self) -> tuple[int, ...]:
        """64 bits for each element: the gain in the lower half, the shift in the upper."""
        mask = (1 << GAIN_BITS) - 1
        return tuple(gain & mask | (shift & mask) << 32 for gain, shift in zip(self.gains, self.shifts, strict=True))


def root_digits(length: int, *, fine: bool) -> int:
    """Return the binary digits behind the point of the root of a row of ``length`` elements."""
    less = LONG_LESS if length > LONG_TERMS else (0, 0)
    return FINE - less[0] if fine else COARSE - less[1]


def row_root(spread: int, digits: int) -> int:
    """Return the root of a spread with so many digits behind the point, no less than `LEAST_ROOT`."""
    return max(math.isqrt(spread << 2 * digits), LEAST_ROOT)


def norm_row(levels: Sequence[int], norm: RowNorm) -> list[int]:
    """Return the normalisation of one row of int8 levels, ``norm.length`` of them."""
    n, total, half = norm.length, sum(levels), int(norm.long)
    product = total * (total if norm.centred else 2 * norm.offset << half)
    spread = n * sum(x * x for x in levels) - product + (norm.extra << 2 * half)
    root = row_root(spread, root_digits(n, fine=norm.fine))
    factor, places = row_factor(norm.mantissa, root << ROOT_PLACES)
    centre = total >> half if norm.centred else norm.offset
    odd = total & half if norm.centred else 0
    assert factor.bit_length() == MANTISSA_BITS
    sums = [(((n >> half) * x - centre) * gain + (shift * root >> SHIFT_PLACES) >> SUM_PLACES) - (
                odd * gain >> SUM_PLACES + 1)
            for x, gain, shift in zip(levels, norm.gains, norm.shifts, strict=True)]
    return [requantise(each, bias=0, mantissa=factor, shift=norm.shift + places, zero_point=norm.zero_point,
                       low=norm.low, high=norm.high) for each in sums]
