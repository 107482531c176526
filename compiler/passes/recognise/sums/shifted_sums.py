"""Sums that are shifted: ``Q(Floor(Conv(DQ(x), DQ(w)) * f + a))`` in float64 becomes a QConv with integers.

So do sums times a long multiplier, in int64 (`long_chain`). All quantisations are of scale 1, so that whole numbers
stand for themselves. The factors are whole numbers over one power of two, as the readers of integer networks write
them: then float64 computes the same as integers do.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import standing_for, weight_layout, weighted_node
from tilewright.compiler.graph.integer_operators import QProduct, QScale
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxConv,
    OnnxConvTranspose,
    OnnxGemm,
    OnnxImageProduct,
    OnnxMul,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.graph.transposed_windows import transposed_operator, transposed_weights
from tilewright.compiler.network.integer_scale import IntegerScale, LongScale
from tilewright.compiler.passes.images.long_chain import channel_numbers, long_chain
from tilewright.compiler.passes.recognise.infer_shapes import inferred
from tilewright.compiler.passes.recognise.qdq.broadcasts import computed_types, tensor_product
from tilewright.compiler.passes.recognise.qdq.group import dequantise_before, type_behind

__all__ = ["RecogniseShifts"]


_LARGEST_PRODUCT = 255 * 255
"""Of two levels."""

_Read = Callable[[Node, tuple[str, str, str]], tuple[np.ndarray, np.ndarray]]
"""A function that gives levels and scales of a product's weights, by the names of what dequantises them."""


class RecogniseShifts(Pass):
    """Replace products of integers whose sums are multiplied, cut down and quantised in whole numbers."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, OnnxConv | OnnxConvTranspose | OnnxGemm | OnnxMul
                          | OnnxImageProduct) \
                    and _is_of_levels(graph, node) \
                    and (found := _chain(graph, node)) is not None:
                graph = _recognised(graph, node, found) or graph
        return graph


def _is_of_levels(graph: Graph, node: Node) -> bool:
    """Tell whether a node multiplies two dequantised tensors and adds nothing."""
    data, weights = (dequantise_before(graph, name) for name in (*node.inputs, "")[:2])
    return data is not None and weights is not None and data.inputs[0] not in graph.constants \
        and not any(node.inputs[2:])


@dataclass(frozen=True, slots=True)
class _Chain:
    """The nodes behind a product up to its quantisation, whose type ``kind`` is, and what they do, with biases."""

    nodes: tuple[Node, ...]
    kind: Tensor
    integers: IntegerScale | LongScale
    biases: np.ndarray
    parts: tuple[Node, ...] = ()


def _chain(graph: Graph, node: Node) -> _Chain | None:
    """Return the chain behind a product; None if its nodes are no such chain, or its numbers no such integers."""
    found = long_chain(graph, node)
    if found is not None and (scale := found.scale) is not None:
        return _Chain(found.nodes, _kind(graph, found.nodes[-1]), scale, found.biases, found.parts)
    return _shifted(graph, node)


def _kind(graph: Graph, quantise: Node) -> Tensor:
    return quantisation.activation(graph, quantise, quantise.output, *(*quantise.inputs[1:], "")[:2])


def _shifted(graph: Graph, node: Node) -> _Chain | None:
    """Return Cast, Mul, Add, Floor, Cast and QuantizeLinear behind a product; None if there is anything else.

    An Add of nothing may be left out.

    Raises
    ------
    UnsupportedNodeError
        If the numbers are more than the datapath holds.
    """
    nodes, last = list[Node](), node
    for op in ("Cast", "Mul", "Add", "Floor", "Cast", "QuantizeLinear"):
        following = graph.only_reader(last.output)
        if following is not None and op == "Add" and following.op == "Floor":
            continue
        if following is None or following.op != op:
            return None
        nodes.append(following)
        last = following
    (cast, times, plus, *_), quantise = nodes, nodes[-1]
    if graph.tensors[cast.output].dtype != "float64":
        return None
    factors, kind = channel_numbers(graph, times, cast.output), _kind(graph, quantise)
    added = np.zeros(1) if plus.op == "Floor" else channel_numbers(graph, plus, times.output)
    if factors is None or added is None or kind.parameters[0] != 1:
        return None
    ratios = [[value.as_integer_ratio() for value in np.broadcast_to(each, factors.shape).tolist()]
              for each in (factors, added)]
    one = max(below for each in ratios for _, below in each)
    multipliers, addends = ([above * (one // below) for above, below in each] for each in ratios)
    try:
        integers, biases = IntegerScale.of(multipliers, addends, one.bit_length() - 1)
    except ValueError as error:
        raise UnsupportedNodeError(node.name, node.op, str(error), "use smaller factors") from error
    return _Chain(tuple(nodes), kind, integers, biases)


def _recognised(graph: Graph, node: Node, chain: _Chain) -> Graph | None:
    """Return the graph with an integer operator for a product and its chain; None if it is no product of levels."""
    if isinstance(node.operator, OnnxMul):
        return _of_tensors(graph, node, chain)
    if isinstance(node.operator, OnnxImageProduct):
        return _of_matrices(graph, node, node.operator, chain)
    data, weights = (dequantise_before(graph, name) for name in node.inputs[:2])
    assert data is not None
    assert weights is not None
    x = type_behind(graph, data)
    if x.parameters[0] != 1 or chain.kind.parameters[0] != 1 or x.dtype != chain.kind.dtype:
        return None
    if np.abs(chain.biases).max() > np.iinfo(np.int32).max:
        raise UnsupportedNodeError(node.name, node.op, "its addends are too large", "use smaller addends")
    new = node.with_(output=chain.kind.name, onnx_nodes=(*node.onnx_nodes, *chain.nodes[-1].onnx_nodes))
    before, graph = graph, quantisation.with_types(graph, x, chain.kind)
    if isinstance(node.operator, OnnxConvTranspose):
        group = node.operator.group
        levels, scale = _added(before, (node, *chain.parts), lambda each, given: transposed_weights(
            before, each, *given, group))
        constants = {f"{new.output}:{what}": values for what, values in (
            ("weights", levels), ("scale", chain.integers.factors), ("bias", chain.biases.astype(np.int32)))}
        window = transposed_operator(node, node.operator, levels.shape[2:], (x.shape or ())[2:])
        made = standing_for(new, replace(window.of_type(x.dtype or "int8"), integers=chain.integers), x.name,
                            *constants)
        graph = graph.with_constants(constants)
    else:
        axis, operator = weight_layout(node)
        levels, scale = _added(before, (node, *chain.parts), lambda each, given: quantisation.weights(
            before, each, *given, axis))
        if operator.alpha != 1:
            return None
        graph, made = weighted_node(graph, new, x.name, replace(operator.of_type(x.dtype), integers=chain.integers),
                                    (levels, chain.integers.factors), chain.biases.astype(np.int32))
    if (scale != 1).any():
        return None
    _, shape = inferred(graph, made)
    graph = graph.with_tensors(replace(graph.tensors[made.output], shape=shape))
    return graph.replaced((node, *chain.parts, *chain.nodes), made)


def _added(graph: Graph, products: tuple[Node, ...], read: _Read) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of the products' weights and the scale of all of them; no scale of 1 if there is none."""
    sums, scales = [], []
    for product in products:
        source = dequantise_before(graph, product.inputs[1])
        if source is None:
            return np.zeros(0, np.int8), np.zeros(1, np.float32)
        name, step, zero = (*source.inputs, "")[:3]
        levels, scale = read(product, (name, step, zero))
        sums.append(levels.astype(np.int64))
        scales.append(scale.ravel())
    total = np.sum(sums, axis=0)
    return (total.astype(np.int8 if -128 <= total.min() and total.max() <= 127 else np.int16),
            np.concatenate(scales) if np.abs(total).max() < 1 << 9 else np.zeros(1, np.float32))


