"""ONNX's integer operators (QOperator form) become ours: ``QLinearConv(x, …)`` becomes ``QConv(x, …)``."""

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import moved_type, moving_node, standing_for, weight_layout, weighted_node
from tilewright.compiler.graph.integer_operators import QAdd, QAverage
from tilewright.compiler.graph.move_nodes import OnnxMove, move_node
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxClip,
    OnnxConcat,
    OnnxDequantizeLinear,
    OnnxMaxPool,
    OnnxPad,
    OnnxQuantizeLinear,
    OnnxRelu,
    OnnxResize,
    OnnxView,
)
from tilewright.compiler.graph.qlinear_operators import (
    OnnxQGemm,
    OnnxQLinear,
    OnnxQLinearAdd,
    OnnxQLinearAveragePool,
    OnnxQLinearConv,
    OnnxQLinearGlobalAveragePool,
    OnnxQLinearMatMul,
)
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.passes.recognise.expand_qlinear import expanded
from tilewright.compiler.passes.recognise.infer_shapes import inferred
from tilewright.compiler.passes.recognise.interpolate import interpolated

__all__ = ["RecogniseQOperators"]

_QLinear = (OnnxQLinearConv | OnnxQLinearMatMul | OnnxQGemm | OnnxQLinearAdd | OnnxQLinearAveragePool
            | OnnxQLinearGlobalAveragePool)
_OnIntegers = OnnxMaxPool | OnnxRelu | OnnxClip | OnnxView | OnnxMove


class RecogniseQOperators(Pass):
    """Replace QLinear operators, and MaxPool, Relu, Clip and reshapes of integers, by our integer operators.

    QLinear operators that the datapath does not compute become the host core's: as they are, or taken apart.
    """

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            operator = node.operator
            if isinstance(operator, _QLinear):
                try:
                    graph = _with_integers(*_recognised(graph, node, operator), node)
                except UnsupportedNodeError as error:
                    graph = _left(graph, node, operator, error.reason)
            elif isinstance(operator, OnnxResize) and operator.mode != "nearest" \
                    and graph.tensors[node.inputs[0]].dtype in quantisation.INTEGERS:
                graph = _resized(graph, node, operator)
            elif isinstance(operator, _OnIntegers) and graph.tensors[node.inputs[0]].dtype in quantisation.INTEGERS:
                try:
                    graph = _with_integers(*_recognised_on_integers(graph, node), node)
                except UnsupportedNodeError as error:
                    graph = _interpolated(graph, node, error.reason) if isinstance(operator, OnnxResize) else \
                        graph.replaced((node,), node.with_(reason=error.reason))
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if isinstance(node.operator, _QLinear) and not node.reason]:
            raise PassError(f"QLinear operators must all be replaced, not left without a reason as {', '.join(left)}")


def _with_integers(graph: Graph, new: Node, node: Node) -> Graph:
    """Return ``graph`` with ``new`` for ``node``, if the datapath computes it."""
    inferred(graph, new)
    return graph.replaced((node,), new)


def _recognised(graph: Graph, node: Node, operator: _QLinear) -> tuple[Graph, Node]:
    """Return the integer operator for a QLinear operator, and the graph with its types and constants."""
    i = (*node.inputs, *("",) * (9 - len(node.inputs)))
    if operator.channels_last:
        raise UnsupportedNodeError(node.name, node.op, "its tensors are NHWC", "export it with NCHW tensors")
    output = _output_parameters(operator, i)
    if not output[0]:
        raise UnsupportedNodeError(node.name, node.op, "its output is float", "quantise the output too")
    types = [quantisation.activation(graph, node, i[0], *i[1:3]),
             quantisation.activation(graph, node, node.output, *output)]
    dtype = types[1].dtype
    match operator:
        case OnnxQLinearAdd():
            for operand in (i[0], i[3]):
                if operand in graph.constants:
                    raise UnsupportedNodeError(node.name, node.op, "one operand is a constant", "fold it into a bias")
            types.append(quantisation.activation(graph, node, *i[3:6]))
            new = standing_for(node, QAdd().of_type(dtype), i[0], i[3])
        case OnnxQLinearAveragePool():
            average = QAverage(window=operator.window, counts_padding=bool(operator.count_include_pad))
            new = standing_for(node, average.of_type(dtype), i[0])
        case OnnxQLinearGlobalAveragePool():
            new = standing_for(node, QAverage().of_type(dtype), i[0])
        case _:
            bias = i[8] if isinstance(operator, OnnxQLinearConv) else i[6] if isinstance(operator, OnnxQGemm) else ""
            axis, product = weight_layout(node)
            packed = quantisation.weights(graph, node, i[3], i[4], i[5], axis)
            values = quantisation.constant(graph, node, bias, "bias") if bias else None
            graph, new = weighted_node(graph, node, i[0], product.of_type(dtype), packed, values)
    if len({tensor.dtype for tensor in types}) > 1:
        raise UnsupportedNodeError(node.name, node.op, "its tensors mix int8 and uint8",
                                   "quantise all activations to one type")
    return quantisation.with_types(graph, *types), new


