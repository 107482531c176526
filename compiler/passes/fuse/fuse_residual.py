"""An addition becomes the end of the layer before it: ``QAdd(QConv(x), r)`` becomes ``QConv(x)`` with residual r."""

import math
from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import BadModelError
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import OneLayer, QAdd, QConv, QPass, QScale
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.compiler.graph.scales import tensor_info
from tilewright.compiler.network.layers import NEGATED_ZERO, Residual
from tilewright.compiler.network.reference import residual_table

__all__ = ["FuseResidual", "FuseResidualBehindTable"]


class FuseResidual(Pass):
    """Replace ``QAdd(op(x), r)`` and ``QAdd(r, op(x))`` by ``op(x)`` with a residual.

    ONNX Runtime's addition rounds its two operands differently. So the operands change places only if no pair of int8
    values shows it; else the layer's own value is the second. An addition that nothing can take becomes a QPass of its
    first operand.

    Additions take some cycles for a vector of sums. So of two that could take one on, that with more products for a sum
    does, as the 3x3 kernel beside the 1x1 kernel of a block's shorter way: its array works meanwhile.

    The new layer stands at the place of the addition, behind both operands.
    """

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, QAdd):
                graph = self._fuse(graph, node, node.operator)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if isinstance(node.operator, QAdd)]:
            raise PassError(f"Additions must all be fused, not left as {', '.join(left)}")

    @staticmethod
    def _fuse(graph: Graph, add: Node, operator: QAdd) -> Graph:
        first, second = add.inputs
        residual = _residual(graph, add, operator)
        takers = _taker(graph, first), _taker(graph, second)
        chosen = max((place for place, taker in enumerate(takers) if taker is not None),
                     key=lambda place: _products(graph, takers[place]), default=None)
        if chosen is not None and (taker := takers[chosen]) is not None:
            joined = residual if chosen == 0 else _swapped(residual, first)
            return graph.replaced((*taker, add), _joined(taker[0], add, operator, joined))
        if first in graph.constants:
            first, second, residual = second, first, _swapped(residual, first)
        alone = Node(QPass(residual=residual, exact=operator.exact), (first, second), add.output, add.onnx_nodes)
        return graph.replaced((add,), alone)


class FuseResidualBehindTable(Pass):
    """Replace an addition alone, one of whose operands ends in a table, by that operator with the addition behind it.

    The datapath then maps the operator's own value before it adds. It follows FuseTable; an addition whose sum is
    mapped too stays alone, as a layer has one table.
    """

    @property
    def says(self) -> str:
        return "An addition joins a layer that has a table: ``QAdd(QTable(QConv(x)), r)`` becomes ``QConv(x)``."

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            own = node.operator
            if isinstance(own, QPass) and own.residual is not None and own.table is None and own.pool is None \
                    and (own.low, own.high) == (-128, 127):
                graph = self._fuse(graph, node, own.residual)
        return graph

    @staticmethod
    def _fuse(graph: Graph, add: Node, residual: Residual) -> Graph:
        first, second = add.inputs
        for value, joined in ((first, residual), (second, _swapped(residual, first))):
            taker = _taker(graph, value)
            own = None if taker is None else taker[0]
            if taker is not None and own is not None and isinstance(own.operator, OneLayer) \
                    and own.operator.table is not None and own.operator.stage is None and own.operator.pool is None:
                assert isinstance(add.operator, QPass)
                operator = replace(own.operator, residual=joined, table_first=True,
                                   exact=own.operator.exact and add.operator.exact)
                return graph.replaced((*taker, add), own.with_(
                    operator=operator, inputs=(*own.inputs, joined.tensor), output=add.output,
                    onnx_nodes=own.onnx_nodes + add.onnx_nodes))
        return graph


def _swapped(residual: Residual, first: str) -> Residual:
    """Return the addition of ``first`` to the second operand: in the other order if no pair of int8 values shows it."""
    swapped = replace(residual, tensor=first, scale_a=residual.scale_b, scale_b=residual.scale_a,
                      zero_a=residual.zero_b, zero_b=residual.zero_a)
    same = np.array_equal(residual_table(swapped), residual_table(residual).T)
    return swapped if same else replace(residual, tensor=first, own_second=True)


def _taker(graph: Graph, value: str) -> tuple[Node, ...] | None:
    """Return the operator that computes ``value`` and can take the addition on; behind it, the QAlias between them.

    The addition may read its operand by another quantisation than its own, or a vector as an image of one pixel, which
    changes no byte.
    """
    node = graph.producer(value)
    aliases: tuple[Node, ...] = ()
    if node is not None and isinstance(node.operator, QAlias) and graph.only_reader(value) is not None \
            and _pixels(graph.tensors[value].shape) == _pixels(graph.tensors[node.inputs[0]].shape):
        aliases, value = (node,), node.inputs[0]
        node = graph.producer(value)
    if node is None or not isinstance(node.operator, OneLayer) or _negated(graph, node) \
            or node.operator.residual is not None or graph.only_reader(value) is None:
        return None
    return node, *aliases


def _products(graph: Graph, taker: tuple[Node, ...] | None) -> int:
    """Return the products in a sum of a convolution with constant weights; 0 of all else."""
    if taker is None or not isinstance(taker[0].operator, QConv):
        return 0
    return sum(math.prod(graph.constants[name].shape[1:]) for name in taker[0].inputs[1:2] if name in graph.constants)


def _pixels(shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return a shape, that of a vector as an image of one pixel."""
    return None if shape is None else (*shape, 1, 1)[:max(len(shape), 4)]


def _negated(graph: Graph, node: Node) -> bool:
    """Tell whether a product comes negated, which its table undoes behind the addition."""
    return isinstance(node.operator, QScale) and graph.tensors[node.inputs[1]].zero_point == NEGATED_ZERO


def _residual(graph: Graph, add: Node, operator: QAdd) -> Residual:
    a, b, out = (tensor_info(graph.tensors[name]) for name in (*add.inputs, add.output))
    residual = Residual(
        tensor=b.name, scale_a=np.float32(a.scale / out.scale), scale_b=np.float32(b.scale / out.scale),
        zero_a=a.zero_point, zero_b=b.zero_point, zero_out=out.zero_point,
        low=operator.low, high=operator.high, unsigned=out.unsigned)
    try:
        residual_table(residual)
    except ValueError as error:
        raise BadModelError(f"Scales of node {add.name!r} are too far apart: {error}") from error
    return residual


def _joined(own: Node, add: Node, operator: QAdd, residual: Residual) -> Node:
    assert isinstance(own.operator, OneLayer)
    fused = replace(own.operator, residual=residual, own_output=own.output,
                    exact=own.operator.exact and operator.exact)
    return own.with_(operator=fused, inputs=(*own.inputs, residual.tensor), output=add.output,
                     onnx_nodes=own.onnx_nodes + add.onnx_nodes)
