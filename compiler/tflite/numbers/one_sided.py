"""Weights, biases and multipliers by which sums of one sign are rounded once, as gemmlowp rounds them twice.

gemmlowp's first rounding adds 2**30 / multiplier to a sum, of its own sign: more than 1 where the multiplier has 30
bits, which the datapath's second mode does not have. For sums of one sign that is a bias; a weight of w in place of
1 makes w parts of it.
"""

import math
from functools import lru_cache

import numpy as np

from tilewright.isa.integers.long_requantise import LONG_BITS, NUDGE_BITS, long_levels

__all__ = ["one_sided"]

_MOST_WEIGHT, _FAR = 127, 256
_EXACT = 1 << 24


@lru_cache(maxsize=256)
def one_sided(end: int, multiplier: int, shift: int) -> tuple[int, int, float] | None:
    """Return a weight, a bias and a real multiplier of 31 bits for sums from 0 to ``end``; None if none are found.

    ``weight * sum + bias`` times that multiplier, rounded once, is the sum's level: ``sum * multiplier / 2**shift`` by
    both roundings. All sums are tried, up to levels that saturate from any zero point.
    """
    sign, most = (1 if end > 0 else -1), abs(end)
    sums = np.arange(most + 1)
    exact = sums * multiplier + (1 << NUDGE_BITS if shift > LONG_BITS else 0) - (sign < 0)
    wanted = np.minimum((exact >> shift) + (exact >> shift - 1 & 1), _FAR)
    least = np.searchsorted(wanted, np.arange(1, int(wanted[-1]) + 1))
    # Of each step the first sum that is in it, and the last before.
    edges = np.unique(np.concatenate([least, least - 1, sums[[0, -1]]]))
    nudge = (1 << NUDGE_BITS) / multiplier if shift > LONG_BITS else 0.0
    for weight in range(1, min(_MOST_WEIGHT, (_EXACT - 1) // (2 * max(most, 1))) + 1):
        fraction, exponent = math.frexp(math.ldexp(multiplier, -shift) / weight)
        factor, down = round(math.ldexp(fraction, LONG_BITS)), LONG_BITS - exponent
        if not 1 < down < 1 << 6 or factor >> LONG_BITS:
            continue
        middle = round(weight * nudge)
        for bias in (middle, middle + 1, middle - 1):
            made = long_levels((sign * (weight * edges + bias)).astype(np.int32), np.array(factor), np.array(down),
                               twice=False) * sign
            if np.array_equal(np.minimum(made, _FAR), wanted[edges]):
                return weight, sign * bias, math.ldexp(factor, -down)
    return None
