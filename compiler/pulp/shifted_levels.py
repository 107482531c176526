"""Requantisation by a shift, as PULP's tools define it: floor((sum * multiplier + addend) / 2**shift), bounded.

Halves up is a floor whose addend holds half a level. Sources: Deeploy's ``RequantShift`` (kernels of
github.com/pulp-platform/Deeploy, Targets/Generic), "NEMO", arXiv:2004.05930, section 3, and github.com/eml-eda/match.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["ShiftRequantisation"]


@dataclass(frozen=True, slots=True)
class ShiftRequantisation:
    """From sums to levels, with a multiplier and an addend for each output channel.

    Attributes
    ----------
    multipliers, addends : tuple of int
        Of each channel; the former are positive.
    shift : int
        Not negative.
    low, high : int
        Bounds of the levels.
    stands_for : int
        The divisor of the network, if it is no power of two, and these numbers equal it for every sum; else 0.
    """

    multipliers: tuple[int, ...]
    addends: tuple[int, ...]
    shift: int
    low: int
    high: int
    stands_for: int = 0

    def levels(self, sums: np.ndarray, channel: int) -> np.ndarray:
        """Return the levels of int64 sums of a channel, int64 of the same shape."""
        scaled = sums.astype(np.int64) * self.multipliers[channel] + self.addends[channel] >> self.shift
        return np.clip(scaled, self.low, self.high)

    def thresholds(self, channel: int) -> np.ndarray:
        """Return, for each level above the lowest, the least sum that gives it or more: int64 of (high - low,)."""
        levels = np.arange(self.low + 1, self.high + 1, dtype=np.int64)
        return -(-((levels << self.shift) - self.addends[channel]) // self.multipliers[channel])

    def largest(self, bound: int) -> int:
        """Return the largest magnitude of product and sum, for sums of at most this magnitude."""
        return max(bound * multiplier + abs(addend)
                   for multiplier, addend in zip(self.multipliers, self.addends, strict=True))
