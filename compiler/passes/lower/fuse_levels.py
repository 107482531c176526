"""Softmax and normalisations of quantised tensors become operators of the host core that compute with the levels.

``Softmax(DequantizeLinear(x))``, with a QuantizeLinear behind it or without one, ``LRN`` between the two, and
normalisations of instances, layers, groups and by the root mean square, with constant parameters and perhaps a Relu
behind them, and quotients of two tensors; what their kernels refuse stays float. ArgMax and ArgMin of levels are those
of what the levels stand for.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.compiler.graph.core_operators import (
    CoreLogSoftmax,
    CoreNormalisation,
    CoreOperator,
    CoreQuotient,
    CoreResponse,
    CoreSoftmax,
)
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxDequantizeLinear,
    OnnxDiv,
    OnnxMul,
    OnnxOperator,
    OnnxQuantizeLinear,
    OnnxRelu,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.graph.scales import fixed_numbers
from tilewright.compiler.kernels.levels.pair_look_up import quotient_factors
from tilewright.compiler.kernels.refusal import refusal_of
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.passes.lower.build_core import core_info, core_layer, is_core

__all__ = ["FuseLevels"]

_BYTES = ("int8", "uint8")
_OF_LEVELS: dict[str, type[CoreOperator]] = {
    "Softmax": CoreSoftmax, "LogSoftmax": CoreLogSoftmax, "LRN": CoreResponse}
_NORMALISATIONS = ("InstanceNormalization", "LayerNormalization", "GroupNormalization", "RMSNormalization")
"""By ONNX's name; none of them has a class of its own but Softmax."""

_POSITIONS = ("ArgMax", "ArgMin")


class FuseLevels(Pass):
    """Replace operators behind a DequantizeLinear of one scale by those of :mod:`core_operators`."""

    def apply(self, graph: Graph) -> Graph:
        before = graph
        for node in before.nodes:
            if not is_core(node) or not isinstance(node.operator, OnnxOperator):
                continue
            if node.op in _OF_LEVELS:
                graph = _fused(graph, node, _OF_LEVELS[node.op])
            elif node.op in _NORMALISATIONS:
                graph = _normalised(graph, node)
            elif isinstance(node.operator, OnnxDiv):
                graph = _quotient(graph, node)
            elif node.op in _POSITIONS and (source := _levels(graph, node)) is not None:
                graph = graph.replaced((node,), node.with_(inputs=(source.inputs[0], *node.inputs[1:])))
        return graph if graph is before else graph.without_unread(lambda node: not is_core(node))


def _fused(graph: Graph, node: Node, operator: type[CoreOperator]) -> Graph:
    """Return the graph with ``node`` computed from levels, and to levels where that can be; or as it was."""
    scaled, factor = _unscaled(graph, node) if operator is CoreSoftmax else (node, 1.0)
    source = _levels(graph, scaled)
    if source is None or not isinstance(node.operator, OnnxOperator):
        return graph
    attributes = {**node.operator.attributes, **_quantisation(graph, source, "scale_value", "zero_point_value")}
    attributes["scale_value"] = float(np.float32(attributes["scale_value"] * factor))
    names = (*scaled.onnx_nodes, *node.onnx_nodes) if scaled is not node else node.onnx_nodes
    behind = graph.only_reader(node.output)
    if behind is not None and isinstance(behind.operator, OnnxQuantizeLinear) and _is_per_tensor(graph, behind):
        after = {**attributes, **_quantisation(graph, behind, "y_scale", "y_zero_point")}
        whole = Node(operator(attributes=after, exact=False), source.inputs[:1], behind.output, names,
                     node.reason)
        if _is_computed(graph, whole):
            return graph.replaced((node, behind), whole)
    half = Node(operator(attributes=attributes, exact=False), source.inputs[:1], node.output, names,
                node.reason)
    return graph.replaced((node,), half) if _is_computed(graph, half) else graph


def _unscaled(graph: Graph, node: Node) -> tuple[Node, float]:
    """Return what multiplies the input of ``node`` by a positive number, and that number; itself and 1 if nothing does.

    A softmax of scaled levels is one of levels of another scale.
    """
    by = graph.producer(node.inputs[0])
    if by is None or not isinstance(by.operator, OnnxMul | OnnxDiv):
        return node, 1.0
    for x, constant in (by.inputs, by.inputs[::-1]) if isinstance(by.operator, OnnxMul) else (by.inputs,):
        value = fixed_numbers(graph, constant)
        number = float(value.reshape(())) if value is not None and value.size == 1 else 0.0
        if 0 < number < math.inf:
            return by.with_(inputs=(x, constant)), 1 / number if isinstance(by.operator, OnnxDiv) else number
    return node, 1.0


