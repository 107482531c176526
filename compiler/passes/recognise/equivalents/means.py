"""Means along axes of anything but an image as means of an image, and one mean behind another as one of both."""

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxDequantizeLinear,
    OnnxGlobalAveragePool,
    OnnxQuantizeLinear,
    OnnxReduceMean,
    OnnxReduceSum,
    OnnxReshape,
)
from tilewright.compiler.passes.recognise.equivalents.axes import reduced_axes, restored
from tilewright.compiler.passes.recognise.equivalents.replacement import Replacement, image_shape, levels_of
from tilewright.compiler.passes.recognise.function_tables import same_parameters
from tilewright.isa.limits import MAX_KERNEL

__all__ = ["mean_of_image", "mean_of_mean"]

_IMAGE_RANK = 4


def mean_of_mean(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with a ReduceMean of what another one alone has made as one along all their axes."""
    assert isinstance(node.operator, OnnxReduceMean)
    first = graph.producer(node.inputs[0])
    if first is None or not isinstance(first.operator, OnnxReduceMean) or graph.only_reader(first.output) is None \
            or not first.operator.keepdims:
        return None
    axes, others = reduced_axes(graph, node, node.operator), reduced_axes(graph, first, first.operator)
    if axes is None or others is None or levels_of(graph, first.inputs[0]) is None:
        return None
    operator = OnnxReduceMean({"axes": tuple(sorted(axes | others)), "keepdims": node.operator.keepdims})
    both = Node(operator, first.inputs[:1], node.output, (*first.onnx_nodes, *node.onnx_nodes))
    return graph.replaced((first, node), both)


def mean_of_image(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with a mean or sum of three dimensions, or of all elements, as one over an image; or None.

    The elements of (1, rows, channels) are an image as they lie, and so are those of (1, channels, length) that were
    one before a Reshape. Those of a mean or sum of all are one in any order. Axes of one element, as the batch, do not
    count. A mean over all of an image that is large becomes a GlobalAveragePool, which is done in steps.
    """
    assert isinstance(node.operator, OnnxReduceMean | OnnxReduceSum)
    x, behind = node.inputs[0], graph.only_reader(node.output)
    shape, axes, source = graph.tensors[x].shape, reduced_axes(graph, node, node.operator), levels_of(graph, x)
    if shape is None or source is None or axes is None or behind is None \
            or not isinstance(behind.operator, OnnxQuantizeLinear):
        return None
    counted = {axis for axis in axes if shape[axis] != 1} or axes
    parts = Replacement(graph, node)
    over: tuple[int, ...] = (2, 3)
    everything = all(axis in axes or extent == 1 for axis, extent in enumerate(shape))
    if shape[0] != 1 and not everything:
        return None
    mean = isinstance(node.operator, OnnxReduceMean)
    if len(shape) == _IMAGE_RANK and counted == {2, 3} and mean and max(shape[2:]) > MAX_KERNEL:
        image = x
    elif len(shape) == 3 and counted == {1}:
        image = parts.transposed(parts.reshaped(x, (1, 1, *shape[1:])), (0, 3, 1, 2))
    elif len(shape) == 3 and counted == {2}:
        image = _before_reshape(parts, source, shape) or parts.reshaped(x, (1, shape[1], 1, shape[2]))
    elif everything and (whole := _of_all(parts, source, axes)):
        image, over = whole, (1, 2, 3)
    else:
        return None
    before = parts.graph.tensors[image].shape or ()
    operator = OnnxGlobalAveragePool(rounded=True) if mean and over == (2, 3) and max(before[2:]) > MAX_KERNEL else \
        type(node.operator)({"axes": over, "keepdims": 1})
    extents = tuple(1 if axis in over else extent for axis, extent in enumerate(before))
    result = parts.rounded(parts.add(operator, (image,), extents), behind.inputs[1:], behind.output)
    restored(parts, result, graph.tensors[node.output].shape, shape, axes, keep=bool(node.operator.keepdims))
    return parts.finished()


def _of_all(parts: Replacement, source: Node, axes: set[int]) -> str | None:
    """Return the floats of an image of all elements that are reduced; None where it is one as it is, or none."""
    assert isinstance(parts.node.operator, OnnxReduceMean | OnnxReduceSum)
    x = parts.node.inputs[0]
    shape = parts.graph.tensors[x].shape or ()
    if len(shape) == _IMAGE_RANK:
        done = axes == {1, 2, 3} and parts.node.operator.keepdims
        return None if shape[0] > 1 or not axes >= {1, 2, 3} or done else x
    if (image := _before_reshape(parts, source, None)) is not None:
        return image
    extents = image_shape(shape)
    return None if extents is None else parts.transposed(parts.reshaped(x, (1, *extents)), (0, 3, 1, 2))


def _before_reshape(parts: Replacement, source: Node, shape: tuple[int, ...] | None) -> str | None:
    """Return the floats of the image that integers were before they were reshaped; None for others.

    If it has a ``shape``, its channels stay.
    """
    made = parts.graph.producer(source.inputs[0])
    if made is not None and isinstance(made.operator, OnnxQuantizeLinear) \
            and same_parameters(parts.graph, made.inputs[1:], source.inputs[1:]):
        made = parts.graph.producer(made.inputs[0])
    if made is None or not isinstance(made.operator, OnnxReshape):
        return None
    before = parts.graph.tensors[made.inputs[0]].shape
    if before is None or len(before) != _IMAGE_RANK or before[0] != 1 or (shape and before[1] != shape[1]):
        return None
    if parts.graph.tensors[made.inputs[0]].dtype != "float32":
        return parts.add(OnnxDequantizeLinear(), (made.inputs[0], *source.inputs[1:]), before)
    floats = levels_of(parts.graph, made.inputs[0])
    same = floats is not None and same_parameters(parts.graph, floats.inputs[1:], source.inputs[1:])
    return made.inputs[0] if same else None
