"""A table becomes the end of the layer before it: ``QTable(QConv(x))`` becomes ``QConv(x)`` with a table."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import OneLayer, QMaxPool, QPass, QTable, TakesTable
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass, PassError

__all__ = ["FuseTable"]


_UNCHANGED = np.arange(-128, 128)
"""Results of a table that does nothing, by ascending int8 value."""


class FuseTable(Pass):
    """Replace ``QTable(op(x))`` by ``op(x)`` with a table, and tables of anything else by a QPass with one.

    Tables of tables become one. A table behind a max pooling moves before it if it is monotonic.
    """

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, QTable):
                now = graph.producer(node.output)
                if now is not None and isinstance(now.operator, QTable):
                    graph = _fused(graph, now, now.operator)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if isinstance(node.operator, QTable)]:
            raise PassError(f"Tables must all be fused, not left as {', '.join(left)}")


def _fused(graph: Graph, node: Node, operator: QTable) -> Graph:
    table = np.clip(operator.table, operator.low, operator.high).astype(np.int8)
    source = graph.producer(node.inputs[0])
    if source is not None and graph.only_reader(source.output) is node:
        own = source.operator
        if isinstance(own, QMaxPool) and np.all(np.diff(table.astype(int)) >= 0):
            return _fused_before_pool(graph, source, own, node, replace(operator, table=table))
        if isinstance(own, TakesTable) and not (isinstance(own, OneLayer) and own.pool is not None):
            return graph.replaced((source, node), _joined(source, own, node, replace(operator, table=table)))
    lone = QPass(own_output=node.inputs[0], table=table, exact=operator.exact)
    return graph.replaced((node,), Node(lone, node.inputs, node.output, node.onnx_nodes))


def _joined(source: Node, own: TakesTable, node: Node, operator: QTable) -> Node:
    """Return a source with the table behind it; with none where that changes nothing, as behind a calibrated factor."""
    table = operator.table if own.table is None else operator.table[own.table.astype(int) + 128]
    changed = None if np.array_equal(table, _UNCHANGED) else table
    fused = replace(own, table=changed, own_output=own.own_output or source.output,
                    exact=own.exact and operator.exact)
    return source.with_(operator=fused, output=node.output, onnx_nodes=source.onnx_nodes + node.onnx_nodes)


def _fused_before_pool(graph: Graph, pool: Node, own: QMaxPool, node: Node, operator: QTable) -> Graph:
    """Return ``graph`` with pooling of a table instead of a table of pooling."""
    bounded = np.clip(np.arange(-128, 128), own.low, own.high) + 128
    before, after = graph.tensors[pool.inputs[0]], graph.tensors[node.output]
    inner = replace(after, name=f"{node.output}:unpooled", shape=before.shape)
    table = QTable(table=operator.table[bounded], exact=operator.exact)
    mapped = Node(table, pool.inputs, inner.name, node.onnx_nodes)
    pooled = pool.with_(operator=replace(own, low=-128, high=127), inputs=(inner.name,), output=node.output)
    return _fused(graph.with_tensors(inner).replaced((pool, node), mapped, pooled), mapped, table)
