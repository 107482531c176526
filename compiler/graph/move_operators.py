"""The integer operators that only move elements: concatenation, slices, upsampling, padding and views of a tensor.

They are a matter of addresses; output and inputs have one quantisation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.compiler.graph.integer_operators import IntegerOperator
from tilewright.compiler.network.layers import ByteSteps, Pads, Pair, Shape

__all__ = [
    "FlatView", "IntegerMove", "QAlias", "QAssemble", "QConcat", "QInterleave", "QPad", "QPiece", "QReshape", "QSlice",
    "QUpsample", "ShapedView", "SqueezedView", "UnsqueezedView", "View",
]


@dataclass(frozen=True)
class IntegerMove(IntegerOperator):
    """An operator that only moves elements, so that addresses can replace it."""


@dataclass(frozen=True)
class QConcat(IntegerMove):
    """Any number of tensors one after the other along ``axis`` of (channels, height, width)."""

    axis: int


@dataclass(frozen=True)
class QSlice(IntegerMove):
    """Part of x from (channel, row, column) ``starts``, every ``steps`` rows and columns."""

    starts: Shape
    steps: Pair = (1, 1)


@dataclass(frozen=True)
class QUpsample(IntegerMove):
    """x with every pixel repeated ``factors`` times downwards and to the right."""

    factors: Pair


@dataclass(frozen=True)
class QPad(IntegerMove):
    """x with ``pads`` (top, left, bottom, right) of ``value``, a level of the model's type until ShiftUnsigned.

    ``channels`` of the same value stand before and behind those of x, until PadChannels.
    """

    pads: Pads
    value: int
    channels: Pair = (0, 0)


@dataclass(frozen=True)
class QInterleave(IntegerMove):
    """Phases, row by row, of an image: as many as the product of ``steps`` (rows, columns)."""

    steps: Pair


@dataclass(frozen=True)
class QPiece(IntegerMove):
    """An image with its pixels at ``steps`` among the bytes of x, which may have any shape."""

    steps: ByteSteps


@dataclass(frozen=True)
class QAssemble(IntegerMove):
    """Any shape, whose bytes are those of images whose pixels lie at ``steps``, those of each."""

    steps: tuple[ByteSteps, ...]


@dataclass(frozen=True)
class View:
    """The form in which a reshape is stated."""

    def of(self, shape: Sequence[int]) -> list[int]:
        """Return the shape that becomes of ``shape``."""
        raise NotImplementedError


@dataclass(frozen=True)
class FlatView(View):
    """Two dimensions: those before ``axis``, and those from it on."""

    axis: int

    def of(self, shape: Sequence[int]) -> list[int]:
        axis = self.axis + (len(shape) if self.axis < 0 else 0)
        return [math.prod(shape[:axis]), math.prod(shape[axis:])]


@dataclass(frozen=True)
class ShapedView(View):
    """``shape``, in which -1 is what remains, and 0 the extent that is there unless ``zeros`` are meant."""

    shape: tuple[int, ...]
    zeros: bool = False

    def of(self, shape: Sequence[int]) -> list[int]:
        new = [shape[i] if extent == 0 and not self.zeros and i < len(shape) else extent
               for i, extent in enumerate(self.shape)]
        if new.count(-1) == 1:
            new[new.index(-1)] = math.prod(shape) // max(1, -math.prod(new))
        return new


@dataclass(frozen=True)
class SqueezedView(View):
    """Without ``axes``, of one element each; None for all such."""

    axes: tuple[int, ...] | None = None

    def of(self, shape: Sequence[int]) -> list[int]:
        axes = self.axes if self.axes is not None else [i for i, n in enumerate(shape) if n == 1]
        gone = {axis % len(shape) for axis in axes}
        return [extent for i, extent in enumerate(shape) if i not in gone]


@dataclass(frozen=True)
class UnsqueezedView(View):
    """With ``axes`` of one element."""

    axes: tuple[int, ...]

    def of(self, shape: Sequence[int]) -> list[int]:
        new = list(shape)
        rank = len(shape) + len(self.axes)
        for axis in sorted(axis % rank for axis in self.axes):
            new.insert(axis, 1)
        return new


@dataclass(frozen=True)
class QReshape(IntegerOperator):
    """x in another shape, row by row as the model sees it."""

    view: View


@dataclass(frozen=True)
class QAlias(IntegerOperator):
    """The same bytes as x; ``flat`` names those of the two tensors that lie row by row, not as NHWC."""

    flat: frozenset[str] = frozenset()
