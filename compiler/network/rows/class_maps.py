"""ArgMax of levels along rows, in layers of the datapath: which class each pixel of a map has, or each frame.

The row unit tells the largest elements of a row from all others: a softmax whose table is 0 but for these, and whose
scale is so large that what each of several gets is above its upper bound, 1. The first of them is as far from the
row's start as there are elements before which there is none: sums of all that come before and with an element, bounded
by 1, are zeros, then ones, and the place is the number of zeros. It is written as the bytes of an int64.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilewright.compiler.kernels.language.c_loops import merged
from tilewright.compiler.kernels.language.checked import attribute, axis_of
from tilewright.compiler.network.layers import (
    AnyLayer,
    CoreLayer,
    Layer,
    Network,
    Place,
    Requantisation,
    Shape,
    TensorInfo,
)
from tilewright.compiler.network.strided_views import whole_place
from tilewright.isa.limits import MAX_COLUMNS
from tilewright.isa.numerics import pack_scale
from tilewright.isa.program import Call
from tilewright.isa.rows.row_softmax import ENTRY_BITS, TABLE_WORDS, RowSoftmax

__all__ = ["class_map"]

_LEAST = 128
"""Elements below which these layers take longer than the host core."""

_MOST = 256
"""Classes whose number is a byte."""

_PLACE_BYTES = 8
"""Of an int64."""

_COLUMNS = 256
"""Pixels of a row, at most, where any number will do."""


def class_map(layer: CoreLayer, call: Call, network: Network, tensors: dict[str, TensorInfo],
              longest: int) -> Sequence[AnyLayer] | None:
    """Return the layers of an ArgMax of rows of up to ``longest`` elements, and add their tensors; None for others."""
    source, operand = tensors[layer.inputs[0]], call.inputs[0]
    axis = axis_of(attribute(call, "axis", 0), len(operand.dims))
    classes, elements = operand.dims[axis], int(np.prod(operand.dims))
    if (operand.dtype, call.output.dtype) != ("int8", "int64") or attribute(call, "select_last_index", 0) \
            or source.images > 1 or not 1 < classes <= min(_MOST, longest) or elements < _LEAST \
            or operand.strides[axis] != 1:
        return None
    others = [each for each in range(len(operand.dims)) if each != axis]
    counts, (steps,) = merged(tuple(operand.dims[each] for each in others),
                              [tuple(operand.strides[each] for each in others)])
    if len(counts) == 1:
        width = next(size for size in range(min(_COLUMNS, counts[0]), 0, -1) if counts[0] % size == 0)
        counts, steps = (counts[0] // width, width), (width * steps[0], steps[0])
    if len(counts) != 2 or max(counts) > MAX_COLUMNS:
        return None
    return _ClassMap(layer, network, source, (classes, *counts), (steps[0], steps[1])).made(tensors)


class _ClassMap:
    """The layers of one ArgMax, of an image whose pixels are the rows."""

    def __init__(self, layer: CoreLayer, network: Network, source: TensorInfo, shape: Shape,
                 steps: tuple[int, int]) -> None:
        self.layer, self.network, self.shape = layer, network, shape
        place = source.place or whole_place(source.name, source.shape)
        self.source = replace(
            source, name=network.unused_name(f"{layer.name}:levels"), shape=shape, dims=None, onnx_name=None,
            onnx_dtype=None, onnx_shape=None,
            place=Place(parent=place.parent, offset=place.offset, row_step=steps[0], pixel_step=steps[1]))
        self.tensors = {self.source.name: self.source}
        self.layers: list[Layer] = []

    def made(self, tensors: dict[str, TensorInfo]) -> Sequence[AnyLayer]:
        """Return the layers, and add their tensors."""
        classes, height, width = self.shape
        largest = self._image("largest", self.shape)
        self._add("largest", self.source, largest, None, 0)
        self.layers[-1] = replace(self.layers[-1], rows=_largest(classes))
        reached = self._image("reached", self.shape)
        self._add("reached", largest, reached, np.tri(classes, dtype=np.int8), 0, (0, 1))
        place = self._image("place", (_PLACE_BYTES, height, width))
        place = replace(place, place=whole_place(self.layer.output, place.shape))
        self.tensors[place.name] = place
        # Places beyond int8 are 128 less until the table turns their upper bit.
        weights, low = np.zeros((_PLACE_BYTES, classes), np.int8), -128 if classes > 128 else 0
        weights[0] = -1
        self._add("place", reached, place, weights, low)
        last = self.layers[-1]
        last.bias[0] += classes
        table = (np.arange(-128, 128) ^ -128).astype(np.int8) if low else None
        self.layers[-1] = replace(last, name=self.layer.name, table=table, exact=self.layer.exact)
        tensors |= self.tensors
        return self.layers

    def _image(self, what: str, shape: Shape) -> TensorInfo:
        name = self.network.unused_name(f"{self.layer.name}:{what} image")
        self.tensors[name] = TensorInfo(name=name, shape=shape, scale=np.float32(1), zero_point=0)
        return self.tensors[name]

    def _add(self, what: str, source: TensorInfo, target: TensorInfo, weights: np.ndarray | None, bias: int,
             bounds: tuple[int, int] = (-128, 127)) -> None:
        """Add a layer that multiplies pixels by (outputs, inputs) weights, or leaves them as they are."""
        shape = target.shape
        self.layers.append(Layer(
            name=f"{self.layer.name}:{what}", kind="pass" if weights is None else "conv",
            onnx_nodes=self.layer.onnx_nodes, input=source.name, output=target.name, in_shape=source.shape,
            conv_shape=shape, out_shape=shape, weights=None if weights is None else weights[:, :, None, None],
            bias=np.full(shape[0], bias, np.int32), groups=shape[0] if weights is None else 1,
            requantisation=Requantisation(scale=np.ones(shape[0], np.float32), zero_point=0, low=bounds[0],
                                          high=bounds[1])))


def _largest(classes: int) -> RowSoftmax:
    """Return the softmax that makes 1 of each of a row's largest elements, and 0 of all others."""
    mantissa, shift = pack_scale(float(2 * classes))
    return RowSoftmax(((1 << ENTRY_BITS) - 1, *[0] * (TABLE_WORDS - 1)), mantissa, shift, zero_point=0, low=0, high=1)