def _normalised(graph: Graph, node: Node) -> Graph:
    """Return the graph with a normalisation, and the Relu behind it, from levels to levels; or as it was."""
    source, behind = _levels(graph, node), graph.only_reader(node.output)
    relu = behind if behind is not None and isinstance(behind.operator, OnnxRelu) else None
    quantise = graph.only_reader(relu.output) if relu is not None else behind
    parameters = [fixed_numbers(graph, name) for name in node.inputs[1:3] if name]
    if source is None or quantise is None or not isinstance(quantise.operator, OnnxQuantizeLinear) or not parameters \
            or not _is_per_tensor(graph, quantise) or any(each is None for each in parameters):
        return graph
    assert isinstance(node.operator, OnnxOperator)
    gains, *shifts = (np.asarray(each, np.float64).ravel() for each in parameters)
    attributes = {**node.operator.attributes, **_quantisation(graph, source, "scale_value", "zero_point_value"),
                  **_quantisation(graph, quantise, "y_scale", "y_zero_point"), "kind": node.op,
                  "gains": gains.tolist(), "shifts": (shifts or [np.zeros_like(gains)])[0].tolist()}
    nodes = [each for each in (node, relu, quantise) if each is not None]
    if relu is not None:
        attributes["low"] = attributes["y_zero_point"]
    whole = Node(CoreNormalisation(attributes=attributes, exact=False), source.inputs[:1], quantise.output,
                 tuple(name for each in nodes[:-1] for name in each.onnx_nodes), node.reason)
    return graph.replaced(nodes, whole) if _is_computed(graph, whole) else graph


def _quotient(graph: Graph, node: Node) -> Graph:
    """Return the graph with a Div of levels to levels by whole numbers; or as it was."""
    a, b, quantise = _levels(graph, node), _levels(graph, node, 1), graph.only_reader(node.output)
    kind = None if quantise is None else graph.tensors.get(quantise.output)
    if a is None or b is None or quantise is None or not isinstance(quantise.operator, OnnxQuantizeLinear) \
            or kind is None or kind.dtype not in _BYTES or not _is_per_tensor(graph, quantise):
        return graph
    attributes: dict[str, Any] = {"y_dtype": kind.dtype}
    for name, each in (("a", a), ("b", b), ("y", quantise)):
        attributes |= _quantisation(graph, each, f"{name}_scale", f"{name}_zero_point")
    types = [str(graph.tensors[each.inputs[0]].dtype) for each in (a, b)]
    attributes["factors"], attributes["offsets"] = quotient_factors(attributes, *types)
    whole = Node(CoreQuotient(attributes=attributes), (a.inputs[0], b.inputs[0]), quantise.output, node.onnx_nodes,
                 node.reason)
    return graph.replaced((node, quantise), whole) if _is_computed(graph, whole) else graph


def _levels(graph: Graph, node: Node, place: int = 0) -> Node | None:
    """Return the DequantizeLinear that is an input of ``node``, if it is of 8 bits with one positive scale."""
    source = graph.producer(node.inputs[place])
    if source is None or not isinstance(source.operator, OnnxDequantizeLinear) or not _is_per_tensor(graph, source):
        return None
    tensor = graph.tensors.get(source.inputs[0])
    positive = bool(graph.constants[source.inputs[1]].reshape(()) > 0)
    return source if tensor is not None and tensor.dtype in _BYTES and positive else None


def _is_per_tensor(graph: Graph, node: Node) -> bool:
    return all(name in graph.constants and graph.constants[name].size == 1 for name in node.inputs[1:] if name)


def _quantisation(graph: Graph, node: Node, scale: str, zero_point: str) -> dict[str, Any]:
    """Return the attributes that say a node's scale and zero point."""
    zero = graph.constants[node.inputs[2]] if "".join(node.inputs[2:3]) else None
    return {scale: float(graph.constants[node.inputs[1]].reshape(())),
            zero_point: 0 if zero is None else int(zero.reshape(()))}


def _is_computed(graph: Graph, node: Node) -> bool:
    """Tell whether the core has a kernel for ``node``."""
    known = [graph.tensors.get(name) for name in (*node.inputs, node.output)]
    if any(tensor is None or tensor.shape is None or not tensor.dtype for tensor in known):
        return False
    tensors = {tensor.name: replace(core_info(tensor), place=None) for tensor in known if tensor is not None}
    return refusal_of(core_call(core_layer(graph, node, node.output), tensors, {})) is None
