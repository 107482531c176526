"""A ReLU or clip becomes bounds of the operator before it: ``QClamp(op(x))`` becomes a tighter ``op(x)``."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import Bounded, QClamp, QPass, TakesTable
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass, PassError

__all__ = ["FuseClamp", "tightened"]


class FuseClamp(Pass):
    """Replace ``QClamp(op(x))`` by ``op(x)``, and a clamp of anything else by a QPass with its bounds.

    The operator's result must be read by the clamp alone.
    """

    def apply(self, graph: Graph) -> Graph:
        for clamp in graph.nodes:
            if not isinstance(clamp.operator, QClamp):
                continue
            source = graph.producer(clamp.inputs[0])
            if source is not None and isinstance(source.operator, Bounded) \
                    and graph.only_reader(source.output) is clamp:
                graph = graph.replaced((source, clamp), tightened(source, source.operator, clamp, clamp.operator))
            else:
                bounds = QPass(low=clamp.operator.low, high=clamp.operator.high)
                graph = graph.replaced((clamp,), clamp.with_(operator=bounds))
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if isinstance(node.operator, QClamp)]:
            raise PassError(f"Clamps must all be fused, not left as {', '.join(left)}")


def tightened(first: Node, own: Bounded, second: Node, bounds: Bounded) -> Node:
    """Return ``first`` with the effect of ``second``: its bounds followed by those of ``second``.

    ``own`` and ``bounds`` are the operators of the two.
    """
    low, high = bounds.low, bounds.high
    if isinstance(own, TakesTable) and own.table is not None:
        # What the bounds would hold comes before the table.
        new: Bounded = replace(own, table=np.clip(own.table, low, high))
    else:
        new = replace(own, low=min(max(own.low, low), high), high=min(max(own.high, low), high))
    return first.with_(operator=new, output=second.output, onnx_nodes=first.onnx_nodes + second.onnx_nodes)
