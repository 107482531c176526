"""Places in the buffers: rows of runs, and the blocked layout of the activation buffer."""

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.limits import BUFFER_ADDRESSES
from tilewright.isa.machine import TILE_BYTES
from tilewright.isa.semantics.command_errors import OutsideBufferError
from tilewright.isa.semantics.coprocessor_state import Int8, Steps

__all__ = ["Places", "blocked_places", "inside", "run_places"]

Places = NDArray[np.int64]


def run_places(base: int, shape: tuple[int, int, int], steps: Steps) -> Places:
    """Return the places of (rows, runs, run bytes) from ``base``, rows and runs ``steps`` bytes apart."""
    rows, runs, size = shape
    return (base + steps[0] * np.arange(rows)[:, None, None] + steps[1] * np.arange(runs)[:, None] + np.arange(size))


def blocked_places(base: int, x: Places, y: Places, channels: Places, block_step: int, row_step: int) -> Places:
    """Return the places of the pixels (y, x, channel) of a blocked layout: (len(y), len(x), len(channels)).

    ``block_step`` and ``row_step`` are the bytes from one 4x4 block to the next and to the next block row; the latter
    counts modulo the addresses that there are, so that it may lead back.
    """
    position = (x % 4)[None, :, None] + 4 * (y % 4)[:, None, None] + channels
    row = (base + (y // 4) * row_step) % BUFFER_ADDRESSES
    word = row[:, None, None] + (x // 4)[None, :, None] * block_step + TILE_BYTES * channels
    return word + position % TILE_BYTES


def inside(buffer: str, places: Places, array: Int8) -> Places:
    """Return ``places`` if all of them are in the buffer that ``array`` holds.

    Raises
    ------
    OutsideBufferError
        If one is not; it tells the last.
    """
    if (last := int(places.max())) >= array.size:
        raise OutsideBufferError(f"{buffer} byte", last, array.size)
    return places
