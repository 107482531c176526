"""Quantisations between a normalisation of groups of channels and what reshapes them are left out: they change nothing.

What is reshaped has levels, and the normal form states them before and behind each Reshape. Levels that are reshaped
stand for what the reshaped ones do.
"""

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxDequantizeLinear, OnnxQuantizeLinear, OnnxReshape
from tilewright.compiler.passes.recognise.normalisations.taken_apart import of_groups

__all__ = ["with_groups_in_float"]


def with_groups_in_float(graph: Graph) -> Graph:
    """Return the graph without them, where an InstanceNormalization of groups is seen then."""
    for output in [each.output for each in graph.nodes if each.op == "InstanceNormalization"]:
        changed = _behind(_before(graph, output), output)
        node = changed.producer(output)
        if changed is not graph and node is not None and of_groups(changed, node) is not None:
            graph = changed.without_unread(lambda each: not isinstance(
                each.operator, OnnxDequantizeLinear | OnnxQuantizeLinear))
    return graph


def _before(graph: Graph, output: str) -> Graph:
    """Return the graph with a normalisation that reads the floats of a Reshape, not these as levels and back."""
    node = graph.producer(output)
    assert node is not None
    pair = _pair(graph, graph.producer(node.inputs[0]))
    reshape = graph.producer(pair[0].inputs[0]) if pair is not None else None
    if pair is None or reshape is None or not isinstance(reshape.operator, OnnxReshape) \
            or not _same(graph, graph.producer(reshape.inputs[0]), pair[0]):
        return graph
    return graph.replaced((node,), node.with_(inputs=(reshape.output, *node.inputs[1:])))


def _behind(graph: Graph, output: str) -> Graph:
    """Return the graph with a Reshape that reads a normalisation's floats, not these as levels and back."""
    levels = graph.only_reader(output)
    floats = graph.only_reader(levels.output) if levels is not None else None
    pair = _pair(graph, floats)
    reshape = graph.only_reader(pair[1].output) if pair is not None else None
    if pair is None or reshape is None or not isinstance(reshape.operator, OnnxReshape) \
            or not _same(graph, graph.only_reader(reshape.output), pair[0]):
        return graph
    return graph.replaced((*pair, reshape), reshape.with_(inputs=(output, *reshape.inputs[1:])))


def _pair(graph: Graph, floats: Node | None) -> tuple[Node, Node] | None:
    """Return a QuantizeLinear and the DequantizeLinear behind it, which is ``floats``; None for anything else."""
    levels = graph.producer(floats.inputs[0]) if floats is not None and floats.inputs else None
    if floats is None or levels is None or not isinstance(floats.operator, OnnxDequantizeLinear) \
            or not isinstance(levels.operator, OnnxQuantizeLinear) or not _same(graph, floats, levels):
        return None
    return levels, floats


def _same(graph: Graph, one: Node | None, other: Node) -> bool:
    """Tell whether a node quantises or dequantises by the same constants as another."""
    if one is None or not isinstance(one.operator, OnnxDequantizeLinear | OnnxQuantizeLinear):
        return False
    numbers = [[graph.constants.get(name) for name in each.inputs[1:]] for each in (one, other)]
    return len(numbers[0]) == len(numbers[1]) and all(
        left is not None and right is not None and left.dtype == right.dtype and left.size == 1
        and np.array_equal(left, right) for left, right in zip(*numbers, strict=True))
