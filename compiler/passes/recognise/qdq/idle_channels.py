"""Output channels that their sums cannot move: the bias alone gives the result, whatever the input.

A channel that training has emptied has a weight scale as small as 1e-10, and then its bias, in steps of input scale ·
weight scale, does not fit int32: integer kernels overflow. As its sums are less than what moves the result by a level,
weights of 0 at another scale give the same result, and its bias fits.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.onnx_operators import OnnxGemm
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup

__all__ = ["LevelRange", "live_weights", "without_idle_channels"]

_MOST_LEVELS = 2.0**30
"""Of a bias in int32: a sum of products still fits beside it."""

_MOST_OUTPUT_LEVELS = 2.0**20
_SLACK = 1e-5
"""Of the largest number, for what float32 rounds."""


@dataclass(frozen=True, slots=True)
class LevelRange:
    """The scale of a quantised tensor, its zero point, and its least and largest integer."""

    scale: float
    zero_point: int
    low: int
    high: int


def without_idle_channels(weights: np.ndarray, scales: np.ndarray, bias: np.ndarray, x: LevelRange,
                          y: LevelRange) -> tuple[np.ndarray, np.ndarray] | None:
    """Return weights and scales in which each idle channel has weights of 0 and a scale at which its bias fits int32.

    Parameters
    ----------
    weights : ndarray
        int8, less their zero points, of shape (O, …).
    scales : ndarray
        float32 of shape (1,) or (O,).
    bias : ndarray
        Float, of shape (O,): real numbers.
    x, y : LevelRange
        Of the product's input and result.

    Returns
    -------
    tuple of ndarray or None
        int8 and float32 of shape (O,); None if every bias fits, or a channel whose bias does not is not idle.
    """
    channels = weights.shape[0]
    numbers = bias.astype(np.float64).ravel()
    if numbers.size != channels or scales.size not in (1, channels) or not np.isfinite(numbers).all():
        return None
    every = np.broadcast_to(scales.ravel(), channels).astype(np.float64)
    over = np.abs(numbers) >= _MOST_LEVELS * x.scale * every
    if not over.any():
        return None
    rows = weights.reshape(channels, -1).astype(np.int64)
    ends = rows * (x.low - x.zero_point), rows * (x.high - x.zero_point)
    least, most = (pick(*ends).sum(axis=1) * x.scale * every for pick in (np.minimum, np.maximum))
    low, high = (_level(numbers + sign * _SLACK * np.abs(numbers) + reach, y)
                 for sign, reach in ((-1, np.minimum(least, 0)), (1, np.maximum(most, 0))))
    if (over & (low != high)).any():
        return None
    found = every.astype(np.float32)
    steps = np.maximum(y.scale, np.abs(numbers) / _MOST_OUTPUT_LEVELS)
    found[over] = (steps / x.scale).astype(np.float32)[over]
    kept = weights.copy()
    kept[over] = 0
    return kept, found


def _level(numbers: np.ndarray, y: LevelRange) -> np.ndarray:
    """Return the integers that numbers become."""
    return np.clip(np.rint(numbers / y.scale) + y.zero_point, y.low, y.high)


def live_weights(group: QdqGroup, graph: Graph, bias: str, x: Tensor,
                 packed: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and scales as they are, or with 0 for channels that no input moves by a level."""
    values, operator = graph.constants.get(bias), group.node.operator
    if values is None or values.dtype != np.float32 or (
            isinstance(operator, OnnxGemm) and not operator.alpha == operator.beta == 1.0):
        return packed
    found = without_idle_channels(*packed, values, _levels(x), _levels(group.kind))
    return packed if found is None else found


def _levels(tensor: Tensor) -> LevelRange:
    scale, zero_point = tensor.parameters
    ends = np.iinfo(tensor.dtype)
    return LevelRange(float(scale), int(zero_point), int(ends.min), int(ends.max))
