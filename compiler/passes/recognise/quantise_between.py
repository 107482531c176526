"""Quantise between operators that neither round nor add: ``Q(MaxPool(Relu(DQ(x))))`` gets ``DQ(Q(·))`` in the middle.

All of them are monotonic and so is quantisation, hence they commute: with the scale and zero point of x, quantising
earlier changes nothing. The integer form of onnxruntime.quantization leaves such chains in float where
activations are symmetric, with what follows them: ``Q(AveragePool(Relu(DQ(x))))``. There too the ReLU gives what x can
be, but ONNX Runtime computes in float, and the operator is marked (``rounded``).
"""

from tilewright.compiler.graph.graph import Graph, Node, Tensor
from tilewright.compiler.graph.integer_ops import UNCHANGED_VIEWS
from tilewright.compiler.graph.rewrite import Pass

_EXACT = ("MaxPool", "Relu", "Clip", *UNCHANGED_VIEWS)
_WITHOUT_BOUNDS = ("MaxPool", "Relu", *UNCHANGED_VIEWS)
_COMPUTING = ("Conv", "Gemm", "MatMul", "Add", "AveragePool", "GlobalAveragePool", "ReduceMean")


class QuantiseBetween(Pass):
    """Replace ``g(f(DQ(x)))`` by ``g(DQ(Q(f(DQ(x)))))`` where f and g are exact and g alone reads f.

    And where g computes, and f is no clip; and likewise behind what computes, ``Q(f(g(x)))`` by ``Q(f(DQ(Q(g(x)))))``.
    """

    def apply(self, graph: Graph) -> Graph:
        for output in [node.output for node in graph.nodes if node.op in _EXACT]:
            node = next(node for node in graph.nodes if node.output == output)
            source = graph.producer(node.inputs[0])
            reader = graph.only_reader(node.output)
            if source is None or source.op != "DequantizeLinear" or reader is None \
                    or source.inputs[0] in graph.constants or node.output not in reader.inputs[:2]:
                continue
            if reader.op in _EXACT and reader.inputs[0] == node.output:
                graph = _bridged(graph, source, node, reader, reader)
            elif reader.op in _COMPUTING and node.op in _WITHOUT_BOUNDS:
                graph = _bridged(graph, source, node, reader, reader.with_attrs(rounded=1))
        for output in [node.output for node in graph.nodes if node.op in _COMPUTING]:
            node = next(node for node in graph.nodes if node.output == output)
            chain = _chain(graph, node)
            # A clamp right behind what computes is part of that.
            end = 1 if chain and chain[0].op in ("Relu", "Clip") else 0
            if len(chain) > end + 1 and chain[-1].op == "QuantizeLinear":
                marked = node.with_attrs(rounded=1)
                graph = graph.replaced((node,), marked)
                graph = _bridged(graph, chain[-1], chain[0] if end else marked, chain[end], chain[end])
        return graph


def _chain(graph: Graph, node: Node) -> list[Node]:
    """Return the exact operators behind ``node`` that alone read one another, and what reads the last of them."""
    chain: list[Node] = []
    while (reader := graph.only_reader(node.output)) is not None and reader.inputs[0] == node.output:
        chain.append(reader)
        if reader.op not in _EXACT:
            break
        node = reader
    return chain


def _bridged(graph: Graph, source: Node, first: Node, second: Node, new: Node) -> Graph:
    """Return ``graph`` with the quantisation that ``source`` undoes between two nodes, and ``new`` for the second."""
    integer, real = f"{first.output}:integer", f"{first.output}:real"
    quantize = Node("QuantizeLinear", (first.output, *source.inputs[1:]), integer)
    dequantize = Node("DequantizeLinear", (integer, *source.inputs[1:]), real)
    reading = new.with_(inputs=tuple(real if name == first.output else name for name in new.inputs))
    nodes = [each for node in graph.nodes
             for each in ((quantize, dequantize, reading) if node is second else (node,))]
    quantised = source.output if source.op == "QuantizeLinear" else source.inputs[0]
    shape, dtype = graph.tensors[first.output].shape, graph.tensors[quantised].dtype
    types = {integer: Tensor(integer, shape, dtype), real: Tensor(real, shape, "float32")}
    return graph.with_(nodes=tuple(nodes), tensors={**graph.tensors, **types})
