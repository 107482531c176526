"""How much of its range a network uses: the share of zero and of saturated values in every layer's tensor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["TensorStatistics", "tensor_statistics"]


@dataclass(frozen=True, slots=True)
class TensorStatistics:
    """Of one layer's int8 output: its size, shares between 0 and 1, and how many of the 256 values occur."""

    layer: str
    elements: int
    zeros: float
    saturated: float
    levels: int


def tensor_statistics(layers: Sequence[tuple[str, str]], tensors: Mapping[str, np.ndarray],
                      zero_points: Mapping[str, int]) -> tuple[TensorStatistics, ...]:
    """Return the statistics of every layer whose tensor is available and int8.

    Parameters
    ----------
    layers : sequence of (str, str)
        Name and output tensor of each.
    tensors : mapping of str to ndarray
        By name.
    zero_points : mapping of str to int
        The int8 value that stands for zero, by tensor. It counts as zero, even where it is an end of the range.
    """
    found = []
    for name, output in layers:
        if output not in tensors or tensors[output].dtype != np.int8:
            continue
        counts = np.bincount(tensors[output].ravel().astype(np.int16) + 128, minlength=256)
        zeros = int(counts[zero_points[output] + 128])
        ends = int(counts[0] + counts[255]) - (zeros if zero_points[output] in (-128, 127) else 0)
        elements = int(counts.sum())
        found.append(TensorStatistics(name, elements, zeros / elements, ends / elements, int(np.count_nonzero(counts))))
    return tuple(found)
