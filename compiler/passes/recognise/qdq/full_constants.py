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
from tilewright.compiler.graph.onnx_operators import OnnxArithmetic
from tilewright.compiler.passes.recognise.element_images import image_of_elements, in_memory, period
from tilewright.compiler.passes.recognise.fold_affine import affine_terms
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup
from tilewright.compiler.passes.recognise.qdq.weights import affine_node

__all__ = ["scaled_by_elements"]


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
    terms = affine_terms(node.operator, value, first=first)
    return terms and (x, *terms)


def _constant(graph: Graph, name: str) -> np.ndarray | None:
    """Return a float constant, or one that is quantised, in float64."""
    value = quantisation.fixed_numbers(graph, name)
    return None if value is None or value.dtype != np.float32 else value.astype(np.float64)
