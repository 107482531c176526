"""Max pooling becomes the end of the layer before it: ``QMaxPool(QConv(x))`` becomes ``QConv(x)`` with a pool."""

from dataclasses import dataclass

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import OneLayer, QMaxPool, QPass
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.compiler.network.layers import MaxPooling
from tilewright.compiler.passes.fuse.fuse_clamp import tightened

__all__ = ["FusePool", "takes_pool"]


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
        for node in graph.nodes:
            if not isinstance(node.operator, QMaxPool):
                continue
            window = node.operator.exact_window
            pool = MaxPooling(kernel=window.kernel, strides=window.strides, pads=window.pads)
            source = graph.producer(node.inputs[0])
            if not self.alone and source is not None and isinstance(source.operator, OneLayer) \
                    and takes_pool(source) and graph.only_reader(source.output) is node:
                fused = tightened(source, source.operator, node, node.operator).with_operator(pool=pool)
                graph = graph.replaced((source, node), fused)
            else:
                alone = QPass(low=node.operator.low, high=node.operator.high, pool=pool)
                graph = graph.replaced((node,), Node(alone, node.inputs, node.output, node.onnx_nodes))
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if isinstance(node.operator, QMaxPool)]:
            raise PassError(f"Max pooling must all be fused, not left as {', '.join(left)}")


def takes_pool(source: Node) -> bool:
    """Tell whether a node becomes a layer that may end with max pooling."""
    operator = source.operator
    return isinstance(operator, OneLayer) and operator.residual is None and operator.pool is None
