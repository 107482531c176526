"""The second power as a product, as ONNX Runtime computes it (pow.cc): a function of floats is 1,000 times as slow."""

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxMul

__all__ = ["squared"]


def squared(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with a Pow of float32 by the constant 2 as a Mul; None for other powers."""
    x, exponent = node.inputs
    value, known = graph.constants.get(exponent), graph.tensors.get(x)
    if value is None or value.size != 1 or float(value.reshape(())) != 2 or known is None or known.shape is None \
            or known.dtype != "float32" or value.ndim > len(known.shape):
        return None
    return graph.replaced((node,), node.with_(operator=OnnxMul(), inputs=(x, x)))
