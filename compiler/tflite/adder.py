"""Scales with which ONNX's sum of levels is an engine's integer sum, proved for all 65,536 pairs of operands.

LiteRT shifts, halves up, its reference kernels round thrice, and ONNX Runtime's QLinearAdd, which the datapath has,
multiplies in float32 and rounds halves to even. The two differ in a few pairs or none; scales that are a few float32
values beside make up for these.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tilewright.compiler.network.layers import Residual
from tilewright.compiler.network.reference import residual_table
from tilewright.compiler.tflite.graph_builder import LevelNumbers
from tilewright.compiler.tflite.mark import EngineName
from tilewright.compiler.tflite.numbers import kernel_numbers
from tilewright.compiler.tflite.numbers.litert_numbers import sum_of_levels

__all__ = ["Addends", "fitted_addends", "moved_scale"]

_REACH = 12
"""So many float32 values to each side are tried."""

Addends = tuple[LevelNumbers, LevelNumbers, int]
"""Level numbers by which to read the two operands, and how many of 65,536 pairs then differ."""


@lru_cache(maxsize=256)
def fitted_addends(a: LevelNumbers, b: LevelNumbers, y: LevelNumbers, engine: EngineName = "litert",
                   sign: int = 1) -> Addends:
    """Return the quantisations by which to read two operands of int8, so that their sum is the engine's.

    If several do for all pairs, it is one that does in either order, as the datapath's first operand is the layer's
    own value; if none does, it is that with the fewest pairs, and their number. With a ``sign`` of -1 the second
    operand is the complement of what is subtracted.
    """
    zeros = a.zero, b.zero, y.zero
    if engine == "litert":
        sums = sum_of_levels(np.float32(a.scale / y.scale), np.float32(b.scale / y.scale), zeros)
    elif sign > 0:
        sums = kernel_numbers.sum_of_levels((a.scale, b.scale, y.scale), zeros)
    else:
        sums = kernel_numbers.sum_of_levels((a.scale, b.scale, y.scale), (a.zero, -1 - b.zero, y.zero), -1)[:, ::-1]
    wanted = np.clip(sums, -128, 127)
    best, fewest = (a, b), (wanted.size + 1, 0)
    for steps in _near():
        near = tuple(replace(each, scale=moved_scale(each.scale, step))
                     for each, step in zip((a, b), steps, strict=True))
        try:
            wrong = (int(np.count_nonzero(_table(near[0], near[1], y) != wanted)),
                     int(np.count_nonzero(_table(near[1], near[0], y) != wanted.T)))
        except ValueError:
            break   # too far apart for the datapath's numbers
        if wrong < fewest:
            best, fewest = (near[0], near[1]), wrong
        if wrong == (0, 0):
            break
    return (*best, fewest[0])


def _table(first: LevelNumbers, second: LevelNumbers, y: LevelNumbers) -> np.ndarray:
    """Return the datapath's sum of every pair of int8: (256, 256)."""
    return residual_table(Residual(
        tensor="", scale_a=np.float32(first.scale / y.scale), scale_b=np.float32(second.scale / y.scale),
        zero_a=first.zero, zero_b=second.zero, zero_out=y.zero, low=-128, high=127, unsigned=False))


def _near() -> Iterator[tuple[int, int]]:
    """Yield steps of both scales, the smallest first."""
    reach = range(-_REACH, _REACH + 1)
    yield from sorted(((i, j) for i in reach for j in reach), key=lambda pair: (abs(pair[0]) + abs(pair[1]), pair))


def moved_scale(scale: np.float32, steps: int) -> np.float32:
    """Return the float32 so many values above a positive one."""
    return np.float32((np.array([scale], np.float32).view(np.int32) + np.int32(steps)).view(np.float32)[0])
