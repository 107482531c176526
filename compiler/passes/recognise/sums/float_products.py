"""A product of integers whose result stays float: ``Conv(DQ(x), DQ(w))`` becomes the scaled sums of a QConv.

The sums leave the datapath whole. A DequantizeLinear scales them, by x_scale · w_scale per output channel; at the
model's border it is the host's. So ONNX Runtime computes a Gemm (QGemm without an output scale), bit for bit; it
computes a Conv, and a MatMul with a bias, in float, from which the exact sums differ by the float's own rounding.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import weight_layout, weighted_node
from tilewright.compiler.graph.integer_operators import Dequantize
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxConv,
    OnnxDequantizeLinear,
    OnnxGemm,
    OnnxMatMul,
    OnnxTranspose,
    OnnxView,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.network.layers import ChannelScales
from tilewright.compiler.passes.recognise.infer_shapes import inferred
from tilewright.compiler.passes.recognise.qdq.group import dequantise_before, type_behind

__all__ = ["SumFloatProducts"]

_REASON = "it scales the whole sums of a product whose result stays float"

_MOST_SCALES = 1 << 14
"""Scales of an output, at most: where channels and pixels are one axis, each element has its own."""

_RELATIVE = 1e-4
"""Relative difference of its scale up to which an int32 bias counts as the integers of the sums."""


class SumFloatProducts(Pass):
    """Replace products of dequantised tensors and constants whose result nothing quantises."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, OnnxConv | OnnxGemm | OnnxMatMul) and node.reason:
                try:
                    graph = _summed(graph, node) or graph
                except UnsupportedNodeError:
                    continue    # the reason that it has already is the better one
        return graph.without_unread(lambda node: not isinstance(node.operator, OnnxDequantizeLinear))


@dataclass(frozen=True, slots=True)
class _Bias:
    """Addends of the sums, int32 in their steps, and of their products with the scales, float32; or none.

    ``exact`` tells whether ONNX Runtime adds the same to integers.
    """

    levels: np.ndarray | None = None
    offset: np.ndarray | None = None

    @property
    def exact(self) -> bool:
        return self.offset is None


