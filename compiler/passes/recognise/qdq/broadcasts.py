"""Recognition of the QDQ form's products of two computed tensors, whatever their shapes.

By a vector, an element per channel, a product is a depthwise convolution whose weights are computed. All others are
that, too: by a gate the image is seen with other channels (`gates`), and seen as one pixel, two tensors of one shape
are an image and the vector of its channels.
"""

import math
from dataclasses import replace

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import standing_for
from tilewright.compiler.graph.integer_operators import QScale
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.passes.recognise.qdq.gates import gated
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup, dequantise_before, type_behind
from tilewright.compiler.passes.recognise.qdq.repeated import broadcast_shape, repeated

__all__ = ["by_tensor", "computed_types", "tensor_product"]

_MOST_ELEMENTS = 1 << 20
"""Of two tensors that are multiplied element by element: each takes some 40 bytes of weights and parameters."""


def by_tensor(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return the product of two computed tensors; None if the operands are others."""
    types = computed_types(group.graph, group.node)
    if types is None:
        return None
    made = group.clamped(standing_for(group.node, QScale().of_type(group.kind.dtype or "int8")))
    return tensor_product(group.graph, made.with_operator(exact=False) if group.clamps else made, types, group.kind)


def computed_types(graph: Graph, node: Node) -> tuple[Tensor, Tensor] | None:
    """Return the types of two computed tensors of levels that a node takes; None if it takes others."""
    sources = [dequantise_before(graph, name) for name in node.inputs]
    found = [type_behind(graph, source) for source in sources
             if source is not None and source.inputs[0] not in graph.constants]
    return (found[0], found[1]) if len(found) == len(sources) == 2 else None


def tensor_product(graph: Graph, made: Node, types: tuple[Tensor, Tensor],
                   kind: Tensor) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return the product of two computed tensors, quantised to ``kind``; None if they are too large.

    ``made`` has the QScale to use, and writes the product before its quantisation.
    """
    shape = broadcast_shape(list(types), graph.tensors[made.output].shape)
    if shape is None or any(each.dtype != kind.dtype for each in types):
        return None
    graph = quantisation.with_types(graph, *types, kind)
    pixel = (1, math.prod(shape), 1, 1)
    vector = next((index for index in (1, 0) if _is_vector_of(types[index], shape)), None)
    if vector is None and (found := gated(graph, made, types, shape, kind)) is not None:
        return found
    if vector is None and pixel[1] > _MOST_ELEMENTS:
        return None
    nodes: list[Node] = []
    operands: list[Tensor] = []
    for index, each in enumerate(types):
        whole = shape if index != vector else (1, shape[1], 1, 1)
        spread = repeated(graph, made.onnx_nodes, each, whole, f"{each.name}:repeated {index} of {kind.name}")
        if spread is None:
            return None
        graph, new, operand = spread
        nodes += new
        operands.append(operand)

    def product(operands: tuple[Tensor, ...], output: str) -> Node:
        return made.with_(inputs=tuple(each.name for each in operands), output=output)

    if vector is not None:
        return graph, (*nodes, product((operands[1 - vector], operands[vector]), kind.name))
    if shape == pixel:
        return graph, (*nodes, product(tuple(operands), kind.name))
    views = [replace(each, name=f"{each.name}:factor {index} of {kind.name}", shape=pixel)
             for index, each in enumerate(operands)]
    result = replace(kind, name=f"{kind.name}:elements", shape=pixel)
    nodes += [Node(QAlias(), (each.name,), view.name) for each, view in zip(operands, views, strict=True)]
    return (graph.with_tensors(*views, result),
            (*nodes, product(tuple(views), result.name), Node(QAlias(), (result.name,), kind.name)))


def _is_vector_of(kind: Tensor, shape: tuple[int, ...]) -> bool:
    """Tell whether ``kind`` has one element for each channel of an image of ``shape``, or one for all."""
    return len(shape) == 4 and shape[2:] != (1, 1) and all(extent == 1 for extent in (kind.shape or ())[-2:])
