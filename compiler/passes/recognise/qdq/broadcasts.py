"""Recognition of the QDQ form's products and sums of two tensors of which one has an element per channel."""

import math
from dataclasses import replace

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import standing_for
from tilewright.compiler.graph.integer_operators import QScale
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup, dequantise_before, type_behind

__all__ = ["by_vector"]

_MOST_ELEMENTS = 1024
"""Of two tensors that are multiplied element by element: each takes some 40 bytes of weights and parameters."""


def by_vector(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return the product of an image by a vector of its channels; None if the operands are others."""
    sources = [dequantise_before(group.graph, name) for name in group.node.inputs]
    if any(source is None or source.inputs[0] in group.graph.constants for source in sources):
        return None
    types = [type_behind(group.graph, source) for source in sources if source is not None]
    if types[0].shape == types[1].shape and (found := _by_elements(group, types)) is not None:
        return found
    image, vector = types if _is_vector_of(types[1], types[0]) else reversed(types)
    if not _is_vector_of(vector, image) or any(each.dtype != group.kind.dtype for each in types):
        return None
    graph = quantisation.with_types(group.graph, *types, group.kind)
    node = standing_for(group.node, QScale().of_type(group.kind.dtype), image.name, vector.name)
    node = node.with_(output=group.kind.name)
    if group.clamps:
        node = group.clamped(node).with_operator(exact=False)
    return graph, (node,)


def _by_elements(group: QdqGroup, types: list[Tensor]) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return the product of two small tensors of one shape, seen as pixels of as many channels; None if not small."""
    shape, kind = types[0].shape or (), group.kind
    elements = math.prod(shape)
    if not 0 < elements <= _MOST_ELEMENTS or (len(shape) == 4 and shape[0] != 1) or shape == (1, elements, 1, 1) \
            or group.graph.tensors[group.node.output].shape != shape or any(each.dtype != kind.dtype for each in types):
        return None
    pixel = (1, elements, 1, 1)
    graph = quantisation.with_types(group.graph, *types, kind)
    views = [replace(each, name=f"{each.name}:factor {index} of {kind.name}", shape=pixel)
             for index, each in enumerate(types)]
    result = replace(kind, name=f"{kind.name}:elements", shape=pixel)
    node = standing_for(group.node, QScale().of_type(kind.dtype), *(each.name for each in views))
    node = node.with_(output=result.name)
    if group.clamps:
        node = group.clamped(node).with_operator(exact=False)
    before = [Node(QAlias(), (each.name,), view.name) for each, view in zip(types, views, strict=True)]
    return (graph.with_tensors(*views, result),
            (*before, node, Node(QAlias(), (result.name,), kind.name)))


def _is_vector_of(vector: Tensor, image: Tensor) -> bool:
    """Tell whether ``vector`` has an element for each channel of ``image``."""
    shape = image.shape or ()
    return len(shape) == 4 and shape[0] == 1 and vector.shape == (1, shape[1], 1, 1)
