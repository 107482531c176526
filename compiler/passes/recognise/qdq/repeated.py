"""Broadcasting of a quantised tensor: bytes repeated by addresses whose steps are 0, or by a convolution with ones.

Of a tensor as it lies in memory, axes that are repeated and axes that are not alternate. An image has three of them:
rows, pixels and channels. A map of one channel becomes channels by a 1x1 convolution, which costs less than a byte at a
time.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import weighted_node
from tilewright.compiler.graph.integer_operators import QConv
from tilewright.compiler.graph.move_operators import QAssemble, QPiece
from tilewright.compiler.graph.node import Node
from tilewright.compiler.network.layers import ByteSteps
from tilewright.isa.limits import MAX_ROWS

__all__ = ["broadcast_shape", "repeated"]

_IMAGE_RANK = 4
_MAX_CHANNELS, _MAX_WIDTH, _MAX_PIECES = 256, 1024, 64
"""Of an image, so that a few of its rows fit the buffers of every machine; and how many images make up a tensor."""

_Axis = tuple[int, int]
"""How many elements, and the bytes from one to the next where they come from."""


def broadcast_shape(kinds: list[Tensor], shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return ``shape`` if the tensors broadcast to it and it has a layout of its own; None for batches of images."""
    shapes = [each.shape for each in kinds]
    if shape is None or any(each is None for each in shapes) or (len(shape) == _IMAGE_RANK and shape[0] != 1):
        return None
    try:
        found = np.broadcast_shapes(*(each or () for each in shapes))
    except ValueError:
        return None
    return shape if found == tuple(shape) and 0 not in shape else None


def repeated(graph: Graph, names: tuple[str, ...], kind: Tensor, shape: tuple[int, ...],
             name: str) -> tuple[Graph, list[Node], Tensor] | None:
    """Return nodes that repeat ``kind`` to ``shape`` under ``name``, and its new type; None if that takes too many.

    ``names`` are those of ONNX's nodes. Without anything to repeat there are no nodes.
    """
    old = kind.shape or ()
    if old == shape:
        return graph, [], kind
    nodes: list[Node] = []
    if len(shape) == len(old) == _IMAGE_RANK and old[1] == 1 != shape[1]:
        wide = replace(kind, name=f"{name}:channels", shape=(1, shape[1], *old[2:]))
        ones = np.ones((shape[1], 1, 1, 1), np.int8), np.ones(1, np.float32)
        conv = QConv().of_type(kind.dtype or "int8")
        graph, node = weighted_node(graph.with_tensors(wide), Node(conv, (), wide.name, names), kind.name, conv, ones,
                                    None)
        nodes.append(node)
        kind = wide
        if wide.shape == shape:
            return graph, nodes, kind
    boxes = _boxes(_axes(kind.shape or (), shape))
    if boxes is None:
        return None
    result = replace(kind, name=name, shape=shape)
    parts = []
    for index, (size, source, _) in enumerate(boxes):
        part = replace(kind, name=f"{name}:piece {index}", shape=(1, *size))
        nodes.append(Node(QPiece(source), (kind.name,), part.name, names))
        parts.append(part)
    nodes.append(Node(QAssemble(tuple(target for _, _, target in boxes)), tuple(each.name for each in parts), name,
                      names))
    return graph.with_tensors(*parts, result), nodes, result


def _axes(old: tuple[int, ...], shape: tuple[int, ...]) -> list[_Axis]:
    """Return the axes of ``shape`` as they lie, from the outermost on, neighbours joined where one step serves both."""
    steps, step = [0] * len(old), 1
    for axis in reversed(_as_they_lie(len(old))):
        steps[axis], step = (step if old[axis] > 1 else 0), step * old[axis]
    steps = [0] * (len(shape) - len(old)) + steps
    found: list[_Axis] = []
    for axis in reversed(_as_they_lie(len(shape))):
        if shape[axis] == 1:
            continue
        if found and steps[axis] == found[0][0] * found[0][1]:
            found[0] = (shape[axis] * found[0][0], found[0][1])
        else:
            found.insert(0, (shape[axis], steps[axis]))
    return found


def _as_they_lie(rank: int) -> tuple[int, ...]:
    """Return the axes of a tensor from the outermost in memory on: images lie as NHWC."""
    return (0, 2, 3, 1) if rank == _IMAGE_RANK else tuple(range(rank))


def _boxes(axes: list[_Axis]) -> list[tuple[tuple[int, int, int], ByteSteps, ByteSteps]] | None:
    """Return images (channels, height, width) with their steps before and behind; None if there were too many."""
    channels = axes.pop()[0] if axes and axes[-1][1] == 1 else 1
    split = next(each for each in range(1, channels + 1)
                 if channels % each == 0 and channels // each <= _MAX_CHANNELS)
    if split > 1:
        channels //= split
        axes.append((split, channels))
    axes = [part for each in axes for part in _halved(each)]
    outer, inner = axes[:-2], [(1, 0), (1, 0), *axes][-2:]
    (height, row), (width, pixel) = inner
    count = int(np.prod([size for size, _ in outer], dtype=np.int64))
    if count > _MAX_PIECES or height > MAX_ROWS or width > _MAX_WIDTH or channels > _MAX_CHANNELS:
        return None
    size = channels * height * width
    found = []
    for index, place in enumerate(np.ndindex(*(size for size, _ in outer))):
        offset = sum(each * step for each, (_, step) in zip(place, outer, strict=True))
        found.append(((channels, height, width), ByteSteps(offset, row, pixel),
                      ByteSteps(index * size, width * channels, channels)))
    return found


def _halved(axis: _Axis) -> list[_Axis]:
    """Return an axis as two, of which the inner one fits a row, if it does not fit itself."""
    size, step = axis
    if size <= _MAX_WIDTH:
        return [axis]
    width = max(each for each in range(1, _MAX_WIDTH + 1) if size % each == 0)
    return [(size // width, width * step), (width, step)]
