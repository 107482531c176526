"""Whole numbers that give the levels of float32 scales for every sum that can occur, found and proved by channel.

Sums of a channel are ``first + step * j``. A float32 scale's levels never fall as sums rise, and neither do those of
whole numbers. So both are equal for all sums if they are equal at the ends and at the two sums where each level begins,
the first that has it and the last that has not. There are at most 512 such sums; what holds at them is proved.

- A long multiplier M, rounded once: T M + 2**(s-1) must reach v 2**s for a sum T of level v, and not (v + 1) 2**s. Each
  sum bounds M on one side or both, so the bounds of all are what M may be.
- A multiplier m, an addend a and a shift that all channels share: for an m next to the scale the sums bound a. Shifts
  are tried from 0 on.
"""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.network.integer_scale import IntegerScale, LongScale
from tilewright.compiler.network.layers import Requantisation
from tilewright.compiler.network.reference import requantise
from tilewright.isa.integers.long_requantise import LONG_BITS
from tilewright.isa.integers.shift_requantise import MULTIPLIER_BITS

__all__ = ["Sums", "equal_integers"]

_MOST_SHIFT = 60
"""Of a search in int64; behind it a scale gives level 0 to every int32."""
_FAR = 1 << 62
"""Beyond all addends and multipliers that count."""


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums that can occur, int64 of (channels,): ``first + step * j`` for j from 0 to ``last``."""

    first: np.ndarray
    step: np.ndarray
    last: np.ndarray

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the sums at ``places`` (channels, n)."""
        return self.first[:, None] + self.step[:, None] * places


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Sums (channels, n) that decide, their levels without the zero point, and the bounds of these."""

    sums: np.ndarray
    levels: np.ndarray
    low: int
    high: int

    def met_by(self, found: np.ndarray) -> np.ndarray:
        """Return of each channel whether unbounded levels ``found`` are those wanted."""
        return np.asarray((np.clip(found, self.low, self.high) == self.levels).all(axis=1))


def equal_integers(given: Requantisation, sums: Sums, *,
                   moves: bool = True) -> tuple[IntegerScale | LongScale, np.ndarray] | None:
    """Return numbers that give the levels of ``given`` for all ``sums``, and what to add to biases, int64.

    None if there are none. Without ``moves`` biases must stay.
    """
    wanted = _deciding(given, sums)
    long = _long_scale(given.scale, wanted)
    if long is not None:
        return long, np.zeros(len(given.scale), np.int64)
    return _integer_scale(given.scale, wanted) if moves else None


def _levels(given: Requantisation, sums: np.ndarray) -> np.ndarray:
    """Return the levels of int64 sums (channels, n), without the zero point."""
    plain = replace(given, integers=None)
    return requantise(plain, sums.astype(np.int32)[:, :, None])[:, :, 0].astype(np.int64) - given.zero_point


def _deciding(given: Requantisation, sums: Sums) -> _Wanted:
    """Return the sums at which levels begin, by bisection, and what their levels are."""
    low, high = given.low - given.zero_point, given.high - given.zero_point
    levels = np.arange(low + 1, high + 1)
    shape = len(given.scale), levels.size
    before, at = np.full(shape, -1, np.int64), np.broadcast_to(sums.last[:, None] + 1, shape).copy()
    while (at - before > 1).any():
        middle = before + at >> 1
        inside = np.clip(middle, 0, sums.last[:, None])
        reached = _levels(given, sums.at(inside)) >= levels
        open_ = at - before > 1
        at, before = np.where(open_ & reached, middle, at), np.where(open_ & ~reached, middle, before)
    ends = np.zeros((shape[0], 1), np.int64), sums.last[:, None]
    chosen = sums.at(np.clip(np.hstack((*ends, before, at)), 0, sums.last[:, None]))
    return _Wanted(chosen, _levels(given, chosen), low, high)


def _long_scale(scale: np.ndarray, wanted: _Wanted) -> LongScale | None:
    fractions, exponents = np.frexp(scale.astype(np.float64))
    exponents = exponents.astype(np.int64)
    multipliers, shifts = np.full(scale.size, 1 << LONG_BITS - 1, np.int64), np.full(scale.size, _MOST_SHIFT + 2)
    found = exponents < LONG_BITS - _MOST_SHIFT - 2   # such a scale gives level 0, as what stands there does
    for more in (0, 1, -1):
        shift = LONG_BITS - exponents + more
        low, high = _multiplier_bounds(wanted, np.clip(shift, 1, _MOST_SHIFT))
        nearest = np.clip(np.rint(np.ldexp(fractions, LONG_BITS + more)).astype(np.int64), low, high)
        fits = (low <= high) & (shift >= 1) & (shift <= _MOST_SHIFT) & ~found
        multipliers, shifts = np.where(fits, nearest, multipliers), np.where(fits, shift, shifts)
        found |= fits
    long = LongScale(tuple(multipliers.tolist()), tuple(shifts.tolist()), twice=False)
    met = found & wanted.met_by(long.levels(wanted.sums.astype(np.int32)[:, :, None])[:, :, 0])
    return long if met.all() else None


def _multiplier_bounds(wanted: _Wanted, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest long multiplier of each channel: T M lies between the halves about a level."""
    sums, half = wanted.sums, 1 << shift[:, None] - 1
    near = np.abs(wanted.levels) <= (_FAR >> shift[:, None])    # else its halves are beyond all products
    divisor = np.where(sums == 0, 1, sums)
    least, most = (2 * wanted.levels - 1) * half, (2 * wanted.levels + 1) * half - 1
    reaches, misses = near & (wanted.levels > wanted.low), near & (wanted.levels < wanted.high)
    up, down = sums > 0, sums < 0
    first, second = -(-least // divisor), -(-most // divisor)
    lows = np.where(up & reaches, first, np.where(down & misses, second, 0))
    highs = np.where(up & misses, most // divisor, np.where(down & reaches, least // divisor, _FAR))
    return (np.maximum(lows.max(axis=1), 1 << LONG_BITS - 1),
            np.minimum(highs.min(axis=1), (1 << LONG_BITS) - 1))


def _integer_scale(scale: np.ndarray, wanted: _Wanted) -> tuple[IntegerScale, np.ndarray] | None:
    real = scale.astype(np.float64)
    for shift in range(48):
        nearest = np.rint(np.ldexp(real, shift)).astype(np.int64)
        if nearest.max() >= (1 << MULTIPLIER_BITS) - 1:
            break
        multipliers, addends, found = nearest, np.zeros_like(nearest), np.zeros(scale.size, bool)
        for more in (0, 1, -1):
            tried = nearest + more
            low, high = _addend_bounds(wanted, tried, shift)
            fits = (tried >= 1) & (low <= high) & ~found
            multipliers = np.where(fits, tried, multipliers)
            addends = np.where(fits, np.clip(1 << shift >> 1, low, high), addends)
            found |= fits
        if found.all():
            integers, biases = IntegerScale.of(multipliers.tolist(), addends.tolist(), shift)
            if wanted.met_by(integers.levels((wanted.sums + biases[:, None])[:, :, None])[:, :, 0]).all():
                return integers, biases
    return None


def _addend_bounds(wanted: _Wanted, multipliers: np.ndarray, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest addend of each channel with these multipliers."""
    products = wanted.sums * multipliers[:, None]
    lows = np.where(wanted.levels > wanted.low, (wanted.levels << shift) - products, -_FAR)
    highs = np.where(wanted.levels < wanted.high, (wanted.levels + 1 << shift) - 1 - products, _FAR)
    return lows.max(axis=1), highs.min(axis=1)
