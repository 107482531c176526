"""A ReLU or clip becomes bounds of the operator before it: ``QClamp(op(x))`` becomes a tighter ``op(x)``."""

import numpy as np

from tilewright.compiler.graph.graph import Graph, Node
from tilewright.compiler.graph.rewrite import Pass, PassError


class FuseClamp(Pass):
    """Replace ``QClamp(op(x))`` by ``op(x)``, and a clamp of anything else by a QPass with its bounds.

    The operator's result must be read by the clamp alone.
    """

    def apply(self, graph: Graph) -> Graph:
        for clamp in [node for node in graph.nodes if node.op == "QClamp"]:
            source = graph.producer(clamp.inputs[0])
            if source is not None and "low" in source.attrs and graph.only_reader(source.output) is clamp:
                graph = graph.replaced((source, clamp), tightened(source, clamp))
            else:
                graph = graph.replaced((clamp,), clamp.with_(op="QPass"))
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if node.op == "QClamp"]:
            raise PassError(f"Clamps must all be fused, not left as {', '.join(left)}")


def tightened(first: Node, second: Node) -> Node:
    """Return ``first`` computing what ``second`` does: its bounds followed by those of ``second``."""
    low, high = second.attrs["low"], second.attrs["high"]
    if "table" in first.attrs and first.op != "QTable":
        # What the bounds would hold comes before the table.
        new: dict[str, object] = {"table": np.clip(first.attrs["table"], low, high)}
        return first.with_(output=second.output, onnx_nodes=first.onnx_nodes + second.onnx_nodes,
                           attrs={**first.attrs, **new})
    new = {name: min(max(first.attrs[name], low), high) for name in ("low", "high")}
    return first.with_(output=second.output, onnx_nodes=first.onnx_nodes + second.onnx_nodes,
                       attrs={**first.attrs, **new})
