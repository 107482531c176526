"""Moves and choices of integers, which need no scale, become our operators: ``MaxPool(q)`` becomes ``QMaxPool(q)``."""

import numpy as np

from tilewright.compiler.errors import CompileError, UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import moved_type, moving_node
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
from tilewright.compiler.graph.qlinear_operators import OnnxQLinearConv, OnnxQLinearMatMul
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.passes.recognise.infer_shapes import inferred
from tilewright.compiler.passes.recognise.interpolate import interpolated

__all__ = ["RecogniseOnIntegers"]

_OnIntegers = OnnxMaxPool | OnnxRelu | OnnxClip | OnnxView | OnnxMove
_Product = OnnxQLinearConv | OnnxQLinearMatMul


class RecogniseOnIntegers(Pass):
    """Replace MaxPool, Relu, Clip, Resize, reshapes and moves of integers by our integer operators.

    Products of integers that the normal form leaves, as their weights are computed or a vector, are the host core's.
    """

    def apply(self, graph: Graph) -> Graph:
        graph = _with_types(graph)
        for node in graph.nodes:
            operator = node.operator
            if isinstance(operator, _Product):
                graph = graph.replaced((node,), node.with_(reason=_reason(graph, node)))
            if node.inputs[0] not in graph.tensors or graph.tensors[node.inputs[0]].dtype not in quantisation.INTEGERS:
                continue
            if isinstance(operator, OnnxResize) and operator.mode != "nearest":
                graph = _resized(graph, node, operator)
            elif isinstance(operator, _OnIntegers):
                try:
                    typed, new = _recognised(graph, node)
                    inferred(typed, new)
                    graph = typed.replaced((node,), new)
                except UnsupportedNodeError as error:
                    graph = _interpolated(graph, node, error.reason) if isinstance(operator, OnnxResize) else \
                        graph.replaced((node,), node.with_(reason=error.reason))
        return graph


def _reason(graph: Graph, node: Node) -> str:
    """Return why a product of integers is the host core's."""
    weights = graph.constants.get(node.inputs[3])
    if weights is None:
        return "it multiplies by what is computed"
    return f"its weights have the shape {list(weights.shape)}"


def _with_types(graph: Graph) -> Graph:
    """Return the graph with the types of what is quantised, dequantised or multiplied as integers."""
    for node in graph.nodes:
        i = (*node.inputs, "")
        match node.operator:
            case OnnxQuantizeLinear():
                stated = [(node.output, *i[1:3])]
            case OnnxDequantizeLinear():
                stated = [i[:3]]
            case OnnxQLinearConv() | OnnxQLinearMatMul():
                stated = [i[:3], (node.output, *i[6:8])]
            case _:
                continue
        for name, scale, zero in stated:
            try:
                typed = None if name in graph.constants else quantisation.activation(graph, node, name, scale, zero)
            except CompileError:
                continue    # What reads it says so.
            graph = graph if typed is None else quantisation.with_types(graph, typed)
    return graph


def _recognised(graph: Graph, node: Node) -> tuple[Graph, Node]:
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
