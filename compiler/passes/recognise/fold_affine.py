"""Fold batch normalisation, and products and sums with constants, into the float convolution beside them.

    y = γ · (x - μ) / √(σ² + ε) + β = s x + t        s = γ / √(σ² + ε), t = β - μ s, one per channel
    behind  w * x + b:      w' = s w (per output channel), b' = s b + t
    before  w * (s x + t):  w' = w s (per input channel), b' = b + Σ w t; without padding, which would not be t

Only where the weights are constant floats: in a quantised model, what is between stays where the quantiser put it.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxArithmetic,
    OnnxBatchNormalization,
    OnnxConv,
    OnnxConvTranspose,
    OnnxDiv,
    OnnxGemm,
    OnnxMul,
    OnnxSub,
)
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["FoldAffine", "affine_of", "affine_terms"]

_Weighted = OnnxConv | OnnxConvTranspose | OnnxGemm


class FoldAffine(Pass):
    """Replace ``affine(Conv(x))``, and ``Conv(affine(x))`` without padding, by one Conv; the same for Gemm."""

    def apply(self, graph: Graph) -> Graph:
        for each in graph.nodes:
            if not isinstance(each.operator, OnnxBatchNormalization | OnnxArithmetic):
                continue
            node = graph.producer(each.output)
            found = affine_of(graph, node) if node is not None else None
            if node is None or found is None:
                continue
            x, factor, offset = found
            before, behind = graph.producer(x), graph.only_reader(node.output)
            if before is not None and graph.only_reader(x) is node and _foldable(graph, before, factor.size):
                graph = _behind(graph, before, node, factor, offset)
            elif behind is not None and behind.inputs[0] == node.output and _unpadded(graph, behind, factor.size):
                graph = _before(graph, node, x, behind, factor, offset)
        return graph


def affine_of(graph: Graph, node: Node, *, widens: bool = False) -> tuple[str, np.ndarray, np.ndarray] | None:
    """Return (x, s, t) of a node that computes s x + t per channel, with vectors of one element or one per channel.

    If it ``widens``, it may make several channels of one.
    """
    constants, operator = graph.constants, node.operator
    if isinstance(operator, OnnxBatchNormalization):
        if operator.training_mode or not operator.spatial or len(node.inputs) != 5 \
                or not all(name in constants for name in node.inputs[1:]):
            return None
        scale, bias, mean, variance = (constants[name].astype(np.float64).ravel() for name in node.inputs[1:])
        factor = scale / np.sqrt(variance + operator.epsilon)
        return node.inputs[0], factor, bias - mean * factor
    fixed = [name in constants for name in node.inputs]
    if not isinstance(operator, OnnxArithmetic) or sum(fixed) != 1:
        return None
    x, name = (node.inputs[1], node.inputs[0]) if fixed[0] else node.inputs
    value, shape = constants[name], graph.tensors[x].shape
    if value.dtype != np.float32 or shape is None or not _is_per_channel(value.shape, len(shape)):
        return None
    wide = (*shape[:1], value.size, *shape[2:]) if widens and shape[1:2] == (1,) else shape
    if graph.tensors[node.output].shape != wide:
        return None
    terms = affine_terms(operator, value.astype(np.float64).ravel(), first=fixed[0])
    return terms and (x, *terms)


def affine_terms(operator: OnnxArithmetic, value: np.ndarray, *, first: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Return s and t of an operator on x and a constant, ``value`` in float64, that computes s x + t; None for c / x.

    ``first`` tells that the constant is the first operand.
    """
    one, zero = np.ones_like(value), np.zeros_like(value)
    match operator:
        case OnnxMul():
            return value, zero
        case OnnxAdd():
            return one, value
        case OnnxSub():
            return (-one, value) if first else (one, -value)
        case OnnxDiv() if not first:
            with np.errstate(divide="ignore"):
                return 1 / value, zero
    return None


def _is_per_channel(shape: tuple[int, ...], rank: int) -> bool:
    """Tell whether a constant of ``shape`` has one element, or one along axis 1 of a tensor of ``rank``."""
    full = (1,) * (rank - len(shape)) + shape
    return len(full) == rank and all(extent == 1 for axis, extent in enumerate(full) if axis != 1)


def _channel_axis(node: Node) -> int:
    """Return the axis of the weights that counts output channels."""
    if isinstance(node.operator, OnnxGemm):
        return 0 if node.operator.transB else 1
    return 0 if isinstance(node.operator, OnnxConv) else 1


def _foldable(graph: Graph, node: Node, size: int) -> bool:
    constants, operator = graph.constants, node.operator
    if not isinstance(operator, _Weighted) or not graph.all_constant(node.inputs[1:]):
        return False
    weights = constants[node.inputs[1]]
    if weights.dtype != np.float32 or (isinstance(operator, OnnxConvTranspose) and operator.group != 1):
        return False
    if isinstance(operator, OnnxGemm) and (operator.beta != 1.0 or operator.alpha != 1.0):
        return False
    channels = weights.shape[_channel_axis(node)]
    bias = constants[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else np.zeros(channels)
    return size in (1, channels) and bias.size in (1, channels) and max(bias.shape, default=1) == bias.size


def _unpadded(graph: Graph, node: Node, size: int) -> bool:
    conv = node.operator
    return (isinstance(conv, OnnxConv) and _foldable(graph, node, 1) and conv.group == 1 and not any(conv.pads)
            and conv.auto_pad in ("NOTSET", "VALID")
            and size in (1, graph.constants[node.inputs[1]].shape[1]))


def _behind(graph: Graph, node: Node, affine: Node, factor: np.ndarray, offset: np.ndarray) -> Graph:
    weights = graph.constants[node.inputs[1]].astype(np.float64)
    axis = _channel_axis(node)
    along = [1] * weights.ndim
    along[axis] = -1
    new = weights * np.broadcast_to(factor, weights.shape[axis]).reshape(along)
    bias = _bias(graph, node, weights.shape[axis]) * factor + offset
    return _replaced(graph, node, affine, node.inputs[0], new, bias)


def _before(graph: Graph, affine: Node, x: str, node: Node, factor: np.ndarray, offset: np.ndarray) -> Graph:
    weights = graph.constants[node.inputs[1]].astype(np.float64)
    along = (1, -1, *(1,) * (weights.ndim - 2))
    spread = [np.broadcast_to(each, weights.shape[1]).reshape(along) for each in (factor, offset)]
    bias = _bias(graph, node, weights.shape[0]) + (weights * spread[1]).sum(axis=tuple(range(1, weights.ndim)))
    return _replaced(graph, affine, node, x, weights * spread[0], bias, into=node)


def _bias(graph: Graph, node: Node, channels: int) -> np.ndarray:
    if len(node.inputs) < 3 or not node.inputs[2]:
        return np.zeros(channels)
    return np.broadcast_to(graph.constants[node.inputs[2]].astype(np.float64).ravel(), channels)


def _replaced(graph: Graph, first: Node, last: Node, x: str, weights: np.ndarray, bias: np.ndarray,
              into: Node | None = None) -> Graph:
    """Return the graph with one convolution or product in the place of two nodes."""
    into = into or first
    names = (f"{last.output}:weights", f"{last.output}:bias")
    constants = {names[0]: weights.astype(np.float32), names[1]: bias.astype(np.float32)}
    new = replace(into, inputs=(x, *names), output=last.output, onnx_nodes=first.onnx_nodes + last.onnx_nodes)
    return graph.with_constants(constants).replaced((first, last), new)
