"""Nodes of integer operators, made from ONNX nodes in either form of model."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import BadModelError, UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import QClamp, QConv, QDense, QMaxPool
from tilewright.compiler.graph.move_operators import FlatView, QReshape, ShapedView, SqueezedView, UnsqueezedView, View
from tilewright.compiler.graph.node import GraphOperator, Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxConv,
    OnnxFlatten,
    OnnxGemmLike,
    OnnxGlobalMaxPool,
    OnnxMaxPool,
    OnnxReshape,
    OnnxSqueeze,
    OnnxUnsqueeze,
    OnnxView,
)

__all__ = [
    "bias_vector", "moved_type", "moving_node", "reshape_behind", "standing_for", "weight_layout", "weighted_node",
]


def standing_for(node: Node, operator: GraphOperator, *inputs: str) -> Node:
    """Return a node of an integer operator that stands for ``node``."""
    return Node(operator, inputs, node.output, node.onnx_nodes)


def bias_vector(node: Node, bias: np.ndarray, channels: int) -> np.ndarray:
    """Return an int32 bias as a vector of one element per output channel."""
    if bias.dtype != np.int32 or bias.size not in (1, channels):
        raise BadModelError(f"Bias of node {node.name!r} must be int32 with {channels} elements, "
                            f"not {bias.dtype} with {bias.size}")
    return np.ascontiguousarray(np.broadcast_to(bias.reshape(-1), channels))


def weight_layout(node: Node) -> tuple[int, QConv | QDense]:
    """Return the axis of the weights that counts output channels, and the QConv or QDense for a node with weights."""
    operator = node.operator
    if isinstance(operator, OnnxConv):
        return 0, QConv(window=operator.window, groups=operator.group)
    if not isinstance(operator, OnnxGemmLike):
        return 1, QDense()
    if operator.transA:
        raise UnsupportedNodeError(node.name, node.op, "its input is transposed", "transpose it when exporting")
    return (0 if operator.transB else 1), QDense(alpha=float(operator.alpha))


def moving_node(graph: Graph, node: Node, x: str, dtype: str, low: int | None, high: int | None) -> Node:
    """Return the integer operator for a node that moves, compares or clamps integers of ``dtype``.

    ``low`` and ``high`` are the integer bounds of a Relu or Clip, None where it has none.
    """
    match node.operator:
        case OnnxMaxPool() | OnnxGlobalMaxPool() as pool:
            # Without a kernel, a window is the whole image.
            return standing_for(node, QMaxPool(window=pool.window).of_type(dtype), x)
        case OnnxView():
            return standing_for(node, QReshape(_view(graph, node)), x)
        case _:
            return standing_for(node, _clamp(QClamp().of_type(dtype), low, high), x)


def _clamp(widest: QClamp, low: int | None, high: int | None) -> QClamp:
    bottom, top = widest.low, widest.high
    low = bottom if low is None else min(max(low, bottom), top)
    high = top if high is None else min(max(high, bottom), top)
    # ONNX defines Clip as min(max(x, low), high).
    return replace(widest, low=min(low, high), high=high)


def _view(graph: Graph, node: Node) -> View:
    """Return how a reshape is stated; newer opsets have it as an input."""
    def integers(name: str, attribute: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if len(node.inputs) > 1 and node.inputs[1]:
            values = quantisation.constant(graph, node, node.inputs[1], name).reshape(-1)
            return tuple(map(int, values))
        return attribute

    match node.operator:
        case OnnxFlatten() as flatten:
            return FlatView(flatten.axis)
        case OnnxReshape() as reshape:
            return ShapedView(integers("shape", reshape.shape) or (), bool(reshape.allowzero))
        case OnnxSqueeze() as squeeze:
            return SqueezedView(integers("axes", squeeze.axes))
        case OnnxUnsqueeze() as unsqueeze:
            return UnsqueezedView(integers("axes", unsqueeze.axes) or ())
        case other:
            raise TypeError(f"Node {node.name!r} must be a reshape, not {other.name}")


def reshape_behind(graph: Graph, node: Node, shape: tuple[int, ...]) -> tuple[Graph, tuple[Node, Node]]:
    """Return ``node`` writing a tensor of ``shape``, and a QReshape to the shape that its output has in the model."""
    outer = graph.tensors[node.output]
    inner = replace(outer, name=f"{node.output}:unshaped", shape=shape)
    view = Node(QReshape(ShapedView(outer.shape or ())), (inner.name,), node.output)
    return graph.with_tensors(inner), (node.with_(output=inner.name), view)


def weighted_node(graph: Graph, node: Node, x: str, operator: QConv | QDense, packed: tuple[np.ndarray, np.ndarray],
                  bias: np.ndarray | None) -> tuple[Graph, Node]:
    """Return ``operator`` for ``node``, a QConv or QDense by its weights, and the graph with its constants."""
    values, scale = packed
    names = {"weights": values, "scale": scale}
    if bias is not None:
        names["bias"] = bias_vector(node, bias, values.shape[0])
    constants = {f"{node.output}:{name}": value for name, value in names.items()}
    inputs = (x, *constants, *("",) * (3 - len(constants)))
    if values.ndim != (4 if isinstance(operator, QConv) else 2):
        raise UnsupportedNodeError(node.name, node.op, f"its weights have {values.ndim} dimensions",
                                   "use convolutions over two dimensions, or matrix products")
    return graph.with_constants(constants), standing_for(node, operator, *inputs)


def moved_type(graph: Graph, source: str, target: str) -> Tensor:
    """Return the type of ``target`` with the quantisation of ``source``."""
    known, old = graph.tensors[source], graph.tensors[target]
    return Tensor(target, old.shape, known.dtype, known.scale, known.zero_point)
