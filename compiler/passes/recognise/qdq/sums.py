"""Sums and means along axes of an image: over height and width an average, over others a convolution with ones."""

import math
from collections.abc import Sequence

import numpy as np

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_nodes import standing_for, weighted_node
from tilewright.compiler.graph.integer_operators import QAverage, QConv
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxReduceMean, OnnxReduceSum
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup

__all__ = ["summed"]

_MAX_SUM = 1 << 30
"""Of int32 sums, far from where they would overflow."""


def summed(group: QdqGroup, graph: Graph, node: Node, x: str) -> tuple[Graph, Node]:
    """Return the graph and the integer operator of a ReduceMean or ReduceSum of ``x``, (1, C, H, W) int8 or uint8.

    ONNX Runtime has no integer kernel for it: it sums in float, and the result may be one level off.
    """
    operator, shape = node.operator, graph.tensors[x].shape or ()
    assert isinstance(operator, OnnxReduceMean | OnnxReduceSum)
    axes: Sequence[int] | None = operator.axes
    if len(node.inputs) > 1 and node.inputs[1]:
        axes = [int(axis) for axis in quantisation.constant(graph, node, node.inputs[1], "axes").ravel()]
    over = {int(axis) % 4 for axis in axes} if axes and len(shape) == 4 else set()
    if not over or 0 in over or shape[0] != 1:
        raise group.refusal("it reduces more than channels, height or width of one image", "reduce those")
    mean = isinstance(operator, OnnxReduceMean)
    if over == {2, 3} and mean:
        return graph, standing_for(node, QAverage(exact=False).of_type(group.kind.dtype), x)
    channels, *size = shape[1:]
    kernel = tuple(extent if axis in over else 1 for axis, extent in zip((2, 3), size, strict=True))
    groups = 1 if 1 in over else channels
    count = math.prod(kernel) * channels // groups
    if 255 * count > _MAX_SUM:
        raise group.refusal(f"it reduces {count} elements", f"reduce at most {_MAX_SUM // 255} at a time")
    ones = np.ones((1 if 1 in over else channels, channels // groups, *kernel), np.int8)
    scale = np.full(1, 1 / count if mean else 1, np.float32)
    conv = QConv(groups=groups, exact=False).of_type(group.kind.dtype)
    return weighted_node(graph, node, x, conv, (ones, scale), None)
