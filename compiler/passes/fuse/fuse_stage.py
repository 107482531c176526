"""The stage of an extension becomes the end of the layer before it: ``QStage(QConv(x))`` becomes one QConv."""

from dataclasses import replace

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import OneLayer, QPass, QStage
from tilewright.compiler.graph.rewrite import Pass, PassError

__all__ = ["FuseStage"]


class FuseStage(Pass):
    """Replace ``QStage(op(x))`` by ``op(x)`` with a stage, and stages of anything else by a QPass with one.

    A layer that adds, pools or has a table already takes none.
    """

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            operator = node.operator
            if not isinstance(operator, QStage):
                continue
            source = graph.producer(node.inputs[0])
            own = source.operator if source is not None and graph.only_reader(source.output) is node else None
            if source is not None and isinstance(own, OneLayer) \
                    and own.table is None and own.residual is None and own.pool is None:
                fused = replace(own, table=operator.parameters, stage=operator.use,
                                own_output=own.own_output or source.output)
                graph = graph.replaced((source, node), source.with_(
                    operator=fused, output=node.output, onnx_nodes=source.onnx_nodes + node.onnx_nodes))
            else:
                lone = QPass(own_output=node.inputs[0], table=operator.parameters, stage=operator.use)
                graph = graph.replaced((node,), node.with_(operator=lone))
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if isinstance(node.operator, QStage)]:
            raise PassError(f"Stages must all be fused, not left as {', '.join(left)}")
