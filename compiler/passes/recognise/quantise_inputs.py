"""Quantise an input of the model before it is moved: ``Q(Slice(x))`` becomes ``Slice(Q(x))``.

What moves elements commutes with quantisation. Behind it, it is a move of integers, which may be a matter of addresses,
and the quantisation of the input itself is the host's.
"""

from dataclasses import replace

from tilewright.compiler.graph.graph import Graph, Node
from tilewright.compiler.graph.rewrite import Pass

_MOVES = {"Slice", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"}


class QuantiseInputs(Pass):
    """Replace ``Q(f(g(x)))`` by ``f(g(Q(x)))`` where x is a float input of the model and f and g move."""

    def apply(self, graph: Graph) -> Graph:
        for quantize in [node for node in graph.nodes if node.op == "QuantizeLinear"]:
            chain = _moves_before(graph, quantize)
            if chain:
                graph = _swapped(graph, quantize, chain)
        return graph


def _moves_before(graph: Graph, quantize: Node) -> list[Node]:
    """Return the moves from an input of the model to ``quantize``, in order; none if there is something else."""
    chain: list[Node] = []
    name = quantize.inputs[0]
    while name not in graph.inputs:
        node = graph.producer(name)
        if node is None or node.op not in _MOVES or not graph.all_constant(node.inputs[1:]):
            return []
        chain.insert(0, node)
        name = node.inputs[0]
    scalar = all(graph.constants[each].size == 1 for each in quantize.inputs[1:] if each in graph.constants)
    return chain if scalar and graph.tensors[name].dtype == "float32" else []


def _swapped(graph: Graph, quantize: Node, chain: list[Node]) -> Graph:
    tensors, kind = dict(graph.tensors), graph.tensors[quantize.output]
    source = f"{quantize.output}:unmoved"
    tensors[source] = replace(kind, name=source, shape=tensors[chain[0].inputs[0]].shape)
    new = [quantize.with_(inputs=(chain[0].inputs[0], *quantize.inputs[1:]), output=source)]
    for index, node in enumerate(chain):
        last = index == len(chain) - 1
        output = quantize.output if last else f"{quantize.output}:move {index}"
        tensors[output] = replace(kind, name=output, shape=tensors[node.output].shape)
        new.append(node.with_(inputs=(new[-1].output, *node.inputs[1:]), output=output))
    nodes = [each for node in graph.nodes for each in (new if node is quantize else (node,))]
    read = {name for node in nodes for name in node.inputs} | set(graph.outputs)
    # From the end on, since what reads a move may be a move that nothing reads.
    for node in reversed(chain):
        if node.output not in read:
            nodes.remove(node)
            read = {name for each in nodes for name in each.inputs} | set(graph.outputs)
    return graph.with_(nodes=tuple(nodes), tensors=tensors)
