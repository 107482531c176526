"""Quantise between operators that neither round nor add: ``Q(MaxPool(Relu(DQ(x))))`` gets ``DQ(Q(·))`` in the middle.

All of them are monotonic and so is quantisation, hence they commute: with the scale and zero point of x, quantising
earlier changes nothing. The integer form of onnxruntime.quantization leaves such chains in float where
activations are symmetric.
"""

from tilewright.compiler.graph import Graph, Node, Tensor
from tilewright.compiler.passes.base import Pass
from tilewright.compiler.passes.integer_ops import UNCHANGED_VIEWS

_EXACT = ("MaxPool", "Relu", "Clip", *UNCHANGED_VIEWS)


class QuantiseBetween(Pass):
    """Replace ``g(f(DQ(x)))`` by ``g(DQ(Q(f(DQ(x)))))`` where f and g are exact and g alone reads f."""

    def apply(self, graph: Graph) -> Graph:
        for output in [node.output for node in graph.nodes if node.op in _EXACT]:
            node = next(node for node in graph.nodes if node.output == output)
            source = graph.producer(node.inputs[0])
            reader = graph.only_reader(node.output)
            if (source is not None and source.op == "DequantizeLinear"
                    and reader is not None and reader.op in _EXACT and reader.inputs[0] == node.output):
                graph = _bridged(graph, source, node, reader)
        return graph


def _bridged(graph: Graph, source: Node, first: Node, second: Node) -> Graph:
    """Return ``graph`` with the quantisation that ``source`` undoes between two nodes."""
    integer, real = f"{first.output}:integer", f"{first.output}:real"
    quantize = Node("QuantizeLinear", (first.output, *source.inputs[1:]), integer)
    dequantize = Node("DequantizeLinear", (integer, *source.inputs[1:]), real)
    reading = second.with_(inputs=(real, *second.inputs[1:]))
    nodes = [new for node in graph.nodes
             for new in ((quantize, dequantize, reading) if node is second else (node,))]
    shape, dtype = graph.tensors[first.output].shape, graph.tensors[source.inputs[0]].dtype
    types = {integer: Tensor(integer, shape, dtype), real: Tensor(real, shape, "float32")}
    return graph.with_(nodes=tuple(nodes), tensors={**graph.tensors, **types})