def _of_tensors(graph: Graph, node: Node, chain: _Chain) -> Graph | None:
    """Return the graph with a QScale for a product of two tensors; None if these are others, or too large.

    A factor of 0 .. 255 is negated by the datapath (`passes.lower.build_product`), and roundings are not the same on
    both sides of 0: all products are tried.
    """
    types = computed_types(graph, node)
    if types is None or not isinstance(chain.integers, LongScale) or not chain.integers.alike or chain.biases.any() \
            or any(each.parameters[0] != 1 for each in (*types, chain.kind)):
        return None
    one = chain.integers.of_channels(slice(1))
    places = [np.arange(256) - each.parameters[1] + np.iinfo(each.dtype).min for each in types]
    products = np.unique(places[0][:, None] * places[1]).astype(np.int32)
    negated = any(place.min() == 0 for place in places)
    if negated and (one.levels(products) + one.levels(-products)).any():
        return None
    made = standing_for(node, replace(QScale().of_type(chain.kind.dtype or "int8"), integers=one))
    made = made.with_(onnx_nodes=(*node.onnx_nodes, *chain.nodes[-1].onnx_nodes))
    found = tensor_product(graph, made, types, chain.kind)
    return None if found is None else found[0].replaced((node, *chain.nodes), *found[1])


def _of_matrices(graph: Graph, node: Node, operator: OnnxImageProduct, chain: _Chain) -> Graph | None:
    """Return the graph with a QProduct for products of computed matrices; None if its numbers are others.

    A second operand of 0 .. 255 is negated by the datapath (`passes.lower.build_matrix_product`).
    """
    sources = [dequantise_before(graph, name) for name in node.inputs]
    types = [type_behind(graph, each) for each in sources if each is not None]
    if len(types) != len(sources) or not isinstance(chain.integers, LongScale) or not chain.integers.alike \
            or chain.parts or chain.biases.any() or any(each.parameters[0] != 1 for each in (*types, chain.kind)) \
            or len({each.dtype for each in (*types, chain.kind)}) > 1:
        return None
    one = chain.integers.of_channels(slice(1))
    inputs, (low, zero) = (types[0].shape or ())[1], (np.iinfo(types[1].dtype).min, types[1].parameters[1])
    if zero == low and not one.is_odd(inputs * _LARGEST_PRODUCT):
        return None
    graph = quantisation.with_types(graph, *types, chain.kind)
    product = QProduct(pairs=operator.pairs, integers=one).of_type(chain.kind.dtype or "int8")
    made = standing_for(node, product, *(each.name for each in types)).with_(
        output=chain.kind.name, onnx_nodes=(*node.onnx_nodes, *chain.nodes[-1].onnx_nodes))
    return graph.replaced((node, *chain.nodes), made)
