"""Recognition of products of computed matrices, which AsImages has made products of images."""

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_nodes import standing_for
from tilewright.compiler.graph.integer_operators import QProduct
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxImageProduct
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup

__all__ = ["multiplied_matrices"]


def multiplied_matrices(group: QdqGroup, operator: OnnxImageProduct) -> tuple[Graph, tuple[Node, ...]]:
    """Return the QProduct of a group's OnnxImageProduct, and the graph with its types.

    Raises
    ------
    UnsupportedNodeError
        If the operands are not computed levels of one type.
    """
    operands = [group.data_input(name) for name in group.node.inputs]
    group.require_one_type(*operands)
    graph = quantisation.with_types(group.graph, *operands, group.kind)
    product = QProduct(pairs=operator.pairs).of_type(group.kind.dtype)
    node = standing_for(group.node, product, *(each.name for each in operands)).with_(output=group.quantize.output)
    return graph, (group.clamped(node).with_operator(exact=not group.clamps),)