def _summed(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with whole sums for ``node``, and what scales them; None if its operands are others."""
    operator = node.operator
    sources = [dequantise_before(graph, name) for name in node.inputs[:2]]
    if any(source is None for source in sources) or (
            isinstance(operator, OnnxGemm) and (operator.alpha, operator.beta) != (1.0, 1.0)):
        return None
    data, weights = (source for source in sources if source is not None)
    if data.inputs[0] in graph.constants or not graph.all_constant(weights.inputs):
        return None
    x = type_behind(graph, data)
    axis, product = weight_layout(node)
    assert isinstance(weights.operator, OnnxDequantizeLinear)
    values, stated, zero = (*weights.inputs, "")[:3]
    levels, w_scale = quantisation.weights(graph, node, values, stated, zero, axis)
    if weights.operator.block_size or (w_scale.size > 1 and weights.operator.axis % levels.ndim != axis):
        return None
    scale = np.ascontiguousarray(np.broadcast_to(x.parameters[0] * w_scale, levels.shape[0]), np.float32)
    bias = _bias(graph, node, scale)
    if bias is None:
        return None
    sums = Tensor(f"{node.output}:sums", graph.tensors[node.output].shape, "int32")
    graph = quantisation.with_types(graph, x).with_tensors(sums)
    graph, new = weighted_node(graph, node.with_(output=sums.name), x.name,
                               replace(product, whole=True, exact=isinstance(operator, OnnxGemm) and bias.exact),
                               (levels, np.ones(1, np.float32)), bias.levels)
    _, shape = inferred(graph, new)
    if sums.shape is not None and shape != sums.shape:
        return None
    graph = graph.with_tensors(replace(sums, shape=shape))
    return _scaled(graph, node, new, scale, bias.offset)


def _bias(graph: Graph, node: Node, scale: np.ndarray) -> _Bias | None:
    """Return the bias of a product by the scales of its sums; None if it is no constant vector.

    An int32 one at these scales is added to the sums, any other behind the scales: with that, ONNX Runtime computes a
    Gemm in float too.
    """
    name = (*node.inputs, "", "")[2]
    if not name:
        return _Bias()
    source = dequantise_before(graph, name)
    if source is None:
        values = graph.constants.get(name)
        if values is None or values.dtype != np.float32 or values.size not in (1, scale.size):
            return None
        return _Bias(offset=np.broadcast_to(values.reshape(-1), scale.size))
    if not graph.all_constant(source.inputs):
        return None
    values = graph.constants[source.inputs[0]].reshape(-1)
    stated = quantisation.scales(graph, source, source.inputs[1])
    zero = quantisation.zero_points(graph, source, (*source.inputs, "")[2], stated.size, values.dtype.name)
    if values.size not in (1, scale.size) or stated.size not in (1, values.size):
        return None
    if values.dtype == np.int32 and not zero.any() and (
            isinstance(node.operator, OnnxGemm) or np.allclose(stated, scale, rtol=_RELATIVE, atol=0)):
        return _Bias(np.ascontiguousarray(np.broadcast_to(values, scale.size)))
    real = (values.astype(np.float32) - zero.astype(np.float32)) * stated
    return _Bias(offset=np.ascontiguousarray(np.broadcast_to(real, scale.size), np.float32))


def _scaled(graph: Graph, node: Node, new: Node, scale: np.ndarray, offset: np.ndarray | None) -> Graph:
    """Return the graph with ``new``, the sums of ``node``, and what scales them: the border, or the host core."""
    shape = graph.tensors[new.output].shape or ()
    axis = 1 if len(shape) in (2, 4) else len(shape) - 1
    views = [_Seen(node.output, shape, np.arange(scale.size).reshape(
        *(1,) * axis, -1, *(1,) * (len(shape) - 1 - axis)), shape)]
    views += _seen(graph, views[0])
    seen = views[-1]
    added = None if offset is None else offset[seen.channels]
    if offset is None:
        seen, added = _added(graph, seen)
    if seen.output in graph.outputs and not graph.readers(seen.output):
        factor = scale[seen.channels]
        whole = factor.shape if added is None else np.broadcast_shapes(factor.shape, added.shape)
        factor, *offsets = (np.broadcast_to(each, whole).ravel().tolist() for each in (factor, added)
                            if each is not None)
        channels = ChannelScales(tuple(factor), tuple(offsets[0]) if offsets else (), whole)
        border = Node(Dequantize(channels=channels), (new.output,), seen.output, node.onnx_nodes)
        sums = replace(graph.tensors[new.output], shape=seen.stored)
        return graph.with_tensors(sums).replaced((node, *seen.nodes), new, border)
    # What lies as the sums do, in one dimension a channel for each element, is scaled at once.
    seen = next((each for each in reversed(views) if each.stored == each.shape and each.axis is not None), views[0])
    graph = graph.with_tensors(replace(graph.tensors[new.output], shape=seen.shape))
    return _scaled_by_core(graph, seen, (node, new), scale, offset)


def _scaled_by_core(graph: Graph, seen: "_Seen", nodes: tuple[Node, Node], scale: np.ndarray,
                    offset: np.ndarray | None) -> Graph:
    """Return the graph with the second of two nodes, sums, for the first, and with what scales them as ``seen``."""
    node, new = nodes
    channels, behind = seen.channels.ravel(), len(seen.shape) - 1 - (seen.axis or 0)
    constants = {f"{new.output}:scale": scale[channels]}
    scaled = Node(OnnxDequantizeLinear(attributes={"axis": seen.axis or 0}), (new.output, *constants), seen.output,
                  node.onnx_nodes, _REASON)
    if offset is None:
        return graph.with_constants(constants).replaced((node, *seen.nodes), new, scaled)
    inner, name = f"{seen.output}:scaled", f"{seen.output}:offset"
    constants[name] = offset[channels].reshape(-1, *(1,) * behind)
    sum_of = Node(OnnxAdd(), (inner, name), seen.output, node.onnx_nodes, _REASON)
    graph = graph.with_tensors(replace(graph.tensors[seen.output], name=inner)).with_constants(constants)
    return graph.replaced((node, *seen.nodes), new, scaled.with_(output=inner), sum_of)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A tensor that holds the result of a product in some shape, behind ``nodes``.

    ``channels`` are the output channels of its elements, with extents of 1 along which they are the same. ``stored`` is
    the shape in which the sums lie as they are to lie for it.
    """

    output: str
    shape: tuple[int, ...]
    channels: np.ndarray
    stored: tuple[int, ...]
    nodes: tuple[Node, ...] = ()

    @property
    def axis(self) -> int | None:
        """The dimension along which channels differ, each element's another; None if there is none such."""
        found = [axis for axis, extent in enumerate(self.channels.shape) if extent > 1]
        whole = len(found) == 1 and self.channels.shape[found[0]] == self.shape[found[0]]
        return found[0] if whole else None


def _seen(graph: Graph, seen: _Seen) -> list[_Seen]:
    """Return the views behind a product that move nothing: reshapes, and one transposition to NHWC."""
    turned, found = False, []
    while seen.output not in graph.outputs and (following := graph.only_reader(seen.output)) is not None:
        new = graph.tensors[following.output].shape
        if not new or following.inputs[0] != seen.output:
            break
        every = np.broadcast_to(seen.channels, seen.shape)
        if isinstance(following.operator, OnnxView):
            every = every.reshape(new)
        elif isinstance(following.operator, OnnxTranspose) and following.operator.perm == (0, 2, 3, 1) \
                and seen.stored == seen.shape and not turned:
            every, turned = every.transpose(0, 2, 3, 1), True
        else:
            break
        for axis in range(every.ndim):
            first = every.take([0], axis)
            every = first if (every == first).all() else every
        if every.size > max(_MOST_SCALES, seen.channels.size):
            break
        seen = _Seen(following.output, new, every, new if turned else seen.stored, (*seen.nodes, following))
        found.append(seen)
    return found


def _added(graph: Graph, seen: _Seen) -> tuple[_Seen, np.ndarray | None]:
    """Return the view behind the Add of float constants, and these; the same and None if there is no such Add."""
    following = None if seen.output in graph.outputs else graph.only_reader(seen.output)
    if following is None or not isinstance(following.operator, OnnxAdd):
        return seen, None
    values = graph.constants.get(following.inputs[1 if following.inputs[0] == seen.output else 0])
    if values is None or values.dtype != np.float32 or graph.tensors[following.output].shape != seen.shape:
        return seen, None
    values = values.reshape((1,) * (len(seen.shape) - values.ndim) + values.shape)
    if math.prod(np.broadcast_shapes(values.shape, seen.channels.shape)) > _MOST_SCALES:
        return seen, None
    return replace(seen, output=following.output, nodes=(*seen.nodes, following)), values
