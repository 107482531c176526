"""A tensor of an integer network of PULP: levels of 8 bits, or sums that are still to become such."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewright.compiler.pulp.fitted_shift import fitted_shift
from tilewright.compiler.pulp.shifted_levels import ShiftRequantisation

__all__ = ["ByteLevels", "ConstantProduct", "LevelTerms", "PendingSums", "RealTensor", "stored_levels"]


@dataclass(frozen=True, slots=True)
class ByteLevels:
    """A tensor of whole numbers of 8 bits, by its name in the model that is made.

    ``dtype`` is how it is stored, ``int8`` or ``uint8``, and ``zero`` what stands for 0 there: signed levels are stored
    as uint8 where the network's input is, because ONNX Runtime's products have outputs of their input's type.
    """

    name: str
    dtype: str
    zero: int = 0

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest level that it can hold."""
        limits = np.iinfo(self.dtype)
        return int(limits.min) - self.zero, int(limits.max) - self.zero

    def named(self, name: str) -> "ByteLevels":
        """Return the like under another name."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True)
class ConstantProduct:
    """A convolution, or a matrix product, of levels and constant int8 weights, output channels first.

    ``mean``: it is the sum of a window, of which an average is made.
    """

    x: ByteLevels
    weights: np.ndarray
    dense: bool
    attributes: dict[str, Any] = field(default_factory=dict)
    mean: bool = False

    @property
    def dtype(self) -> str:
        """The type of what is summed, and of what is made of the sums."""
        return self.x.dtype

    @property
    def channels(self) -> int:
        """Number of output channels."""
        return int(self.weights.shape[0])

    @property
    def by_channel(self) -> tuple[int, ...]:
        """The shape of a constant of one number for each channel, which broadcasts to the sums."""
        return (-1,) if self.dense else (-1, *(1,) * (self.weights.ndim - 2))

    @property
    def reach(self) -> tuple[tuple[int, int], ...]:
        """The least and the greatest sum of each channel; padding is 0, which levels may be too."""
        low, high = self.x.bounds
        flat = self.weights.reshape(self.channels, -1).astype(np.int64)
        above, below = np.maximum(flat, 0).sum(axis=1), np.minimum(flat, 0).sum(axis=1)
        return tuple(zip((above * low + below * high).tolist(), (above * high + below * low).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class LevelTerms:
    """A sum of tensors of levels, or one, each with a whole factor above 0; ``shape`` is () where it is unknown."""

    terms: tuple[tuple[ByteLevels, int], ...]
    shape: tuple[int, ...] = ()

    @property
    def dtype(self) -> str:
        """The type of what is summed, and of what is made of the sums."""
        return self.terms[0][0].dtype

    @property
    def channels(self) -> int:
        """All channels are alike."""
        return 1

    @property
    def reach(self) -> tuple[tuple[int, int], ...]:
        """The least and the greatest sum."""
        bounds = [(levels.bounds, factor) for levels, factor in self.terms]
        return ((sum(low * factor for (low, _), factor in bounds), sum(high * factor for (_, high), factor in bounds)),)


@dataclass(frozen=True, slots=True)
class PendingSums:
    """(source * multipliers + addends) / (divisor * 2**shift), channel by channel.

    ``cut`` to whole numbers "down" or "to zero"; the divisor is odd, mostly 1.
    """

    source: ConstantProduct | LevelTerms
    multipliers: tuple[int, ...]
    addends: tuple[int, ...]
    shift: int = 0
    cut: str = ""
    divisor: int = 1

    def times(self, factors: np.ndarray) -> "PendingSums":
        """Return the product with one factor, or one for each channel."""
        return replace(self, multipliers=_channelwise(self.multipliers, factors, lambda a, b: a * b),
                       addends=_channelwise(self.addends, factors, lambda a, b: a * b))._reduced()

    def plus(self, addends: np.ndarray) -> "PendingSums":
        """Return the sum with one addend, or one for each channel."""
        step = self.divisor << self.shift
        return replace(self, addends=_channelwise(self.addends, addends, lambda a, b: a + b * step))

    def divided(self, divisor: int, cut: str) -> "PendingSums":
        """Return these over a whole number; where that divides all terms of levels, it is a sum of levels again."""
        shift = (divisor & -divisor).bit_length() - 1
        source, odd = self.source, divisor >> shift
        if isinstance(source, LevelTerms) and not self.shift and odd == self.divisor == 1:
            factors = [factor * self.multipliers[0] for _, factor in source.terms]
            if not any(each & (1 << shift) - 1 for each in (*factors, *self.addends)):
                terms = tuple((levels, factor >> shift) for (levels, _), factor in
                              zip(source.terms, factors, strict=True))
                return PendingSums(replace(source, terms=terms), (1,), (self.addends[0] >> shift,))
        return replace(self, shift=self.shift + shift, cut=cut, divisor=self.divisor * odd)._reduced()

    def _reduced(self) -> "PendingSums":
        """Return the same without what its odd divisor and all of its numbers have in common."""
        common = math.gcd(self.divisor, *self.multipliers, *self.addends)
        if common == 1:
            return self
        return replace(self, divisor=self.divisor // common,
                       multipliers=tuple(each // common for each in self.multipliers),
                       addends=tuple(each // common for each in self.addends))

    @property
    def reach(self) -> tuple[int, int]:
        """The least and the greatest whole number that these may be, rounded down."""
        step, ends = self.divisor << self.shift, [*zip(self.multipliers, self.addends, self.source.reach, strict=True)]
        return (min((low * multiplier + addend) // step for multiplier, addend, (low, _) in ends),
                max((high * multiplier + addend) // step for multiplier, addend, (_, high) in ends))

    def bounded(self, low: int, high: int) -> ShiftRequantisation:
        """Return what makes levels of the sums of ``source``; by a real divisor, what equals it for all of them.

        Raises
        ------
        ValueError
            If there is none; the message is a phrase that says why.
        """
        given = ShiftRequantisation(self.multipliers, self.addends, self.shift, low, high)
        return given if self.divisor == 1 else fitted_shift(given, self.divisor, self.source.reach)


@dataclass(frozen=True, slots=True)
class RealTensor:
    """Floats that are computed of sums which the network hands out, by their name in the model that is made."""

    name: str


def _channelwise(known: tuple[int, ...], given: np.ndarray, of: Callable[[int, int], int]) -> tuple[int, ...]:
    values = [int(each) for each in given.reshape(-1)]
    values = values * len(known) if len(values) == 1 else values
    return tuple(of(a, b) for a, b in zip(known, values, strict=True))


def stored_levels(low: int, high: int, dtype: str) -> ByteLevels | None:
    """Return how levels with such bounds are stored, None if 8 bits do not hold them."""
    if not (-128 <= low <= high <= 127 or 0 <= low <= high <= 255):
        return None
    return ByteLevels("", dtype, (128 if dtype == "uint8" else 0) - (0 if low < 0 else 128))
