"""ONNX's integer operators (QOperator form) become ours: ``QLinearConv(x, …)`` becomes ``QConv(x, …)``."""

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Node, Tensor
from tilewright.compiler.graph.integer_moves import MOVES, move_node
from tilewright.compiler.graph.integer_ops import (
    UNCHANGED_VIEWS,
    moved_type,
    moving_node,
    weight_layout,
    weighted_node,
    window_attrs,
    with_bounds,
)
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.passes.recognise.expand_qlinear import expanded
from tilewright.compiler.passes.recognise.infer_shapes import inferred

_QLINEAR = ("QLinearConv", "QLinearMatMul", "QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearGlobalAveragePool")
_ON_INTEGERS = ("MaxPool", "Relu", "Clip", *UNCHANGED_VIEWS, *MOVES)


class RecogniseQOperators(Pass):
    """Replace QLinear operators, and MaxPool, Relu, Clip and reshapes of integers, by our integer operators.

    QLinear operators that the datapath does not compute become the host core's: as they are, or taken apart.
    """

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if node.op in _QLINEAR:
                try:
                    graph, new = self._recognise(graph, node)
                    inferred(graph, new)
                    graph = graph.replaced((node,), new)
                except UnsupportedNodeError as error:
                    graph = _left(graph, node, error.reason)
            elif node.op in _ON_INTEGERS and graph.tensors[node.inputs[0]].dtype in quantisation.INTEGERS:
                try:
                    graph, new = self._recognise_on_integers(graph, node)
                    inferred(graph, new)
                    graph = graph.replaced((node,), new)
                except UnsupportedNodeError as error:
                    graph = _interpolated(graph, node, error.reason) if node.op in ("Resize", "Upsample") else \
                        graph.replaced((node,), node.with_(reason=error.reason))
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if node.op in _QLINEAR and not node.reason]:
            raise PassError(f"QLinear operators must all be replaced, not left without a reason as {', '.join(left)}")

    @staticmethod
    def _recognise(graph: Graph, node: Node) -> tuple[Graph, Node]:
        i = (*node.inputs, *("",) * (9 - len(node.inputs)))
        if node.attrs.get("channels_last", 0):
            raise UnsupportedNodeError(node.name, node.op, "its tensors are NHWC", "export it with NCHW tensors")
        first = {"QGemm": 7, "QLinearAveragePool": 3, "QLinearGlobalAveragePool": 3}.get(node.op, 6)
        output = i[first:first + 2]
        if not output[0]:
            raise UnsupportedNodeError(node.name, node.op, "its output is float", "quantise the output too")
        types = [quantisation.activation(graph, node, i[0], *i[1:3]),
                 quantisation.activation(graph, node, node.output, *output)]
        dtype = types[1].dtype
        if node.op == "QLinearAdd":
            for operand in (i[0], i[3]):
                if operand in graph.constants:
                    raise UnsupportedNodeError(node.name, node.op, "one operand is a constant", "fold it into a bias")
            types.append(quantisation.activation(graph, node, *i[3:6]))
            new = with_bounds("QAdd", node, (i[0], i[3]), dtype)
        elif node.op in ("QLinearConv", "QGemm", "QLinearMatMul"):
            bias = {"QLinearConv": i[8], "QGemm": i[6], "QLinearMatMul": ""}[node.op]
            axis, attrs = weight_layout(node, bool(bias))
            packed = quantisation.weights(graph, node, i[3], i[4], i[5], axis)
            values = quantisation.constant(graph, node, bias, "bias") if bias else None
            graph, new = weighted_node(graph, node, i[0], dtype, packed, values, **attrs)
        else:
            window = window_attrs(node) if node.op == "QLinearAveragePool" else {}
            new = with_bounds("QAverage", node, (i[0],), dtype, **window)
        if len({tensor.dtype for tensor in types}) > 1:
            raise UnsupportedNodeError(node.name, node.op, "its tensors are int8 and uint8 mixed",
                                       "quantise all activations to one type")
        return quantisation.with_types(graph, *types), new

    @staticmethod
    def _recognise_on_integers(graph: Graph, node: Node) -> tuple[Graph, Node]:
        x = node.inputs[0]
        dtype = graph.tensors[x].dtype
        low, high = None, None
        if node.op in MOVES:
            inputs = node.inputs if node.op == "Concat" else node.inputs[:1]
            if any(name in graph.constants for name in inputs):
                raise UnsupportedNodeError(node.name, node.op, "one of its inputs is a constant", "fold it")
            value = 0
            if node.op == "Pad" and len(node.inputs) > 2 and node.inputs[2]:
                value = int(quantisation.number(graph, node, node.inputs[2], "value"))
            return graph, move_node(graph, node, inputs, value)
        if node.op == "Relu":
            # On integers, ONNX's Relu knows of no zero point.
            low = 0
        elif node.op == "Clip":
            low, high = (
                int(quantisation.number(graph, node, name, "bound")) if name else None
                for name in (*node.inputs[1:], "", "")[:2])
        new = moving_node(graph, node, x, dtype, low, high)
        kind = moved_type(graph, x, node.output)
        if not kind.quantised and graph.tensors[node.output].quantised:
            return graph, new   # what reads the result has told already
        return quantisation.with_types(graph, kind), new


def _left(graph: Graph, node: Node, reason: str) -> Graph:
    """Return the graph with a QLinear operator for the host core."""
    if node.op not in KERNELS:
        return expanded(graph, node, reason)
    i = node.inputs
    try:
        graph = quantisation.with_types(graph, quantisation.activation(graph, node, i[0], *i[1:3]),
                                        quantisation.activation(graph, node, node.output, *i[6:8]))
    except UnsupportedNodeError as error:
        reason = error.reason
    return graph.replaced((node,), node.with_(reason=reason))


def _interpolated(graph: Graph, node: Node, reason: str) -> Graph:
    """Return the graph with a Resize of integers in floats: DequantizeLinear and QuantizeLinear of a scale of one."""
    dtype = graph.tensors[node.output].dtype or "uint8"
    names = [f"{node.output}:{what}" for what in ("before", "behind", "one", "zero")]
    before, behind, one, zero = names
    types = {name: Tensor(name, graph.tensors[source].shape, "float32")
             for name, source in ((before, node.inputs[0]), (behind, node.output))}
    nodes = (Node("DequantizeLinear", (node.inputs[0], one, zero), before, {}, (), reason),
             node.with_(inputs=(before, *node.inputs[1:]), output=behind, reason=reason),
             Node("QuantizeLinear", (behind, one, zero), node.output, {}, (), reason))
    graph = graph.with_(nodes=tuple(new for each in graph.nodes for new in (nodes if each is node else (each,))),
                        tensors={**graph.tensors, **types})
    return graph.with_constants({one: np.ones((), np.float32), zero: np.zeros((), dtype)})
