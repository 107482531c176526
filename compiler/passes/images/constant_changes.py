"""Rearrangements of weights, biases and operands of tensors that have become images."""

from dataclasses import dataclass

import numpy as np

from tilewright.compiler.network.image_forms import LINE, Form

__all__ = ["Broadcast", "ConstantChange", "Flattened", "LineWeights", "MatrixWeights"]


class ConstantChange:
    """A rearrangement of a constant's elements, and its effect on an axis."""

    def values(self, values: np.ndarray) -> np.ndarray:
        """Return the constant rearranged."""
        raise NotImplementedError

    def axis(self, axis: int, rank: int) -> int:
        """Return where an axis is afterwards."""
        raise NotImplementedError


class LineWeights(ConstantChange):
    """Weights (a, b, length) of a convolution over one dimension, as (a, b, 1, length)."""

    def values(self, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values[:, :, None, :])

    def axis(self, axis: int, rank: int) -> int:
        return LINE.axis(axis, rank)


@dataclass(frozen=True)
class MatrixWeights(ConstantChange):
    """A matrix (inputs, outputs), or the other way round if ``transposed``, as (outputs, inputs, 1, 1)."""

    transposed: bool

    def values(self, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray((values if self.transposed else values.T)[:, :, None, None])

    def axis(self, axis: int, rank: int) -> int:
        return axis % 2 if self.transposed else 1 - axis % 2


@dataclass(frozen=True)
class Flattened(ConstantChange):
    """A bias as a vector of ``count`` elements."""

    count: int

    def values(self, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.broadcast_to(values.reshape(-1), self.count))

    def axis(self, axis: int, rank: int) -> int:
        return 0


@dataclass(frozen=True)
class Broadcast(ConstantChange):
    """A constant that is broadcast over tensors of ``rank``, over their images."""

    form: Form
    rank: int

    def values(self, values: np.ndarray) -> np.ndarray:
        return self.form.of(values, self.rank)

    def axis(self, axis: int, rank: int) -> int:
        return self.form.axis(axis % rank + self.rank - rank, self.rank)
