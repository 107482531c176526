"""Maxima of windows, concatenation and enlargement of words, from layers that scale and add.

The greater of two words is ``a + max(b - a, 0)``. The difference is within 0 .. 65,535, a word less 32,768, so both
layers are exact. A window takes a pair of them for each row but the first, and then for each column.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from tilewright.compiler.network.layers import CoreLayer, Layer, Shape, TensorInfo
from tilewright.compiler.words.word_graph import WordGraph
from tilewright.compiler.words.word_group import WordOperand, WordResult
from tilewright.compiler.words.word_sums import scaled_layer, sum_layer
from tilewright.compiler.words.word_tensors import WordPart

__all__ = ["Moved", "concatenated", "enlarged", "pooled"]

_LEAST = -32_768


@dataclass(slots=True)
class Moved:
    """Layers, with the parts and inner tensors that they name; or the ``reason`` why there are none."""

    layers: list[Layer] = field(default_factory=list)
    parts: list[WordPart] = field(default_factory=list)
    inner: list[TensorInfo] = field(default_factory=list)
    reason: str = ""

    def part(self, operand: WordOperand, shape: Shape, name: str, **place: int) -> WordOperand:
        """Return an operand that is part of another one."""
        self.parts.append(WordPart(name=name, parent=operand.info.name, shape=shape, **place))
        return replace(operand, info=replace(operand.info, name=name, shape=shape, dims=None))

    def word(self, name: str, like: WordOperand, shape: Shape, zero: int) -> WordOperand:
        """Return a tensor of words between layers."""
        info = replace(like.info, name=name, dtype="int16", shape=shape, dims=None, place=None)
        self.inner.append(info)
        return WordOperand(info, like.scale, zero)

    def add(self, found: Layer | str, name: str) -> None:
        """Take a layer, or why there is none."""
        if isinstance(found, str):
            self.reason = self.reason or found
        else:
            self.layers.append(replace(found, name=name))


def pooled(graph: WordGraph, operator: CoreLayer, x: WordOperand, y: WordResult) -> Moved:
    """Return the layers of a MaxPool."""
    attrs, found = operator.attrs, Moved()
    kernel, strides = tuple(attrs.get("kernel_shape", ())), tuple(attrs.get("strides", (1, 1)))
    if len(kernel) != 2 or any(attrs.get("pads", ())) or attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID") \
            or any(each != 1 for each in attrs.get("dilations", ())) or not x.words:
        return Moved(reason="its windows reach beyond the image, or have gaps")
    channels, height, width = y.operand.info.shape
    if ((height - 1) * strides[0] + kernel[0] > x.info.shape[1]
            or (width - 1) * strides[1] + kernel[1] > x.info.shape[2]):
        return Moved(reason="its windows reach beyond the image, or have gaps")
    name, rows = operator.name, (channels, height, x.info.shape[2])
    bands = [found.part(x, rows, f"{name} row {row}", row=row, row_step=strides[0]) for row in range(kernel[0])]
    tall = _greatest(graph, operator, found, (bands, f"{name} rows"), None)
    columns = [found.part(tall, y.operand.info.shape, f"{name} column {column}", column=column, column_step=strides[1])
               for column in range(kernel[1])]
    if len(columns) == 1:
        found.add(scaled_layer(operator, columns[0], y), name)
    else:
        _greatest(graph, operator, found, (columns, f"{name} columns"), y)
    return found


def _greatest(graph: WordGraph, operator: CoreLayer, found: Moved, which: tuple[list[WordOperand], str],
              y: WordResult | None) -> WordOperand:
    """Return the maxima of tensors, in ``y`` if there is one; ``found`` takes the layers."""
    tensors, name = which
    best = tensors[0]
    for number, each in enumerate(tensors[1:], 1):
        more = found.word(f"{name} {number}: difference", best, best.info.shape, _LEAST)
        less = sum_layer(operator, (each, best), (1, -1), WordResult(graph, more, None))
        found.add(less, f"{name} {number}, difference")
        last = y is not None and number == len(tensors) - 1
        target = y if last and y is not None else WordResult(
            graph, found.word(f"{name} {number}: maxima", best, best.info.shape, tensors[0].zero), None)
        found.add(sum_layer(operator, (best, more), (1, 1), target), f"{name} {number}, maxima")
        best = target.operand
    return best


def concatenated(operator: CoreLayer, operands: list[WordOperand], y: WordResult) -> Moved:
    """Return the layers of a Concat along the channels: one for each input, which writes its own."""
    found, first, (channels, height, width) = Moved(), 0, y.operand.info.shape
    axis, dims = int(operator.attrs.get("axis", 0)), y.operand.info.dims
    rank = 4 if dims is None else len(dims)
    outer = () if dims is None or rank == 4 else dims[:axis % rank]
    if (rank == 4 and axis % rank != 1) or any(each != 1 for each in outer):
        return Moved(reason="it joins along another axis than the channels")
    for number, each in enumerate(operands):
        shape = each.info.shape
        if shape[1:] != (height, width):
            return Moved(reason="it joins along another axis than the channels")
        target = found.part(y.operand, shape, f"{y.operand.info.name} input {number}", channel=first)
        found.add(scaled_layer(operator, each, replace(y, operand=target)), f"{operator.name}, input {number}")
        first += shape[0]
    return found if first == channels else Moved(reason="it joins along another axis than the channels")


def enlarged(operator: CoreLayer, x: WordOperand, y: WordResult) -> Moved:
    """Return the layers of a Resize that repeats pixels: one for each place of them, which writes there."""
    attrs, found = operator.attrs, Moved()
    (channels, height, width), (outputs, tall, wide) = x.info.shape, y.operand.info.shape
    kind = attrs.get("coordinate_transformation_mode", "half_pixel"), attrs.get("nearest_mode", "round_prefer_floor")
    repeats = kind in (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"), (
        "half_pixel", "round_prefer_ceil")) and attrs.get("mode", "nearest") == "nearest"
    if (operator.op == "Resize" and not repeats) or tall % height or wide % width or outputs != channels:
        return Moved(reason="it computes pixels between those of the image")
    steps = tall // height, wide // width
    for row, column in np.ndindex(*steps):
        target = found.part(y.operand, x.info.shape, f"{y.operand.info.name} from {row}, {column}", row=row,
                            column=column, row_step=steps[0], column_step=steps[1])
        found.add(scaled_layer(operator, x, replace(y, operand=target)), f"{operator.name} from {row}, {column}")
    return found
