"""Sums of an image and a constant for each channel: convolutions of one pixel, each proved for all 256 levels.

A channel's result is a function of one level, which never falls or never rises. A weight, a bias and a float32 scale
are searched whose sums, requantised as ONNX Runtime and the datapath do, give all of it. With a weight and a bias, each
level of the result bounds the scale on both sides.
"""

from collections.abc import Iterator

import numpy as np

from tilewright.compiler.tflite.numbers.litert_numbers import LEVELS

__all__ = ["ChannelLine", "channel_lines"]

_WEIGHTS = range(127, 0, -1)
"""A large weight leaves the bias many places between two levels, and another weight has other places."""

_BIASES, _SLACK = 2, 0.02
"""By so many biases, and by so many levels, the offset may lie beyond where it must with the exact ratio."""

_FARTHEST, _MOST_BIASES = 1e4, 4096
"""Levels of an offset, where nothing bounds it; and biases of a weight that are tried."""

_LARGEST = (1 << 24) - 1
"""Of sums that float32 holds."""

ChannelLine = tuple[int, int, np.float32]
"""Weight, bias and scale."""


def channel_lines(wanted: np.ndarray, zero: int, zero_out: int, ratio: float) -> list[ChannelLine] | None:
    """Return what gives each channel's levels, or None if some channel has no such numbers.

    Parameters
    ----------
    wanted : ndarray
        int64 of (channels, 256): the result's level for each level of x, not saturated, as the numbers' need not be.
    zero, zero_out : int
        Zero points of x and of the result.
    ratio : float
        Levels of the result by level of x; below 0 where the function falls.
    """
    found: dict[bytes, ChannelLine | None] = {}
    for row in wanted:
        if (key := row.tobytes()) not in found:
            found[key] = _line(row - zero_out, LEVELS - zero, (-128 - zero_out, 127 - zero_out), ratio)
    lines = [found[row.tobytes()] for row in wanted]
    made = [each for each in lines if each is not None]
    return made if len(made) == len(lines) else None


def _line(wanted: np.ndarray, levels: np.ndarray, ends: tuple[int, int], ratio: float) -> ChannelLine | None:
    """Return numbers that give a channel's levels, less the zero point and between ``ends``; None if there are none."""
    saturated = np.clip(wanted, *ends)
    bounds = (np.where(saturated == ends[0], -np.inf, saturated - 0.5),
              np.where(saturated == ends[1], np.inf, saturated + 0.5))
    for weight, biases in _tried((levels * ratio)[None], bounds, ratio):
        sums = levels * weight + biases[:, None]
        least, most = _scales(sums, bounds)
        least, most = np.maximum(least, 0), np.minimum(most, 2 * abs(ratio / weight))
        best = int(np.argmax(most - least))
        scale = np.float32((least[best] + most[best]) / 2)
        if most[best] >= least[best] and scale > 0 and np.abs(sums[best]).max() <= _LARGEST and np.array_equal(
                np.clip(np.rint(sums[best].astype(np.float32) * scale), *ends), saturated):
            return weight, int(biases[best]), scale
    return None


def _tried(line: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], ratio: float) -> Iterator[tuple[int, np.ndarray]]:
    """Yield weights and biases with which a line, but for its offset, lies between ``bounds`` or next to them."""
    ends = np.clip((float((bounds[0] - line).max()), float((bounds[1] - line).min())), -_FARTHEST, _FARTHEST)
    for size in _WEIGHTS:
        steps = size / abs(ratio)
        least, most = np.rint(np.sort(ends) * steps + np.array([-1, 1]) * (_SLACK * steps + _BIASES)).astype(np.int64)
        middle = np.clip(0, least, most) if most - least > _MOST_BIASES else least
        yield (size if ratio > 0 else -size), np.arange(middle, min(middle + _MOST_BIASES, most) + 1)


def _scales(sums: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return between which scales the sums of each row, times the scale, are within ``bounds``, float64."""
    low, high = bounds
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = low / sums, high / sums
    impossible = (sums == 0) & ((low > 0) | (high < 0))
    least = np.where(sums > 0, first, np.where(sums < 0, second, np.where(impossible, np.inf, -np.inf)))
    most = np.where(sums > 0, second, np.where(sums < 0, first, np.inf))
    return least.max(axis=1), most.min(axis=1)
