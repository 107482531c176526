"""Max pooling becomes the end of the layer before it: ``QMaxPool(QConv(x))`` becomes ``QConv(x)`` with a pool."""

from dataclasses import dataclass

from tilewright.compiler.graph.graph import Graph, Node
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.compiler.network.layers import MaxPool
from tilewright.compiler.passes.fuse.fuse_clamp import tightened
from tilewright.compiler.passes.fuse.fuse_residual import FUSABLE


@dataclass(frozen=True, slots=True)
class FusePool(Pass):
    """Replace ``QMaxPool(op(x))`` by ``op(x)`` with a pool, and max pooling of anything else by a QPass.

    A clamp behind the pooling moves before it: both are monotonic. The datapath does not add and pool in one go.

    Attributes
    ----------
    alone : bool
        Make every max pooling a QPass, to measure what the fusion is worth.
    """

    alone: bool = False

    def apply(self, graph: Graph) -> Graph:
        for node in [node for node in graph.nodes if node.op == "QMaxPool"]:
            pool = MaxPool(kernel=node.attrs["kernel"], strides=node.attrs["strides"], pads=node.attrs["pads"])
            source = graph.producer(node.inputs[0])
            if not self.alone and source is not None and _can_take(graph, source, node):
                graph = graph.replaced((source, node), tightened(source, node).with_attrs(pool=pool))
            else:
                bounds = {name: node.attrs[name] for name in ("low", "high")}
                alone = Node("QPass", node.inputs, node.output, {**bounds, "pool": pool}, node.onnx_nodes)
                graph = graph.replaced((node,), alone)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if node.op == "QMaxPool"]:
            raise PassError(f"Max pooling must all be fused, not left as {', '.join(left)}")


def _can_take(graph: Graph, source: Node, pool: Node) -> bool:
    return (source.op in FUSABLE and not source.attrs.keys() & {"residual", "pool"}
            and graph.only_reader(source.output) is pool)
