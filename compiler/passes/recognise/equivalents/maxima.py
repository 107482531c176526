"""Maxima of several tensors, and along axes of one, as max pooling: of two rows of an image, of all its pixels.

Quantisation keeps the order of numbers, so that the levels of a maximum are the largest of the levels.
"""

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxConcat,
    OnnxMaxPool,
    OnnxQuantizeLinear,
    OnnxReduceMax,
)
from tilewright.compiler.passes.recognise.equivalents.axes import reduced_axes, restored
from tilewright.compiler.passes.recognise.equivalents.replacement import Replacement, image_shape, levels_of
from tilewright.compiler.passes.recognise.function_tables import same_parameters

__all__ = ["largest_along", "largest_of"]

_IMAGE_RANK = 4
_WIDTH = 1024
_PAIR = {"kernel_shape": (2, 1), "strides": (2, 1)}


def largest_of(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with a Max of quantised tensors of one shape as max pooling; None where it is not such.

    Where their scales differ, they must be quantised at once behind it: all are brought to that scale first.
    """
    shape = graph.tensors[node.output].shape
    sources = [levels_of(graph, name) for name in node.inputs]
    if len(node.inputs) < 2 or not shape or any(graph.tensors[name].shape != shape for name in node.inputs
                                                if name in graph.tensors) \
            or any(source is None for source in sources) or (len(shape) == _IMAGE_RANK and shape[0] != 1):
        return None
    levels = [source for source in sources if source is not None]
    behind = graph.only_reader(node.output)
    parts = Replacement(graph, node)
    names, quantise, like = list(node.inputs), levels[0], levels[0].inputs[0]
    if any(not same_parameters(graph, each.inputs[1:], levels[0].inputs[1:]) for each in levels):
        if behind is None or not isinstance(behind.operator, OnnxQuantizeLinear):
            return None
        quantise, like = behind, behind.output
        names = [parts.rounded(name, quantise.inputs[1:], like) for name in names]
    largest = names[0]
    for other in names[1:]:
        found = _pooled(parts, largest, other, shape)
        if found is None:
            return None
        # What is moved, or pooled again, must be of integers.
        largest = _restored(parts, parts.rounded(found, quantise.inputs[1:], like), shape)
    return parts.finished()


def _pooled(parts: Replacement, first: str, second: str, shape: tuple[int, ...]) -> str | None:
    """Add the maximum of two tensors as an image, whose rows are one of the first and one of the second in turns."""
    if len(shape) == _IMAGE_RANK:
        _, channels, height, width = shape
        if height * width <= _WIDTH:
            height, width = 1, height * width
        rows = [parts.reshaped(name, (1, channels, height, 1, width)) if height > 1 else
                parts.reshaped(name, (1, channels, 1, width)) for name in (first, second)]
    else:
        found = image_shape(shape)
        if found is None or found[0] > 1:
            return None
        height, width, channels = found
        rows = [parts.transposed(parts.reshaped(name, (1, height, width, channels)), (0, 3, 1, 2))
                for name in (first, second)]
    axis = 3 if height > 1 else 2
    joined_shape = (1, channels, height, 2, width) if height > 1 else (1, channels, 2, width)
    joined = parts.add(OnnxConcat({"axis": axis}), tuple(rows), joined_shape)
    joined = parts.reshaped(joined, (1, channels, 2 * height, width))
    return parts.add(OnnxMaxPool(_PAIR), (joined,), (1, channels, height, width))


def _restored(parts: Replacement, image: str, shape: tuple[int, ...]) -> str:
    """Add what makes an image a tensor of ``shape`` again."""
    return parts.reshaped(image if len(shape) == _IMAGE_RANK else parts.transposed(image, (0, 2, 3, 1)), shape)


def largest_along(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with a ReduceMax of a quantised image, or of rows, as max pooling; None where it is not such."""
    assert isinstance(node.operator, OnnxReduceMax)
    shape, axes = graph.tensors[node.inputs[0]].shape, reduced_axes(graph, node, node.operator)
    source = levels_of(graph, node.inputs[0])
    if not shape or axes is None or shape[0] != 1 or 0 in axes or source is None:
        return None
    parts = Replacement(graph, node)
    x = node.inputs[0]
    if len(shape) == 3 and axes in ({1}, {2}):
        # (1, rows, channels), or (1, channels, length)
        x = parts.reshaped(x, (1, 1, *shape[1:])) if axes == {1} else parts.reshaped(x, (1, shape[1], 1, shape[2]))
        kernel = (1, shape[1]) if axes == {1} else (1, shape[2])
        if axes == {1}:
            x = parts.transposed(x, (0, 3, 1, 2))
    elif len(shape) == _IMAGE_RANK and 1 in axes:
        # The channels of a pixel are the pixels of a row.
        if len(axes) > 1:
            x = _pooled_by(parts, x, _kernel(shape, axes))
            x = parts.rounded(x, source.inputs[1:], source.inputs[0])
        height, width = (parts.graph.tensors[x].shape or ())[2:]
        x = parts.reshaped(parts.transposed(x, (0, 2, 3, 1)), (1, 1, height * width, shape[1]))
        kernel = (1, shape[1])
    elif len(shape) == _IMAGE_RANK:
        kernel = _kernel(shape, axes)
    else:
        return None
    pooled = parts.rounded(_pooled_by(parts, x, kernel), source.inputs[1:], source.inputs[0])
    restored(parts, pooled, graph.tensors[node.output].shape, shape, axes, keep=bool(node.operator.keepdims))
    return parts.finished()


def _kernel(shape: tuple[int, ...], axes: frozenset[int] | set[int]) -> tuple[int, int]:
    """Return the window that is all of an image's height, or width, where that is among ``axes``."""
    return shape[2] if 2 in axes else 1, shape[3] if 3 in axes else 1


def _pooled_by(parts: Replacement, x: str, kernel: tuple[int, int]) -> str:
    """Add the max pooling of windows that do not overlap."""
    size = parts.graph.tensors[x].shape or ()
    shape = (*size[:2], *(extent // each for extent, each in zip(size[2:], kernel, strict=True)))
    return parts.add(OnnxMaxPool({"kernel_shape": kernel, "strides": kernel}), (x,), shape)
