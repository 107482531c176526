"""Images over the bytes of tensors that are none: elements in a row are the channels of a pixel."""

import numpy as np

from tilewright.isa.limits import MAX_ROWS

__all__ = ["image_of_elements", "in_memory", "period"]

_LANES, _MAX_WIDTH = 16, 1024
"""Channels in whole runs; pixels of a row that fit the buffers of every machine."""

_MAX_CHANNELS = 1 << 18
"""Of a pixel: its weights take 16 bytes each in memory, and some 4 cycles, of which the host core takes 200."""


def in_memory(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return a constant for each element of a tensor of ``shape``, in the order in which they lie: NHWC, or rows."""
    full = np.broadcast_to(value, shape)
    return (full.transpose(0, 2, 3, 1) if len(shape) == 4 else full).ravel()


def period(values: np.ndarray) -> int:
    """Return the least divisor of the length after which a vector repeats itself."""
    size = values.size
    return next(each for each in range(1, size + 1)
                if size % each == 0 and np.array_equal(values[each:], values[:-each] if each < size else values[:0]))


def image_of_elements(elements: int, period: int = 1, wide: int = 64) -> tuple[int, int, int, int] | None:
    """Return (1, channels, height, width) of so many elements, channels a multiple of the period; None if none fits.

    Of more than a period there are at most ``wide`` channels: 64 fill the lanes of every machine.
    """
    best: tuple[tuple[bool, int], tuple[int, int, int, int]] | None = None
    for channels in range(period, min(elements, max(period, wide)) + 1, period):
        pixels, rest = divmod(elements, channels)
        if rest or channels > _MAX_CHANNELS:
            continue
        width = max(each for each in range(1, min(pixels, _MAX_WIDTH) + 1) if pixels % each == 0)
        if pixels // width <= MAX_ROWS:
            rank = (channels % _LANES == 0, channels)
            if best is None or rank > best[0]:
                best = rank, (1, channels, pixels // width, width)
    return best and best[1]
