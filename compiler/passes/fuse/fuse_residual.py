"""An addition becomes the end of the layer before it: ``QAdd(QConv(x), r)`` becomes ``QConv(x)`` with residual r."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import BadModelError
from tilewright.compiler.graph.graph import Graph, Node
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.compiler.graph.scales import tensor_info
from tilewright.compiler.network.layers import Residual
from tilewright.compiler.network.reference import residual_table

FUSABLE = ("QConv", "QAverage", "QPass")
"""Operators that become layers; what follows them may join theirs."""


class FuseResidual(Pass):
    """Replace ``QAdd(op(x), r)``, and ``QAdd(r, op(x))`` where that is the same, by ``op(x)`` with a residual.

    ONNX Runtime's addition rounds its two operands differently, and the datapath's first operand is the
    layer's own value. So the operands change places only if no pair of int8 values shows it. An addition that
    nothing can take becomes a QPass of its first operand.

    The new layer stands at the place of the addition, behind both operands.
    """

    def apply(self, graph: Graph) -> Graph:
        for add in [node for node in graph.nodes if node.op == "QAdd"]:
            graph = self._fuse(graph, add)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if node.op == "QAdd"]:
            raise PassError(f"Additions must all be fused, not left as {', '.join(left)}")

    @staticmethod
    def _fuse(graph: Graph, add: Node) -> Graph:
        first, second = add.inputs
        residual = _residual(graph, add)
        if (own := _taker(graph, first)) is not None:
            return graph.replaced((own, add), _joined(own, add, residual))
        if (own := _taker(graph, second)) is not None:
            swapped = replace(residual, tensor=first, scale_a=residual.scale_b, scale_b=residual.scale_a,
                              zero_a=residual.zero_b, zero_b=residual.zero_a)
            if np.array_equal(residual_table(swapped), residual_table(residual).T):
                return graph.replaced((own, add), _joined(own, add, swapped))
        attrs = {"low": -128, "high": 127, "residual": residual, "exact": both_exact(add)}
        alone = Node("QPass", (first, second), add.output, attrs, add.onnx_nodes)
        return graph.replaced((add,), alone)


def both_exact(*nodes: Node) -> bool:
    """Tell whether ONNX Runtime's result of all nodes is reproducible."""
    return all(node.attrs.get("exact", True) for node in nodes)


def _taker(graph: Graph, value: str) -> Node | None:
    """Return the operator that computes ``value`` and can take the addition on."""
    node = graph.producer(value)
    if node is None or node.op not in FUSABLE or "residual" in node.attrs or graph.only_reader(value) is None:
        return None
    return node


def _residual(graph: Graph, add: Node) -> Residual:
    a, b, out = (tensor_info(graph.tensors[name]) for name in (*add.inputs, add.output))
    residual = Residual(
        tensor=b.name, scale_a=np.float32(a.scale / out.scale), scale_b=np.float32(b.scale / out.scale),
        zero_a=a.zero_point, zero_b=b.zero_point, zero_out=out.zero_point,
        low=add.attrs["low"], high=add.attrs["high"], unsigned=out.unsigned)
    try:
        residual_table(residual)
    except ValueError as error:
        raise BadModelError(f"Scales of node {add.name!r} are too far apart: {error}") from error
    return residual


def _joined(own: Node, add: Node, residual: Residual) -> Node:
    attrs = {**own.attrs, "residual": residual, "own_output": own.output, "exact": both_exact(own, add)}
    return own.with_(inputs=(*own.inputs, residual.tensor), output=add.output,
                     onnx_nodes=own.onnx_nodes + add.onnx_nodes, attrs=attrs)
