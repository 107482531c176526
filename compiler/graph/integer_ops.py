"""The integer operators that recognition makes of both ONNX forms, and how each is made; no pass of its own.

=========== ============================== ==================================================================
operator    inputs                         attributes, besides ``low`` and ``high``: int8 or uint8 bounds
=========== ============================== ==================================================================
QConv       x, weights, their scale, bias  ONNX's window attributes and ``group``
QDense      x, weights, their scale, bias  ``alpha``
QConvTra…   x, weights, their scale, bias  ``kernel``, ``strides``, …; weights as ONNX has them
QAdd        a, b
QAverage    x                              ONNX's window attributes; none of them: the whole image
QMaxPool    x                              ONNX's window attributes
QClamp      x
QReshape    x                              ``onnx_op``, and its ``axis``, ``axes`` or ``shape``
QAlias      x                              ``flat``: those of the two tensors that lie row by row, not as NHWC
QTable      x                              ``table``, int8 of 256: what becomes of -128 .. 127 (of uint8 less 128)
Quantize    x (float32)
Dequantize  x
=========== ============================== ==================================================================

Scales and zero points of activations are those of the tensors. Weights are int8, output channels first; the bias
is int32, or ``""`` for none.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import BadModelError, UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Node, Tensor

COMPUTING = ("QConv", "QDense", "QAdd", "QAverage")
"""Operators with arithmetic of their own; their output has a quantisation of its own."""

MOVING = ("QMaxPool", "QClamp", "QReshape")
"""Operators whose output is quantised as their input."""

PLACED = ("QConcat", "QSlice", "QUpsample", "QPad", "QInterleave")
"""Operators that only move, so that addresses do what they do; see ``integer_moves``."""

INTEGER = frozenset({
    *COMPUTING, *MOVING, *PLACED, "QConvTranspose", "QAlias", "QTable", "QPass", "Quantize", "Dequantize"})
"""Operators that are ours; all others are ONNX's, and the host core computes them."""

ONNX_NAMES = {"QConv": "Conv", "QDense": "Gemm", "QAdd": "Add", "QAverage": "AveragePool", "QMaxPool": "MaxPool",
              "QConvTranspose": "ConvTranspose"}
"""What messages call them."""

