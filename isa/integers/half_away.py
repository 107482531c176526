"""Halves away from zero, by a long multiplier that is rounded once: it moves halves off their place.

With an odd m of b bits, M = m * 2**(31 - b) + 1 and t = s + 31 - b, a sum x has x M / 2**t = x m / 2**s + x / 2**t.
That is beyond a half where x m / 2**s is one, on either side of zero. Any other x m / 2**s is at least
2**(31 - b) / 2**t from a half, so no sum below 2**(31 - b) passes one. Larger sums, for s up to 22, have magnitudes
from 256 on, which saturate in any case. Where m has ten bits or more, halves have such magnitudes, too, and M needs no
1.
"""

from tilewright.isa.integers.long_requantise import LONG_BITS
from tilewright.isa.integers.shift_requantise import SHIFT_BITS

__all__ = ["half_away", "half_away_numbers"]

_SATURATING_BITS, _SATURATING_SHIFT = 10, 22


def half_away(x: int, multiplier: int, shift: int) -> int:
    """Return x * multiplier / 2**shift, halves away from zero; the multiplier is positive."""
    magnitude = (abs(x) * multiplier + (1 << shift >> 1)) >> shift
    return -magnitude if x < 0 else magnitude


def half_away_numbers(multiplier: int, shift: int, largest: int) -> tuple[int, int]:
    """Return multiplier and shift with which `long_requantise`, not ``twice``, rounds halves away from zero.

    Parameters
    ----------
    multiplier : int
        Above 0; twos that it has in common with the shift do not count.
    shift : int
        Of the quotient that is meant, sum * multiplier / 2**shift; 0 or more.
    largest : int
        The largest magnitude of a sum, of which no more than int32 counts.

    Raises
    ------
    ValueError
        If there are no such numbers; the message is a phrase that says why.
    """
    twos = max(min((multiplier & -multiplier).bit_length() - 1, shift), 0)
    multiplier, shift = multiplier >> twos, shift - twos
    bits = multiplier.bit_length()
    if not 1 <= bits <= LONG_BITS:
        raise ValueError(f"its multiplier is {multiplier}, and the datapath's have at most {LONG_BITS} bits")
    finer = LONG_BITS - bits
    if not 1 <= shift + finer < 1 << SHIFT_BITS:
        raise ValueError(f"its shift is {shift + finer} for {LONG_BITS} bits, and the datapath's is from 1 to "
                         f"{(1 << SHIFT_BITS) - 1}")
    has_halves = shift > 0 and bits < _SATURATING_BITS
    if has_halves and shift > _SATURATING_SHIFT and largest >= 1 << finer:
        raise ValueError(f"its sums reach {largest}, and halves are told apart below {1 << finer}")
    return (multiplier << finer) + has_halves, shift + finer
