"""Scales with which ONNX Runtime's requantisation in float32 equals one by a shift, for every sum that can occur.

Both are staircases that never fall: ONNX Runtime's because a sum, its float32, the float32 product and its rounding
each keep the order. So they are equal between two sums if they are there, and on either side of each step.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from tilewright.compiler.pulp.shifted_levels import ShiftRequantisation

__all__ = ["ExactScale", "exact_scale"]

_BIASES = 3
"""So many biases to each side of the nearest are tried."""

_LARGEST = 2**31 - 1
_SLACK = 2.0**-23
"""By so much, relatively, bounds of a scale may contradict each other, for they are rounded."""

ExactScale = tuple[int, np.float32]
"""The addend of a sum, and the factor of the result."""


def exact_scale(requantisation: ShiftRequantisation, channel: int, sums: tuple[int, int],
                zero: int = 0) -> ExactScale | None:
    """Return bias and scale that give the levels of a channel's sums, None if none were found.

    Below a zero point of the lowest level there is nothing to be rounded, and halves may all go up.

    Parameters
    ----------
    requantisation : ShiftRequantisation
    channel : int
    sums : tuple of int
        The least and the greatest sum that can occur.
    zero : int
        The zero point, added after rounding.
    """
    least, greatest = sums
    levels = np.arange(requantisation.low + 1, requantisation.high + 1)
    steps = requantisation.thresholds(channel)
    crossed = (steps > least) & (steps <= greatest)
    probes = np.unique(np.concatenate((steps[crossed], steps[crossed] - 1, [least, greatest])))
    wanted = requantisation.levels(probes, channel)
    for bias, scale in _candidates(requantisation, channel, levels[crossed] - zero, steps[crossed], zero):
        if max(abs(least + bias), abs(greatest + bias)) <= _LARGEST and np.array_equal(
                _levels(requantisation, probes + bias, scale, zero), wanted):
            return bias, scale
    return None


def _levels(requantisation: ShiftRequantisation, sums: np.ndarray, scale: np.float32,
            zero: int) -> np.ndarray:
    """Return the levels of ONNX Runtime (`isa.numerics.requantise`)."""
    scaled = np.rint(sums.astype(np.float32) * scale)
    return np.clip(scaled, requantisation.low - zero, requantisation.high - zero).astype(np.int64) + zero


def _candidates(requantisation: ShiftRequantisation, channel: int, levels: np.ndarray,
                steps: np.ndarray, zero: int) -> Iterator[ExactScale]:
    """Yield biases and scales that may do, the likeliest first; ``levels`` are less the zero point.

    Such a level k begins where (sum + bias) * scale passes k - 1/2. So scale lies between (k - 1/2) / (step + bias) and
    (k - 1/2) / (step - 1 + bias), for every step.
    """
    multiplier, addend = requantisation.multipliers[channel], requantisation.addends[channel]
    one = 1 << requantisation.shift
    near = multiplier / one
    # (sum * m + a) / 2**s from k on, and (sum + bias) * m / 2**s from k - zero - 1/2 on.
    middle = round(Fraction(2 * addend - (2 * zero + 1) * one, 2 * multiplier))
    halves = levels - 0.5
    for bias in sorted(range(middle - _BIASES, middle + _BIASES + 1), key=lambda each: abs(each - middle)):
        inner, outer = np.sort(np.abs([steps + bias, steps - 1 + bias]), axis=0)
        # A step on the other side of 0 than its level, or at 0, binds nothing here: the proof finds it out.
        bound = inner > 0
        low = np.max(np.abs(halves[bound]) / outer[bound], initial=0)
        high = np.min(np.abs(halves[bound]) / inner[bound], initial=1 << 24)
        if low > high * (1 + _SLACK):
            continue
        scale = np.float32(near if low <= near <= high else (low + high) / 2)
        for tried in (scale, np.nextafter(scale, np.float32(math.inf)), np.nextafter(scale, np.float32(0))):
            yield bias, tried