RECOGNISED = frozenset({
    "QLinearConv", "QLinearMatMul", "QuantizeLinear", "DequantizeLinear", "Conv", "ConvTranspose", "Gemm", "MatMul",
    "Add", "Relu", "Clip", "MaxPool", "GlobalMaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean", "Flatten",
    "Reshape", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Split"})
"""ONNX operators that may become integer operators."""

UNCHANGED_VIEWS = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")


def with_bounds(op: str, node: Node, inputs: tuple[str, ...], dtype: str, **attrs: object) -> Node:
    """Return an integer operator that stands for ``node`` and clamps to the bounds of ``dtype``."""
    bounds = np.iinfo(dtype)
    return Node(op, inputs, node.output, {**attrs, "low": int(bounds.min), "high": int(bounds.max)}, node.onnx_nodes)


def bias_vector(node: Node, bias: np.ndarray, channels: int) -> np.ndarray:
    """Return an int32 bias as a vector of one element per output channel."""
    if bias.dtype != np.int32 or bias.size not in (1, channels):
        raise BadModelError(f"Bias of node {node.name!r} must be int32 with {channels} elements, "
                            f"not {bias.dtype} with {bias.size}")
    return np.ascontiguousarray(np.broadcast_to(bias.reshape(-1), channels))


def weight_layout(node: Node, has_bias: bool) -> tuple[int, dict[str, object]]:
    """Return the axis of the weights that counts output channels, and the attributes of the QConv or QDense."""
    if node.op in ("Conv", "QLinearConv"):
        return 0, window_attrs(node)
    if node.op in ("MatMul", "QLinearMatMul"):
        return 1, {"alpha": 1.0}
    return _gemm_layout(node, has_bias)


def _gemm_layout(node: Node, has_bias: bool) -> tuple[int, dict[str, object]]:
    if node.attrs.get("transA", 0):
        raise UnsupportedNodeError(node.name, node.op, "its input is transposed", "transpose it when exporting")
    if has_bias and node.attrs.get("beta", 1.0) != 1.0:
        raise UnsupportedNodeError(node.name, node.op, f"beta is {node.attrs['beta']}", "fold beta into the bias")
    return (0 if node.attrs.get("transB", 0) else 1), {"alpha": float(node.attrs.get("alpha", 1.0))}


def window_attrs(node: Node) -> dict[str, object]:
    """Return the attributes that describe a window, and the groups."""
    names = ("kernel_shape", "strides", "dilations", "pads", "auto_pad", "ceil_mode", "count_include_pad", "group")
    return {name: node.attrs[name] for name in names if name in node.attrs}


def moving_node(graph: Graph, node: Node, x: str, dtype: str, low: int | None, high: int | None) -> Node:
    """Return the integer operator for a node that moves, compares or clamps integers of ``dtype``.

    ``low`` and ``high`` are the integer bounds of a Relu or Clip, None where it has none.
    """
    if node.op in ("MaxPool", "GlobalMaxPool"):
        # Without a kernel, a window is the whole image.
        return with_bounds("QMaxPool", node, (x,), dtype, **window_attrs(node))
    if node.op in UNCHANGED_VIEWS:
        return with_bounds("QReshape", node, (x,), dtype, onnx_op=node.op, **_reshape_attrs(graph, node))
    clamp = with_bounds("QClamp", node, (x,), dtype)
    bottom, top = clamp.attrs["low"], clamp.attrs["high"]
    low = bottom if low is None else min(max(low, bottom), top)
    high = top if high is None else min(max(high, bottom), top)
    # ONNX defines Clip as min(max(x, low), high).
    return clamp.with_attrs(low=min(low, high), high=high)


def _reshape_attrs(graph: Graph, node: Node) -> dict[str, object]:
    """Return what decides the new shape; newer opsets have it as an input."""
    if node.op == "Flatten":
        return {"axis": node.attrs.get("axis", 1)}
    name = "shape" if node.op == "Reshape" else "axes"
    if len(node.inputs) > 1 and node.inputs[1]:
        values = quantisation.constant(graph, node, node.inputs[1], name).reshape(-1)
        return {name: tuple(map(int, values)), "allowzero": node.attrs.get("allowzero", 0)}
    return {name: node.attrs.get(name)}


def reshape_behind(graph: Graph, node: Node, shape: tuple[int, ...]) -> tuple[Graph, tuple[Node, Node]]:
    """Return ``node`` writing a tensor of ``shape``, and a QReshape to the shape that its output has in the model."""
    inner = f"{node.output}:unshaped"
    outer = graph.tensors[node.output]
    graph = graph.with_(tensors={**graph.tensors, inner: replace(outer, name=inner, shape=shape)})
    view = with_bounds("QReshape", Node("Reshape", (), node.output), (inner,), outer.dtype,
                       onnx_op="Reshape", shape=outer.shape)
    return graph, (node.with_(output=inner), view)


def weighted_node(graph: Graph, node: Node, x: str, dtype: str, packed: tuple[np.ndarray, np.ndarray],
                  bias: np.ndarray | None, **attrs: object) -> tuple[Graph, Node]:
    """Return a QConv or QDense for ``node``, and the graph with its constants."""
    values, scale = packed
    names = {"weights": values, "scale": scale}
    if bias is not None:
        names["bias"] = bias_vector(node, bias, values.shape[0])
    constants = {f"{node.output}:{name}": value for name, value in names.items()}
    inputs = (x, *constants, *("",) * (3 - len(constants)))
    op = "QConv" if values.ndim == 4 else "QDense"
    if values.ndim not in (2, 4):
        raise UnsupportedNodeError(node.name, node.op, f"its weights have {values.ndim} dimensions",
                                   "use convolutions over two dimensions, or matrix products")
    return graph.with_constants(constants), with_bounds(op, node, inputs, dtype, **attrs)


def moved_type(graph: Graph, source: str, target: str) -> Tensor:
    """Return the type of ``target`` with the quantisation of ``source``."""
    known, old = graph.tensors[source], graph.tensors[target]
    return Tensor(target, old.shape, known.dtype, known.scale, known.zero_point)