def _output_parameters(operator: _QLinear, inputs: tuple[str, ...]) -> tuple[str, str]:
    """Return the names of scale and zero point of the result."""
    match operator:
        case OnnxQGemm():
            return inputs[7], inputs[8]
        case OnnxQLinearAveragePool() | OnnxQLinearGlobalAveragePool():
            return inputs[3], inputs[4]
        case _:
            return inputs[6], inputs[7]


def _recognised_on_integers(graph: Graph, node: Node) -> tuple[Graph, Node]:
    """Return the integer operator for an operator of ONNX's that takes integers, and the graph with its types."""
    x, operator = node.inputs[0], node.operator
    dtype = graph.tensors[x].dtype
    low, high = None, None
    if isinstance(operator, OnnxMove):
        inputs = node.inputs if isinstance(operator, OnnxConcat) else node.inputs[:1]
        if any(name in graph.constants for name in inputs):
            raise UnsupportedNodeError(node.name, node.op, "one of its inputs is a constant", "fold it")
        value = 0
        if isinstance(operator, OnnxPad) and len(node.inputs) > 2 and node.inputs[2]:
            value = int(quantisation.number(graph, node, node.inputs[2], "value"))
        return graph, move_node(graph, node, inputs, value)
    if isinstance(operator, OnnxRelu):
        # On integers, ONNX's Relu knows of no zero point.
        low = 0
    elif isinstance(operator, OnnxClip):
        low, high = (
            int(quantisation.number(graph, node, name, "bound")) if name else None
            for name in (*node.inputs[1:], "", "")[:2])
    new = moving_node(graph, node, x, dtype, low, high)
    kind = moved_type(graph, x, node.output)
    if not kind.quantised and graph.tensors[node.output].quantised:
        return graph, new   # what reads the result has told already
    return quantisation.with_types(graph, kind), new


def _left(graph: Graph, node: Node, operator: OnnxQLinear, reason: str) -> Graph:
    """Return the graph with a QLinear operator for the host core."""
    if KERNELS.get(node.op) is None:
        return expanded(graph, node, operator, reason)
    i = node.inputs
    try:
        graph = quantisation.with_types(graph, quantisation.activation(graph, node, i[0], *i[1:3]),
                                        quantisation.activation(graph, node, node.output, *i[6:8]))
    except UnsupportedNodeError as error:
        reason = error.reason
    return graph.replaced((node,), node.with_(reason=reason))


def _resized(graph: Graph, node: Node, operator: OnnxResize) -> Graph:
    """Return the graph with a Resize that weighs integers on the datapath, or on the core in floats."""
    try:
        graph, nodes = interpolated(graph, node, operator, graph.tensors[node.inputs[0]], graph.tensors[node.output])
    except UnsupportedNodeError as error:
        return _interpolated(graph, node, error.reason)
    return graph.replaced((node,), *nodes)


def _interpolated(graph: Graph, node: Node, reason: str) -> Graph:
    """Return the graph with a Resize of integers in floats: DequantizeLinear and QuantizeLinear of a scale of one."""
    dtype = graph.tensors[node.output].dtype or "uint8"
    names = [f"{node.output}:{what}" for what in ("before", "behind", "one", "zero")]
    before, behind, one, zero = names
    types = [Tensor(name, graph.tensors[source].shape, "float32")
             for name, source in ((before, node.inputs[0]), (behind, node.output))]
    nodes = (Node(OnnxDequantizeLinear(), (node.inputs[0], one, zero), before, (), reason),
             node.with_(inputs=(before, *node.inputs[1:]), output=behind, reason=reason),
             Node(OnnxQuantizeLinear(), (behind, one, zero), node.output, (), reason))
    if (kind := moved_type(graph, node.inputs[0], node.output)).quantised:
        graph = quantisation.with_types(graph, kind)
    graph = graph.with_tensors(*types).replaced((node,), *nodes)
    return graph.with_constants({one: np.ones((), np.float32), zero: np.zeros((), dtype)})
