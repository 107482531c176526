"""Random chains of movements of any rank between two quantised tensors: what shuffles, heads and rearrangements are."""

import math
from collections.abc import Callable

import numpy as np

from tests.fuzz.choices import Choices
from tests.support.onnx_models import ModelBuilder, Value

Shape = tuple[int, ...]
_MAX_RANK = 5


class MovementChain:
    """A chain of movements while it grows: the tensor so far, and its shape."""

    def __init__(self, choices: Choices, model: ModelBuilder, x: Value, largest: int) -> None:
        self.choices, self.model, self.largest = choices, model, largest
        self.integer = model.form == "qoperator"
        self.name = x.name if self.integer else model.dequantised(x)
        self.shape: Shape = x.shape
        self.x = x

    def grow(self) -> Value | None:
        """Return an image made by up to four movements, at the scale of x or another one; None if it is too large."""
        for _ in range(self.choices.between(1, 4)):
            self.choices.pick(_STEPS)(self)
        size = math.prod(self.shape)
        channels = self.choices.pick([each for each in range(1, min(size, 24) + 1) if size % each == 0])
        width = self.choices.pick([each for each in range(1, size // channels + 1) if size // channels % each == 0])
        shape = (1, channels, size // channels // width, width)
        if size > self.largest or max(shape[2:]) > 256:
            return None
        same = self.integer or self.choices.chance(70)
        out = self.model.value(shape, self.x.scale if same else np.float32(self.x.scale * 1.3), self.x.zero_point)
        if self.integer:
            self.model.node("Reshape", [self.name, self.ints(*shape)], out.name)
        else:
            self.to("Reshape", shape, self.ints(*shape))
            self.model.quantised(self.name, out)
        return out

    def to(self, op: str, shape: Shape, *inputs: str, **attributes: object) -> None:
        """Append a movement that makes ``shape``, at times with a quantisation behind it."""
        model = self.model
        self.name = model.node(op, [self.name, *inputs], f"moved{len(model.nodes)}", **attributes)
        self.shape = shape
        if not self.integer and self.choices.chance(25):
            between = model.value(shape, self.x.scale, self.x.zero_point)
            model.quantised(self.name, between)
            self.name = model.dequantised(between)

    def ints(self, *values: int) -> str:
        """Add a constant list."""
        return self.model.constant(np.array(values, np.int64))

    def axis(self) -> int:
        """Draw an axis."""
        return self.choices.below(len(self.shape))

    def transpose(self) -> None:
        """Draw an order of the axes."""
        left, perm = list(range(len(self.shape))), []
        while left:
            perm.append(left.pop(self.choices.below(len(left))))
        self.to("Transpose", tuple(self.shape[axis] for axis in perm), perm=perm)

    def reshape(self) -> None:
        """Draw another shape, of any rank."""
        rest, shape = math.prod(self.shape), []
        for _ in range(self.choices.below(_MAX_RANK)):
            shape.append(self.choices.pick([each for each in range(1, min(rest, 24) + 1) if rest % each == 0]))
            rest //= shape[-1]
        self.to("Reshape", (*shape, rest), self.ints(*shape, -1))

    def slice(self) -> None:
        """Draw a start and a step along an axis."""
        axis, step = self.axis(), self.choices.between(1, 3)
        start = self.choices.below(self.shape[axis])
        shape = (*self.shape[:axis], -(-(self.shape[axis] - start) // step), *self.shape[axis + 1:])
        self.to("Slice", shape, self.ints(start), self.ints(1 << 40), self.ints(axis), self.ints(step))

    def gather(self) -> None:
        """Draw indices along an axis: one number, or a list of them."""
        axis = self.axis()
        if self.choices.chance(30) and len(self.shape) > 1:
            index = self.model.constant(np.int64(self.choices.below(self.shape[axis])))
            self.to("Gather", (*self.shape[:axis], *self.shape[axis + 1:]), index, axis=axis)
            return
        count = self.choices.between(1, self.shape[axis])
        indices = [self.choices.below(self.shape[axis]) for _ in range(count)]
        self.to("Gather", (*self.shape[:axis], count, *self.shape[axis + 1:]), self.ints(*indices), axis=axis)

    def concat(self) -> None:
        """Join the tensor with itself."""
        if 2 * math.prod(self.shape) <= self.largest:
            axis = self.axis()
            shape = (*self.shape[:axis], 2 * self.shape[axis], *self.shape[axis + 1:])
            self.to("Concat", shape, self.name, axis=axis)

    def tile(self) -> None:
        """Repeat the tensor along an axis."""
        axis, times = self.axis(), self.choices.between(1, 3)
        if times * math.prod(self.shape) <= self.largest:
            repeats = [times if each == axis else 1 for each in range(len(self.shape))]
            shape = tuple(size * each for size, each in zip(self.shape, repeats, strict=True))
            self.to("Tile", shape, self.ints(*repeats))

    def depth(self) -> None:
        """Move between channels and space."""
        if len(self.shape) != 4 or self.integer:
            return
        batch, channels, height, width = self.shape
        if channels % 4 == 0:
            mode = self.choices.pick(("DCR", "CRD"))
            self.to("DepthToSpace", (batch, channels // 4, 2 * height, 2 * width), blocksize=2, mode=mode)
        elif height % 2 == 0 and width % 2 == 0:
            self.to("SpaceToDepth", (batch, 4 * channels, height // 2, width // 2), blocksize=2)


_STEPS: tuple[Callable[[MovementChain], None], ...] = (
    MovementChain.transpose, MovementChain.reshape, MovementChain.slice, MovementChain.gather, MovementChain.concat,
    MovementChain.tile, MovementChain.depth)
