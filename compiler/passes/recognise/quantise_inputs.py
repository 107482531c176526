"""Quantise an input of the model before it is moved: ``Q(Slice(x))`` becomes ``Slice(Q(x))``.

What moves elements commutes with quantisation. Behind it, it is a move of integers, which may be a matter of addresses,
and the quantisation of the input itself is the host's.
"""

from dataclasses import replace

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxQuantizeLinear, OnnxSlice, OnnxTranspose, OnnxView
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["QuantiseInputs"]

_Move = OnnxSlice | OnnxView | OnnxTranspose


class QuantiseInputs(Pass):
    """Replace ``Q(f(g(x)))`` by ``f(g(Q(x)))`` where x is a float input of the model and f and g move."""

    def apply(self, graph: Graph) -> Graph:
        for quantise in graph.nodes:
            chain = _moves_before(graph, quantise) if isinstance(quantise.operator, OnnxQuantizeLinear) else []
            if chain:
                graph = _swapped(graph, quantise, chain)
        return graph


def _moves_before(graph: Graph, quantise: Node) -> list[Node]:
    """Return the moves from an input of the model to ``quantise``, in order; none if there is something else."""
    chain: list[Node] = []
    name = quantise.inputs[0]
    while name not in graph.inputs:
        node = graph.producer(name)
        if node is None or not isinstance(node.operator, _Move) or not graph.all_constant(node.inputs[1:]):
            return []
        chain.append(node)
        name = node.inputs[0]
    chain.reverse()
    scalar = all(graph.constants[each].size == 1 for each in quantise.inputs[1:] if each in graph.constants)
    return chain if scalar and graph.tensors[name].dtype == "float32" else []


def _swapped(graph: Graph, quantise: Node, chain: list[Node]) -> Graph:
    kind = graph.tensors[quantise.output]
    source = replace(kind, name=f"{quantise.output}:unmoved", shape=graph.tensors[chain[0].inputs[0]].shape)
    tensors = [source]
    new = [quantise.with_(inputs=(chain[0].inputs[0], *quantise.inputs[1:]), output=source.name)]
    for index, node in enumerate(chain):
        last = index == len(chain) - 1
        output = quantise.output if last else f"{quantise.output}:move {index}"
        tensors.append(replace(kind, name=output, shape=graph.tensors[node.output].shape))
        new.append(node.with_(inputs=(new[-1].output, *node.inputs[1:]), output=output))
    graph = graph.with_tensors(*tensors).replaced((quantise,), *new)
    # From the end on, since what reads a move may be a move that nothing reads.
    for node in reversed(chain):
        if not graph.is_read(node.output):
            graph = graph.removed(node)
    return graph
