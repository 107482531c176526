"""Quantise an input of the model before it is moved: ``Q(Slice(x))`` becomes ``Slice(Q(x))``.

What moves elements commutes with quantisation, and so does a Pad, whose constant becomes a level. Behind it, it is a
move of integers, which may be a matter of addresses, and the quantisation of the input itself is the host's.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxPad, OnnxQuantizeLinear, OnnxSlice, OnnxTranspose, OnnxView
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["QuantiseInputs"]

_Move = OnnxSlice | OnnxView | OnnxTranspose | OnnxPad


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
        if node is None or not isinstance(node.operator, _Move) or not graph.all_constant(
                each for each in node.inputs[1:] if each) or not _is_of_levels(graph, quantise, node):
            return []
        chain.append(node)
        name = node.inputs[0]
    chain.reverse()
    scalar = all(graph.constants[each].size == 1 for each in quantise.inputs[1:] if each in graph.constants)
    return chain if scalar and graph.tensors[name].dtype == "float32" else []


def _is_of_levels(graph: Graph, quantise: Node, node: Node) -> bool:
    """Tell whether a move is one of integers too: a Pad needs a constant, and its quantisation must be known."""
    operator = node.operator
    if not isinstance(operator, OnnxPad):
        return True
    return operator.mode == "constant" and len(node.inputs) > 1 and graph.all_constant(
        each for each in quantise.inputs[1:] if each) and (
            len(node.inputs) < 3 or not node.inputs[2] or graph.constants[node.inputs[2]].size == 1)


def _level(graph: Graph, quantise: Node, node: Node, pad: OnnxPad) -> np.ndarray:
    """Return the level of what a Pad puts around."""
    name = node.inputs[2] if len(node.inputs) > 2 else ""
    value = np.float32(graph.constants[name].item() if name else pad.value)
    scale, *zero = (graph.constants[each].reshape(-1)[0] for each in quantise.inputs[1:] if each)
    dtype = graph.tensors[quantise.output].dtype or "uint8"
    bounds = np.iinfo(dtype)
    return np.array(np.clip(np.rint(value / scale) + int(zero[0] if zero else 0), bounds.min, bounds.max), dtype)


def _swapped(graph: Graph, quantise: Node, chain: list[Node]) -> Graph:
    kind = graph.tensors[quantise.output]
    source = replace(kind, name=f"{quantise.output}:unmoved", shape=graph.tensors[chain[0].inputs[0]].shape)
    tensors = [source]
    new = [quantise.with_(inputs=(chain[0].inputs[0], *quantise.inputs[1:]), output=source.name)]
    for index, node in enumerate(chain):
        last = index == len(chain) - 1
        output = quantise.output if last else f"{quantise.output}:move {index}"
        tensors.append(replace(kind, name=output, shape=graph.tensors[node.output].shape))
        rest = node.inputs[1:]
        if isinstance(node.operator, OnnxPad):
            level = f"{output}:level around"
            graph = graph.with_constants({level: _level(graph, quantise, node, node.operator)})
            rest = (rest[0], level, *rest[2:])
        new.append(node.with_(inputs=(new[-1].output, *rest), output=output))
    graph = graph.with_tensors(*tensors).replaced((quantise,), *new)
    # From the end on, since what reads a move may be a move that nothing reads.
    for node in reversed(chain):
        if not graph.is_read(node.output):
            graph = graph.removed(node)
    return graph
