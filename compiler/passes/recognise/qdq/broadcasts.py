"""Recognition of the QDQ form's products of two computed tensors, whatever their shapes.

By a vector, an element per channel, a product is a depthwise convolution whose weights are computed. All others are
that, too: seen as one pixel, two tensors of one shape are an image and the vector of its channels.
"""

import math
from dataclasses import replace

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import standing_for
from tilewright.compiler.graph.integer_operators import QScale
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup, dequantise_before, type_behind
from tilewright.compiler.passes.recognise.qdq.repeated import broadcast_shape, repeated

__all__ = ["by_tensor"]

_MOST_ELEMENTS = 1 << 20
"""Of two tensors that are multiplied element by element: each takes some 40 bytes of weights and parameters."""


def by_tensor(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return the product of two computed tensors; None if the operands are others."""
    sources = [dequantise_before(group.graph, name) for name in group.node.inputs]
    if any(source is None or source.inputs[0] in group.graph.constants for source in sources):
        return None
    types = [type_behind(group.graph, source) for source in sources if source is not None]
    shape = broadcast_shape(types, group.graph.tensors[group.node.output].shape)
    if shape is None or any(each.dtype != group.kind.dtype for each in types):
        return None
    graph = quantisation.with_types(group.graph, *types, group.kind)
    pixel = (1, math.prod(shape), 1, 1)
    vector = next((index for index in (1, 0) if _is_vector_of(types[index], shape)), None)
    if vector is None and pixel[1] > _MOST_ELEMENTS:
        return None
    nodes: list[Node] = []
    operands: list[Tensor] = []
    for index, each in enumerate(types):
        whole = shape if index != vector else (1, shape[1], 1, 1)
        found = repeated(graph, group.node.onnx_nodes, each, whole,
                         f"{each.name}:repeated {index} of {group.kind.name}")
        if found is None:
            return None
        graph, new, operand = found
        nodes += new
        operands.append(operand)
    if vector is not None:
        return graph, (*nodes, _product(group, (operands[1 - vector], operands[vector]), group.kind.name))
    if shape == pixel:
        return graph, (*nodes, _product(group, tuple(operands), group.kind.name))
    views = [replace(each, name=f"{each.name}:factor {index} of {group.kind.name}", shape=pixel)
             for index, each in enumerate(operands)]
    result = replace(group.kind, name=f"{group.kind.name}:elements", shape=pixel)
    nodes += [Node(QAlias(), (each.name,), view.name) for each, view in zip(operands, views, strict=True)]
    return (graph.with_tensors(*views, result),
            (*nodes, _product(group, tuple(views), result.name), Node(QAlias(), (result.name,), group.kind.name)))


def _product(group: QdqGroup, operands: tuple[Tensor, ...], output: str) -> Node:
    """Return the product of an image by a vector, with the group's Relu or Clip."""
    operator = QScale().of_type(group.kind.dtype or "int8")
    node = standing_for(group.node, operator, *(each.name for each in operands)).with_(output=output)
    return group.clamped(node).with_operator(exact=False) if group.clamps else node


def _is_vector_of(kind: Tensor, shape: tuple[int, ...]) -> bool:
    """Tell whether ``kind`` has one element for each channel of an image of ``shape``, or one for all."""
    return len(shape) == 4 and shape[2:] != (1, 1) and all(extent == 1 for extent in (kind.shape or ())[-2:])
