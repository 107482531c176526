"""Recognition of the QDQ form's products and sums of two tensors of which one has an element per channel."""

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import standing_for
from tilewright.compiler.graph.integer_operators import QScale
from tilewright.compiler.graph.node import Node
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup, dequantise_before, type_behind

__all__ = ["by_vector"]


def by_vector(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return the product of an image by a vector of its channels; None if the operands are others."""
    sources = [dequantise_before(group.graph, name) for name in group.node.inputs]
    if any(source is None or source.inputs[0] in group.graph.constants for source in sources):
        return None
    types = [type_behind(group.graph, source) for source in sources if source is not None]
    image, vector = types if _is_vector_of(types[1], types[0]) else reversed(types)
    if not _is_vector_of(vector, image) or any(each.dtype != group.kind.dtype for each in types):
        return None
    graph = quantisation.with_types(group.graph, *types, group.kind)
    node = standing_for(group.node, QScale().of_type(group.kind.dtype), image.name, vector.name)
    node = node.with_(output=group.kind.name)
    if group.clamps:
        node = group.clamped(node).with_operator(exact=False)
    return graph, (node,)


def _is_vector_of(vector: Tensor, image: Tensor) -> bool:
    """Tell whether ``vector`` has an element for each channel of ``image``."""
    shape = image.shape or ()
    return len(shape) == 4 and shape[0] == 1 and vector.shape == (1, shape[1], 1, 1)
