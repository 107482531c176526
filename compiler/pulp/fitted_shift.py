"""A requantisation by any whole number, as NEMO's 2**k - 1, as one by a power of two that is equal for every sum.

floor((sum * m + a) / d) is a staircase that never falls, as floor((sum * n + b) / 2**s) is. So they are equal between
two sums if each level begins at the same sum. For a multiplier n that is next to m * 2**s / d, the steps bound b from
both sides; with enough bits of n there is such a b, unless a step lies on a sum by less than these tell apart.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.pulp.shifted_levels import ShiftRequantisation

__all__ = ["fitted_shift", "narrowed"]

_Bounds = tuple[np.ndarray, np.ndarray]

_MOST_SHIFT, _MOST_BITS = 46, 30
"""Of a divisor, and of multipliers and sums, so that their products fit 64 bits."""
_FAR = 1 << 40
"""Beyond all addends that count, where nothing bounds them."""


def fitted_shift(given: ShiftRequantisation, divisor: int, reach: tuple[tuple[int, int], ...]) -> ShiftRequantisation:
    """Return the like of ``given`` over ``divisor``, with the least shift that does.

    Parameters
    ----------
    given : ShiftRequantisation
    divisor : int
        Divides what ``given`` divides by its power of two.
    reach : tuple of pairs of int
        The least and the greatest sum of each channel.

    Raises
    ------
    ValueError
        If there is none; the message is a phrase that says why.
    """
    whole = divisor << given.shift
    if max(abs(each) for ends in reach for each in ends).bit_length() > _MOST_BITS:
        raise ValueError(f"its sums have more than {_MOST_BITS} bits")
    steps = [_steps(given, channel, whole, ends) for channel, ends in enumerate(reach)]
    for shift in range(_MOST_SHIFT):
        ratios = [(each << shift + 1) // whole for each in given.multipliers]
        if max(ratios).bit_length() > _MOST_BITS:
            break
        found = [_channel(each, ratio, shift) for each, ratio in zip(steps, ratios, strict=True)]
        numbers = [each for each in found if each is not None]
        if len(numbers) == len(found):
            multipliers, addends = zip(*numbers, strict=True)
            return ShiftRequantisation(multipliers, addends, shift, given.low, given.high, whole)
    raise ValueError(f"no power of two gives the levels that its divisor, {whole}, gives")


def _steps(given: ShiftRequantisation, channel: int, whole: int, ends: tuple[int, int]) -> tuple[_Bounds, _Bounds]:
    """Return levels with sums at which they must be reached, and levels with sums at which they must not, int64."""
    least, greatest = ends
    multiplier, addend = given.multipliers[channel], given.addends[channel]
    levels = np.arange(given.low + 1, given.high + 1)
    begins = np.array([-((addend - int(level) * whole) // multiplier) for level in levels], np.int64)
    reached, missed = begins <= greatest, begins > least
    return ((levels[reached], np.maximum(begins[reached], least)),
            (levels[missed], np.minimum(begins[missed] - 1, greatest)))


def narrowed(given: ShiftRequantisation, reach: tuple[tuple[int, int], ...],
             bits: int) -> tuple[ShiftRequantisation, int, int]:
    """Return the nearest of ``given`` with multipliers of so many bits, how many steps lie elsewhere, and of how many.

    Each channel's addend is one with which most of its levels begin where they do.
    """
    down = max(max(given.multipliers).bit_length() - bits, 0)
    shift, numbers, wrong, count = given.shift - down, [], 0, 0
    for channel, (multiplier, ends) in enumerate(zip(given.multipliers, reach, strict=True)):
        steps = _steps(given, channel, 1 << given.shift, ends)
        less = min(max(multiplier + (1 << down >> 1) >> down, 1), (1 << bits) - 1)
        low, high = _addends(steps, less, shift)
        tried = np.concatenate((low, high, [given.addends[channel] >> down]))
        missed = [int((low > each).sum() + (high < each).sum()) for each in tried]
        numbers.append((less, int(tried[np.argmin(missed)])))
        wrong, count = wrong + min(missed), count + low.size
    multipliers, addends = zip(*numbers, strict=True)
    return replace(given, multipliers=multipliers, addends=addends, shift=shift), wrong, count


def _addends(steps: tuple[_Bounds, _Bounds], multiplier: int, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the least addends with which levels are reached where they must, and the largest with which none early."""
    (reached, at), (missed, before) = steps
    return (reached << shift) - multiplier * at, (missed << shift) - 1 - multiplier * before


def _channel(steps: tuple[_Bounds, _Bounds], ratio: int, shift: int) -> tuple[int, int] | None:
    """Return multiplier and addend with which each level begins at its step; ``ratio`` is twice what is near."""
    for multiplier in dict.fromkeys((ratio + 1 >> 1, ratio >> 1, (ratio >> 1) + 2)):
        addends = _addends(steps, multiplier, shift)
        low, high = int(addends[0].max(initial=-_FAR)), int(addends[1].min(initial=_FAR))
        if multiplier and low <= high:
            return multiplier, (low + high) // 2
    return None
