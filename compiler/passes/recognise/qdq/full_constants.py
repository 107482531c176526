"""Products and sums with a constant of any shape: the tensor's bytes, seen as an image, have a factor per channel.

Box decoding is the usual case: [1, N, 2] times and plus priors of the same shape. In memory the elements lie one behind
the other, so any P of them in a row are the channels of a pixel; P is a multiple of the constant's period.
"""

import math
from dataclasses import replace

import numpy as np

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxArithmetic,
    OnnxDiv,
    OnnxMul,
    OnnxSub,
)
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup
from tilewright.compiler.passes.recognise.qdq.weights import affine_node
from tilewright.isa.limits import MAX_ROWS

__all__ = ["image_of_elements", "in_memory", "period", "scaled_by_elements"]

_WIDE, _MAX_WIDTH = 64, 1024
"""Channels that fill the lanes of every machine; pixels of a row that fit the buffers of each."""

_MAX_CHANNELS = 1 << 14
"""Of a pixel: its weights take 16 bytes each in memory."""


def scaled_by_elements(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return a depthwise 1x1 convolution between two views for s x + t, constants of any shape; None for others."""
    found = _operands(group)
    if found is None:
        return None
    name, factor, offset = found
    x = group.data_input(name)
    shape = group.graph.tensors[name].shape
    if shape is None or group.graph.tensors[group.node.output].shape != shape or math.prod(shape) == 0 \
            or (len(shape) == 4 and shape[0] != 1):
        return None
    factor, offset = (in_memory(each, shape) for each in (factor, offset))
    image = image_of_elements(factor.size, max(period(factor), period(offset)))
    if image is None:
        return None
    channels = image[1]
    graph = quantisation.with_types(group.graph, x, group.kind)
    before, behind = (replace(each, name=f"{each.name}:elements of {group.kind.name}", shape=image)
                      for each in (replace(x, shape=shape), group.kind))
    graph = graph.with_tensors(before, behind)
    graph, node = affine_node(group, graph, (before, behind), (factor[:channels], offset[:channels]))
    views = (Node(QAlias(), (x.name,), before.name), node, Node(QAlias(), (behind.name,), group.kind.name))
    return graph, views


def _operands(group: QdqGroup) -> tuple[str, np.ndarray, np.ndarray] | None:
    """Return the computed operand, and what multiplies it and is added to it, in float64."""
    graph, node = group.graph, group.node
    if not isinstance(node.operator, OnnxArithmetic) or len(node.inputs) != 2:
        return None
    values = [_constant(graph, name) for name in node.inputs]
    if sum(value is not None for value in values) != 1:
        return None
    first = values[0] is not None
    x, value = (node.inputs[1], values[0]) if first else (node.inputs[0], values[1])
    assert value is not None
    one, zero = np.ones_like(value), np.zeros_like(value)
    match node.operator:
        case OnnxMul():
            return x, value, zero
        case OnnxAdd():
            return x, one, value
        case OnnxSub():
            return (x, -one, value) if first else (x, one, -value)
        case OnnxDiv() if not first and value.all():
            return x, 1 / value, zero
    return None


def _constant(graph: Graph, name: str) -> np.ndarray | None:
    """Return a float constant, or one that is quantised, in float64."""
    value = quantisation.fixed_numbers(graph, name)
    return None if value is None or value.dtype != np.float32 else value.astype(np.float64)


def in_memory(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return a constant for each element of a tensor of ``shape``, in the order in which they lie: NHWC, or rows."""
    full = np.broadcast_to(value, shape)
    return (full.transpose(0, 2, 3, 1) if len(shape) == 4 else full).ravel()


def period(values: np.ndarray) -> int:
    """Return the least divisor of the length after which a vector repeats itself."""
    size = values.size
    return next(each for each in range(1, size + 1)
                if size % each == 0 and np.array_equal(values[each:], values[:-each] if each < size else values[:0]))


def image_of_elements(elements: int, period: int) -> tuple[int, int, int, int] | None:
    """Return (1, channels, height, width) of so many elements, channels a multiple of the period; None if none fits."""
    best: tuple[tuple[bool, int], tuple[int, int, int, int]] | None = None
    for channels in range(period, min(elements, max(period, _WIDE)) + 1, period):
        pixels, rest = divmod(elements, channels)
        if rest or channels > _MAX_CHANNELS:
            continue
        width = max(each for each in range(1, min(pixels, _MAX_WIDTH) + 1) if pixels % each == 0)
        if pixels // width <= MAX_ROWS:
            rank = (channels % 16 == 0, channels)
            if best is None or rank > best[0]:
                best = rank, (1, channels, pixels // width, width)
    return best and best[1]
