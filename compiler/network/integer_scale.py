"""Numbers that bring sums to int8: by channel a multiplier and an addend, or a long multiplier and a shift."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.isa.integers import long_requantise as long
from tilewright.isa.integers.shift_requantise import MULTIPLIER_BITS, SHIFT_BITS, channel_word, split_addend

__all__ = ["IntegerScale", "LongScale"]


@dataclass(frozen=True, slots=True)
class IntegerScale:
    """floor((sum * multiplier + addend) / 2**shift), by `isa.integers.shift_requantise`.

    Attributes
    ----------
    multipliers, addends : tuple of int
        Of each output channel; an addend is less than its multiplier, and the rest of it is in the layer's bias.
    shift : int
    """

    multipliers: tuple[int, ...]
    addends: tuple[int, ...]
    shift: int

    @classmethod
    def of(cls, multipliers: Sequence[int], addends: Sequence[int], shift: int) -> tuple["IntegerScale", np.ndarray]:
        """Return the scale of these numbers, with addends of any size, and the biases, int64 of (channels,).

        Twos that all of them have in common are taken out.

        Raises
        ------
        ValueError
            If they are more than the datapath holds; the message is a phrase that says which.
        """
        while shift and not any(each & 1 for each in (*multipliers, *addends)):
            multipliers, addends = [each >> 1 for each in multipliers], [each >> 1 for each in addends]
            shift -= 1
        if shift >= 1 << SHIFT_BITS:
            raise ValueError(f"its shift is {shift}, and the datapath's at most {(1 << SHIFT_BITS) - 1}")
        for channel, multiplier in enumerate(multipliers):
            if not 1 <= multiplier < 1 << MULTIPLIER_BITS:
                raise ValueError(f"its multiplier in channel {channel} is {multiplier}, and the datapath's are in "
                                 f"1..{(1 << MULTIPLIER_BITS) - 1}")
        biases, rests = zip(*map(split_addend, addends, multipliers), strict=True)
        return cls(tuple(multipliers), rests, shift), np.array(biases, np.int64)

    @property
    def factors(self) -> np.ndarray:
        """The multipliers over 2**shift, float32 of (channels,), and maybe rounded."""
        return np.array([multiplier * 2.0**-self.shift for multiplier in self.multipliers], np.float32)

    @property
    def settings(self) -> Mapping[str, int]:
        """Operands of ``act.set_clamp`` that say so."""
        return {"integer": 1, "integer_shift": self.shift}

    @property
    def in_c(self) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
        """Mantissas, addends, the common shift and the kind of requantisation, as compiler/c/kernels.h has them."""
        return self.multipliers, self.addends, self.shift, 1

    @property
    def alike(self) -> bool:
        """Whether it is the same for all channels."""
        return len(set(zip(self.multipliers, self.addends, strict=True))) == 1

    def of_channels(self, chosen: Any) -> "IntegerScale":
        """Return the scale of some channels, by what indexes an array."""
        multipliers, addends = (tuple(np.array(each, np.int64)[chosen].tolist())
                                for each in (self.multipliers, self.addends))
        return IntegerScale(multipliers, addends, self.shift)

    def levels(self, sums: np.ndarray) -> np.ndarray:
        """Return int64 levels, not yet bounded, of int32 sums (channels, height, width)."""
        multipliers, addends = (np.array(each, np.int64).reshape(-1, 1, 1) for each in (self.multipliers, self.addends))
        return sums.astype(np.int64) * multipliers + addends >> self.shift

    def words(self, bias: np.ndarray) -> np.ndarray:
        """Return the channels' words of parameters with these biases, uint64 of (channels,).

        Raises
        ------
        ValueError
            If a bias has too many bits; the message says how many there may be.
        """
        return np.array([channel_word(*each) for each in zip(bias.tolist(), self.multipliers, self.addends,
                                                             strict=True)], np.uint64)


@dataclass(frozen=True, slots=True)
class LongScale:
    """``sum * multiplier / 2**shift``, rounded as `isa.integers.long_requantise` does, ``twice`` or once.

    Attributes
    ----------
    multipliers, shifts : tuple of int
        Of each output channel: 2**30 .. 2**31 - 1, and 1 .. 63.
    twice : bool
    """

    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    twice: bool

    @property
    def factors(self) -> np.ndarray:
        """The multipliers over powers of two, float32 of (channels,), and maybe rounded."""
        return np.ldexp(np.array(self.multipliers, np.float64), -np.array(self.shifts)).astype(np.float32)

    @property
    def alike(self) -> bool:
        """Whether it is the same for all channels."""
        return len(set(zip(self.multipliers, self.shifts, strict=True))) == 1

    @property
    def settings(self) -> Mapping[str, int]:
        """Operands of ``act.set_clamp`` that say so."""
        return {"integer": 1, "integer_long": 1, "integer_twice": int(self.twice)}

    @property
    def in_c(self) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
        """Mantissas, shifts, the common shift and the kind of requantisation, as compiler/c/kernels.h has them."""
        return self.multipliers, self.shifts, 0, 3 if self.twice else 2

    def of_channels(self, chosen: Any) -> "LongScale":
        """Return the scale of some channels, by what indexes an array."""
        multipliers, shifts = (tuple(np.array(each, np.int64)[chosen].tolist())
                               for each in (self.multipliers, self.shifts))
        return LongScale(multipliers, shifts, self.twice)

    def is_odd(self, reach: int) -> bool:
        """Tell whether each sum up to ``reach`` gets the opposite of the level of the opposite sum, in every channel.

        The two differ where sum * multiplier + nudge + 2**(shift - 1), of `isa.integers.long_requantise`, is a multiple
        of 2**shift: for a multiplier of 2**t times an odd number, that is so of one sum in 2**(shift - t), or of none.
        """
        for multiplier, shift in set(zip(self.multipliers, self.shifts, strict=True)):
            twos = (multiplier & -multiplier).bit_length() - 1
            added = (1 << shift - 1) + (1 << long.NUDGE_BITS if self.twice and shift > long.LONG_BITS else 0)
            if twos >= shift or added & (1 << twos) - 1:
                continue
            whole = 1 << shift - twos
            least = -(added >> twos) * pow(multiplier >> twos, -1, whole) % whole or whole
            if least <= reach:
                return False
        return True

    def levels(self, sums: np.ndarray) -> np.ndarray:
        """Return int64 levels, not yet bounded, of int32 sums (channels, height, width)."""
        multipliers, shifts = (np.array(each, np.int64).reshape(-1, 1, 1) for each in (self.multipliers, self.shifts))
        return long.long_levels(sums, multipliers, shifts, twice=self.twice)

    def words(self, bias: np.ndarray) -> np.ndarray:
        """Return the channels' words of parameters with these biases, uint64 of (channels,).

        Raises
        ------
        ValueError
            If a number has too many bits; the message says how many there may be.
        """
        return np.array([long.channel_word(*each) for each in zip(bias.tolist(), self.multipliers, self.shifts,
                                                             strict=True)], np.uint64)
