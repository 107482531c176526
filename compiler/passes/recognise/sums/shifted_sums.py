"""Sums that are shifted: ``Q(Floor(Conv(DQ(x), DQ(w)) * f + a))`` in float64 becomes a QConv with integers.

So do sums times a long multiplier, in int64 (`long_chain`). All quantisations are of scale 1, so that whole numbers
stand for themselves. The factors are whole numbers over one power of two, as the readers of integer networks write
them: then float64 computes the same as integers do.
"""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import weight_layout, weighted_node
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxCast,
    OnnxConv,
    OnnxGemm,
    OnnxMul,
    OnnxQuantizeLinear,
    OnnxUnary,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.network.integer_scale import IntegerScale, LongScale
from tilewright.compiler.passes.recognise.infer_shapes import inferred
from tilewright.compiler.passes.recognise.qdq.group import dequantise_before, type_behind
from tilewright.compiler.passes.recognise.sums.long_chain import channel_numbers, long_chain

__all__ = ["RecogniseShifts"]


class RecogniseShifts(Pass):
    """Replace products of integers whose sums are multiplied, cut down and quantised in whole numbers."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, OnnxConv | OnnxGemm) and _is_of_levels(graph, node) \
                    and (found := _chain(graph, node)) is not None:
                graph = _recognised(graph, node, found) or graph
        return graph


def _is_of_levels(graph: Graph, node: Node) -> bool:
    """Tell whether a node multiplies two dequantised tensors and adds nothing."""
    data, weights = (dequantise_before(graph, name) for name in node.inputs[:2])
    return data is not None and weights is not None and data.inputs[0] not in graph.constants \
        and not any(node.inputs[2:])


@dataclass(frozen=True, slots=True)
class _Chain:
    """The nodes behind a product up to its quantisation, whose type ``kind`` is, and what they do, with biases."""

    nodes: tuple[Node, ...]
    kind: Tensor
    integers: IntegerScale | LongScale
    biases: np.ndarray


def _chain(graph: Graph, node: Node) -> _Chain | None:
    """Return the chain behind a product; None if its nodes are no such chain, or its numbers no such integers."""
    found = long_chain(graph, node)
    if found is not None and (scale := found.scale) is not None:
        return _Chain(found.nodes, _kind(graph, found.nodes[-1]), scale, found.biases)
    return _shifted(graph, node)


def _kind(graph: Graph, quantise: Node) -> Tensor:
    return quantisation.activation(graph, quantise, quantise.output, *(*quantise.inputs[1:], "")[:2])


def _shifted(graph: Graph, node: Node) -> _Chain | None:
    """Return Cast, Mul, Add, Floor, Cast and QuantizeLinear behind a product; None if there is anything else.

    Raises
    ------
    UnsupportedNodeError
        If the numbers are more than the datapath holds.
    """
    nodes, last = list[Node](), node
    for _ in range(6):
        following = graph.only_reader(last.output)
        if following is None:
            return None
        nodes.append(following)
        last = following
    cast, times, plus, floor, _, quantise = nodes
    kinds = (OnnxCast, OnnxMul, OnnxAdd, OnnxUnary, OnnxCast, OnnxQuantizeLinear)
    if not all(isinstance(each.operator, kind) for each, kind in zip(nodes, kinds, strict=True)) \
            or floor.op != "Floor" or graph.tensors[cast.output].dtype != "float64":
        return None
    numbers = [channel_numbers(graph, each, before.output) for each, before in ((times, cast), (plus, times))]
    kind = _kind(graph, quantise)
    if numbers[0] is None or numbers[1] is None or kind.parameters[0] != 1:
        return None
    ratios = [[value.as_integer_ratio() for value in each.tolist()] for each in numbers if each is not None]
    one = max(below for each in ratios for _, below in each)
    multipliers, addends = ([above * (one // below) for above, below in each] for each in ratios)
    try:
        integers, biases = IntegerScale.of(multipliers, addends, one.bit_length() - 1)
    except ValueError as error:
        raise UnsupportedNodeError(node.name, node.op, str(error), "use smaller factors") from error
    return _Chain(tuple(nodes), kind, integers, biases)


def _recognised(graph: Graph, node: Node, chain: _Chain) -> Graph | None:
    """Return the graph with a QConv or QDense for a product and its chain; None if it is no product of levels."""
    data, weights = (dequantise_before(graph, name) for name in node.inputs[:2])
    assert data is not None
    assert weights is not None
    x = type_behind(graph, data)
    axis, operator = weight_layout(node)
    name, step, zero = (*weights.inputs, "")[:3]
    levels, scale = quantisation.weights(graph, node, name, step, zero, axis)
    if x.parameters[0] != 1 or chain.kind.parameters[0] != 1 or (scale != 1).any() or operator.alpha != 1 \
            or x.dtype != chain.kind.dtype:
        return None
    if np.abs(chain.biases).max() > np.iinfo(np.int32).max:
        raise UnsupportedNodeError(node.name, node.op, "its addends are too large", "use smaller addends")
    graph = quantisation.with_types(graph, x, chain.kind)
    new = node.with_(output=chain.kind.name, onnx_nodes=(*node.onnx_nodes, *chain.nodes[-1].onnx_nodes))
    graph, made = weighted_node(graph, new, x.name, replace(operator.of_type(x.dtype), integers=chain.integers),
                                (levels, chain.integers.factors), chain.biases.astype(np.int32))
    _, shape = inferred(graph, made)
    graph = graph.with_tensors(replace(graph.tensors[made.output], shape=shape))
    return graph.replaced((node, *chain.nodes), made)
