"""A table becomes the end of the layer before it: ``QTable(QConv(x))`` becomes ``QConv(x)`` with a table."""

import numpy as np

from tilewright.compiler.graph.graph import Graph, Node
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.compiler.passes.fuse.fuse_residual import FUSABLE, both_exact


class FuseTable(Pass):
    """Replace ``QTable(op(x))`` by ``op(x)`` with a table, and tables of anything else by a QPass with one.

    Tables of tables become one. A table behind a max pooling moves before it if it is monotonic.
    """

    def apply(self, graph: Graph) -> Graph:
        for output in [node.output for node in graph.nodes if node.op == "QTable"]:
            node = graph.producer(output)
            if node is not None and node.op == "QTable":
                graph = self._fuse(graph, node)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if node.op == "QTable"]:
            raise PassError(f"Tables must all be fused, not left as {', '.join(left)}")

    @staticmethod
    def _fuse(graph: Graph, node: Node) -> Graph:
        table = np.clip(node.attrs["table"], node.attrs["low"], node.attrs["high"]).astype(np.int8)
        source = graph.producer(node.inputs[0])
        alone = source is not None and graph.only_reader(source.output) is node
        if source is not None and alone and source.op == "QMaxPool" and np.all(np.diff(table.astype(int)) >= 0):
            return _fuse_before_pool(graph, source, node, table)
        if source is not None and alone and source.op in (*FUSABLE, "QConvTranspose") and "pool" not in source.attrs:
            return graph.replaced((source, node), _joined(source, node, table))
        return graph.replaced((node,), _lone(node, table))


def _joined(source: Node, node: Node, table: np.ndarray) -> Node:
    attrs = {"own_output": source.output, **source.attrs, "table": table, "exact": both_exact(source, node)}
    if "table" in source.attrs:
        attrs["table"] = table[source.attrs["table"].astype(int) + 128]
    return source.with_(output=node.output, onnx_nodes=source.onnx_nodes + node.onnx_nodes, attrs=attrs)


def _lone(node: Node, table: np.ndarray) -> Node:
    return Node("QPass", node.inputs, node.output, {"low": -128, "high": 127, "own_output": node.inputs[0],
                                                    "table": table, "exact": both_exact(node)}, node.onnx_nodes)


def _fuse_before_pool(graph: Graph, pool: Node, node: Node, table: np.ndarray) -> Graph:
    """Return ``graph`` with pooling of a table instead of a table of pooling."""
    bounded = np.clip(np.arange(-128, 128), pool.attrs["low"], pool.attrs["high"]) + 128
    inner = f"{node.output}:unpooled"
    before = graph.tensors[pool.inputs[0]]
    after = graph.tensors[node.output]
    types = {**graph.tensors, inner: after.__class__(inner, before.shape, after.dtype, after.scale, after.zero_point,
                                                     after.unsigned)}
    mapped = Node("QTable", pool.inputs, inner, {"low": -128, "high": 127, "table": table[bounded],
                                                 "exact": both_exact(node)}, node.onnx_nodes)
    pooled = pool.with_(inputs=(inner,), output=node.output).with_attrs(low=-128, high=127)
    nodes = tuple(new for each in graph.nodes if each is not pool
                  for new in ((mapped, pooled) if each is node else (each,)))
    return FuseTable._fuse(graph.with_(nodes=nodes, tensors=types), mapped)
