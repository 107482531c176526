"""Contents of the registers of an array that takes channels in pairs, slot by slot: pairs of patches, and products.

The array is that of rtl/array/winograd_inner_lane.py and patch_pairs.py: a lane has two output channels, and the pairs
of conv23 are there for the first and then for the second ones. Its state is that of neighbouring slots, in order.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["DATA_BITS", "held_pairs", "pair_registers"]

_Ints = NDArray[np.int64]
_Registers = list[tuple[_Ints, int]]

DATA_BITS = 10
"""Of a transformed value."""

_OPERAND, _PRODUCT, _ROW, _SUM = 12, 23, 24, 24
"""Of a lane; in rtl/array/pair_multipliers.py and winograd_inner_lane.py."""

_XI_PRODUCT, _XI_SUM = 20, 21


def held_pairs(data: _Ints, *, dot: bool) -> _Ints:
    """Return (slots, 32) of the data that each lane holds of ``data`` (steps, tiles, 16): transformed patches or runs.

    A step of conv23 is a channel, and their number is even: each two are there twice, for first and second channels.
    """
    if dot:
        return np.concatenate([data[..., 0::2]] * 2 + [data[..., 1::2]] * 2, axis=2).reshape(-1, 32)
    pairs = np.concatenate([data[0::2], data[1::2]], axis=2)
    return np.repeat(pairs, 2, axis=0).reshape(-1, 32)


def pair_registers(held: _Ints, weights: _Ints, tiles: int, *, dot: bool) -> _Registers:
    """Return the contents (slots, count) of the registers after those of `held_pairs`, and their widths.

    Parameters
    ----------
    held : (slots, 32)
    weights : int64, (steps, 16, lanes)
        Transformed, or of runs; of ``lanes`` output channels.
    tiles : int
        Slots of a step.
    dot : bool
    """
    even, odd = held[:, :16, None], held[:, 16:, None]
    of_even, of_odd = _weights(weights, tiles, dot=dot)
    a, b = even + of_odd, odd + of_even
    found = [(a, _OPERAND), (b, _OPERAND)]
    first = even * odd if dot else (even * odd).reshape(-1, 2, tiles, 16, 1)[:, 0].reshape(-1, 16, 1)
    for products, widths in ((a * b, (_PRODUCT, _ROW, _SUM)), (first, (_XI_PRODUCT, _XI_SUM, _XI_SUM))):
        rows, sums = _inverse(products, dot=dot)
        found += list(zip((products, rows, sums), widths, strict=True))
    return [(values.reshape(len(values), -1), bits) for values, bits in found]


def _weights(weights: _Ints, tiles: int, *, dot: bool) -> tuple[_Ints, _Ints]:
    """Return the weights that meet ``odd`` and ``even`` in every slot: (slots, 16, lanes of two channels)."""
    if dot:     # of both channels of a lane, eight pairs each
        even, odd = (np.concatenate([weights[:, half::2, 0::2], weights[:, half::2, 1::2]], axis=1) for half in (0, 1))
    else:       # (pairs of channels, first and second outputs, ...)
        even, odd = (np.stack([weights[half::2, :, 0::2], weights[half::2, :, 1::2]], axis=1)
                     .reshape(-1, 16, weights.shape[2] // 2) for half in (0, 1))
    return np.repeat(even, tiles, axis=0), np.repeat(odd, tiles, axis=0)


def _inverse(products: _Ints, *, dot: bool) -> tuple[_Ints, _Ints]:
    """Return the registers of `PairInverseTransform` of (slots, 16, lanes): rows (slots, 8 · lanes) and sums."""
    p = products.reshape(-1, 4, 4, products.shape[-1])
    rows = np.stack([p[:, 0] + p[:, 1] + (0 if dot else p[:, 2]), (0 if dot else p[:, 1]) - p[:, 2] - p[:, 3]], axis=1)
    sums = np.stack([rows[:, :, 0] + rows[:, :, 1] + (0 if dot else rows[:, :, 2]),
                     (0 if dot else rows[:, :, 1]) - rows[:, :, 2] - rows[:, :, 3]], axis=2)
    return rows.reshape(len(p), -1), sums.reshape(len(p), -1)
