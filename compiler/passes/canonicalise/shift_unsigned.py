"""uint8 activations become int8: every value, zero point and bound is 128 less, and every sum is the same."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import Bounded, QTable
from tilewright.compiler.graph.move_operators import QAlias, QPad
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass, PassError

__all__ = ["ShiftUnsigned"]

_SHIFT = 128


class ShiftUnsigned(Pass):
    """Replace each quantised uint8 tensor by an int8 one, marked ``unsigned``; what only was of another type is one."""

    def apply(self, graph: Graph) -> Graph:
        shifted = {
            name: replace(tensor, dtype="int8", zero_point=tensor.zero_point - _SHIFT, unsigned=True)
            for name, tensor in graph.tensors.items() if tensor.dtype == "uint8" and tensor.zero_point is not None}

        def shift(node: Node) -> Node:
            operator = node.operator
            if node.output in shifted and isinstance(operator, QPad):
                return node.with_(operator=replace(operator, value=operator.value - _SHIFT))
            if node.output in shifted and isinstance(operator, Bounded):
                return node.with_(operator=replace(operator, low=operator.low - _SHIFT, high=operator.high - _SHIFT))
            return node

        stored = {name: (graph.constants[name].astype(np.int16) - _SHIFT).astype(np.int8)
                  for name in shifted if name in graph.constants}
        graph = graph.mapped(shift).with_tensors(*shifted.values()).with_constants(stored)
        return _without_shifts(_without_copies(graph))

    def ensures(self, graph: Graph) -> None:
        wrong = [node.name for node in graph.nodes if isinstance(node.operator, Bounded)
                 and not -128 <= node.operator.low <= node.operator.high <= 127]
        if wrong:
            raise PassError(f"Bounds must be int8 and in order, not those of {', '.join(wrong)}")


def _without_copies(graph: Graph) -> Graph:
    """Let what reads the same levels, of the same shape and quantisation, under another name read them themselves."""
    for node in graph.nodes:
        if not isinstance(node.operator, QAlias) or node.output in graph.outputs:
            continue
        (source,) = node.inputs
        x, y = graph.tensors[source], graph.tensors[node.output]
        if x.shape == y.shape and x.same_quantisation(y):
            graph = graph.removed(node).replace_all_uses(node.output, source)
    return graph


def _without_shifts(graph: Graph) -> Graph:
    """Let what makes levels make those of an output, where a table only gave them as the other type.

    A table may also leave the levels as they are and change what they mean, as a factor of half does between scales
    that differ by it. It stays: its maker would compute other levels at the other scale.
    """
    for node in graph.nodes:
        operator = node.operator
        if not isinstance(operator, QTable) or (operator.low, operator.high) != (-_SHIFT, _SHIFT - 1) \
                or not np.array_equal(operator.table, np.arange(-_SHIFT, _SHIFT)):
            continue
        (source,) = node.inputs
        maker = graph.producer(source)
        if maker is not None and source not in graph.outputs and graph.only_reader(source) is node \
                and graph.tensors[source].shape == graph.tensors[node.output].shape \
                and graph.tensors[source].same_quantisation(graph.tensors[node.output]):
            graph = graph.replaced((maker, node), maker.with_(output=node.output,
                                                              onnx_nodes=maker.onnx_nodes + node.onnx_nodes))
    return graph
