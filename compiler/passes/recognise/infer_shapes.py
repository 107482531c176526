"""Find every shape, and state every window as kernel, strides, dilations and pads.

ONNX's own inference stops at com.microsoft's operators, and before opset 19 counts windows of ceil_mode that begin
behind the image, which nothing computes. Formulas: ONNX operator specification, Conv and MaxPool.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.compiler.errors import BadModelError, UnsupportedModelError, UnsupportedNodeError
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import (
    Dequantize,
    ExactWindow,
    IntegerOperator,
    QAdd,
    QAverage,
    QConv,
    QConvTranspose,
    QDense,
    QInterpolate,
    QMaxPool,
    QProduct,
    QScale,
    Quantize,
    WindowAsRead,
    Windowed,
)
from tilewright.compiler.graph.move_nodes import move_shape
from tilewright.compiler.graph.move_operators import IntegerMove, QAlias, QAssemble, QPiece, QReshape, View
from tilewright.compiler.graph.node import GraphOperator, Node
from tilewright.compiler.graph.onnx_operators import OnnxDequantizeLinear, OnnxQuantizeLinear, OnnxTranspose, OnnxView
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.compiler.graph.transposed_windows import transposed_result

__all__ = ["InferShapes", "inferred"]

_Shape = tuple[int, ...]
_QUANTISATION = (Quantize, Dequantize, OnnxQuantizeLinear, OnnxDequantizeLinear)


class InferShapes(Pass):
    """Give every tensor a shape, and every operator over a window an exact one.

    Pads are then (top, left, bottom, right) and the window fits a whole number of times, also where the model says
    ``auto_pad`` or ``ceil_mode``. Whole sums keep their shape: they may be seen in another than the product's.
    """

    def apply(self, graph: Graph) -> Graph:
        _check_batches(graph)
        tensors = dict(graph.tensors)
        nodes = []
        for node in graph.nodes:
            if isinstance(node.operator, IntegerOperator):
                node, shape = _infer(graph, tensors, node, node.operator)
                if not _keeps_shape(node.operator):
                    tensors[node.output] = replace(tensors[node.output], shape=shape)
            nodes.append(node)
        return graph.with_(nodes=nodes, tensors=tensors)

    def ensures(self, graph: Graph) -> None:
        wrong = [node.name for node in graph.nodes
                 if isinstance(node.operator, Windowed) and not isinstance(node.operator.window, ExactWindow)]
        if wrong:
            raise PassError(f"Windows must all be stated, not left out in {', '.join(wrong)}")


def _keeps_shape(operator: GraphOperator) -> bool:
    """Tell whether whole sums, or what they are at the border, may be seen in another shape than the product's."""
    return (isinstance(operator, QConv | QDense) and operator.whole) or (
        isinstance(operator, Dequantize) and operator.channels is not None)


def _check_batches(graph: Graph) -> None:
    """Refuse inputs of several images; the host core takes any batch, the datapath one image."""
    integers = any(isinstance(node.operator, IntegerOperator) for node in graph.nodes)
    for name in graph.inputs:
        shape = graph.tensors[name].shape or ()
        if len(shape) == 4 and integers and shape[0] != 1 and not _is_weights(graph, name) \
                and not _is_reshaped(graph, name):
            raise UnsupportedModelError(f"Input {name!r} must have a batch of 1, not {shape[0]}; "
                                        f"export it for one image, and compile it with --batch {shape[0]}")


def _is_weights(graph: Graph, name: str) -> bool:
    """Tell whether a tensor is only what images are multiplied by: its first extent counts no images."""
    readers = graph.readers(name)
    return bool(readers) and all(
        _is_weights(graph, node.output) if isinstance(node.operator, _QUANTISATION) else name not in node.inputs[:1]
        for node in readers)


def _is_reshaped(graph: Graph, name: str) -> bool:
    """Tell whether a tensor is only reshaped, or multiplied by others: its first extent counts matrices."""
    readers = graph.readers(name)
    return bool(readers) and all(
        _is_reshaped(graph, node.output) if isinstance(node.operator, (*_QUANTISATION, OnnxTranspose))
        else isinstance(node.operator, OnnxView | QReshape | QProduct) for node in readers)


def inferred(graph: Graph, node: Node) -> tuple[Node, _Shape]:
    """Return a node of an integer operator with its window stated, and the shape of its output.

    Raises
    ------
    UnsupportedNodeError
        If the datapath does not compute it.
    """
    return _infer(graph, graph.tensors, node, node.operator)


def _infer(graph: Graph, tensors: Mapping[str, Tensor], node: Node, operator: GraphOperator) -> tuple[Node, _Shape]:
    """Return the node with its window stated, and the shape of its output."""
    shape = tensors[node.inputs[0]].shape
    if shape is None:
        raise BadModelError(f"Shape of tensor {node.inputs[0]!r} must be known, and nothing determines it")
    if isinstance(operator, QAlias | QPiece | QAssemble):
        return node, tensors[node.output].shape or ()
    if not isinstance(operator, QReshape | Quantize | Dequantize) and (len(shape) not in (2, 4) or shape[0] != 1):
        raise _refusal(node, f"its input has the shape {list(shape)}",
                       "use tensors of the shape (1, channels) or (1, channels, height, width)")
    match operator:
        case IntegerMove():
            return node, move_shape(operator, tuple(tensors[name].shape or () for name in node.inputs),
                                    tensors[node.output].shape)
        case QConvTranspose():
            return node, transposed_result(graph, node, operator, shape)
        case QInterpolate() as interpolate:
            return node, (*shape[:2], *interpolate.size)
        case QConv() | QAverage() | QMaxPool():
            return _window(graph, node, operator, shape)
        case QDense():
            weights = graph.constants[node.inputs[1]]
            if len(shape) != 2 or shape[1] != weights.shape[1]:
                raise _refusal(node, f"its input has the shape {list(shape)}, its weights take "
                                     f"{weights.shape[1]} values", "give it a flat input of that size")
            return node, (shape[0], weights.shape[0])
        case QProduct(pairs=pairs):
            second = tensors[node.inputs[1]].shape or ()
            return node, (1, second[3], len(pairs), shape[3])
        case QScale() if tensors[node.inputs[1]].shape != (1, shape[1], 1, 1):
            raise _refusal(node, "its operands differ in shape by more than one image per channel",
                           "multiply by a vector of channels")
        case QAdd() if tensors[node.inputs[1]].shape != shape:
            raise _refusal(node, "its operands differ in shape", "expand the smaller operand when exporting")
        case QReshape(view):
            return node, _reshaped(node, view, shape)
        case _:
            return node, shape


def _reshaped(node: Node, view: View, shape: _Shape) -> _Shape:
    count, new = math.prod(shape), view.of(shape)
    if math.prod(new) != count or any(extent < 1 for extent in new):
        raise BadModelError(f"Node {node.name!r} must keep {count} elements, and cannot make {new} of {list(shape)}")
    return tuple(new)


def _window(graph: Graph, node: Node, operator: QConv | QAverage | QMaxPool, shape: _Shape) -> tuple[Node, _Shape]:
    if len(shape) != 4:
        raise _refusal(node, f"its input has the shape {list(shape)}",
                             "use operators over two dimensions: (batch, channels, height, width)")
    read, size, channels = _as_read(operator.window), shape[2:], shape[1]
    kernel = size if read.kernel is None else read.kernel
    if isinstance(operator, QConv):
        weights = graph.constants[node.inputs[1]]
        if weights.shape[1] * operator.groups != channels or weights.shape[0] % operator.groups:
            raise BadModelError(f"Weights of node {node.name!r} must fit {channels} channels in {operator.groups} "
                                f"groups, not have the shape {list(weights.shape)}")
        kernel = weights.shape[2:]
        channels = weights.shape[0]
    strides, dilations = read.strides, read.dilations
    if {len(kernel), len(strides), len(dilations)} != {2} or min(*kernel, *strides, *dilations) < 1:
        raise BadModelError(f"Window of node {node.name!r} must have two dimensions of at least 1")
    extents = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True))
    pads = _pads(read, size, extents, strides)
    if len(pads) != 4:
        raise BadModelError(f"Window of node {node.name!r} must have four pads, not {len(pads)}")
    if min(pads) < 0:
        raise _refusal(node, "its pads are negative", "slice the input instead")
    out, (top, left, bottom, right) = _fit(node, read, size, extents, pads)
    exact = ExactWindow(kernel=(kernel[0], kernel[1]), strides=(strides[0], strides[1]),
                        dilations=(dilations[0], dilations[1]), pads=(top, left, bottom, right))
    if not isinstance(operator, QConv):
        _check_pool(node, exact, extents)
    return node.with_(operator=replace(operator, window=exact)), (shape[0], channels, *out)


def _as_read(window: WindowAsRead | ExactWindow) -> WindowAsRead:
    if isinstance(window, WindowAsRead):
        return window
    return WindowAsRead(kernel=window.kernel, strides=window.strides, dilations=window.dilations, pads=window.pads)


def _refusal(node: Node, reason: str, way_out: str) -> UnsupportedNodeError:
    name = node.operator.ONNX_NAME if isinstance(node.operator, IntegerOperator) else ""
    return UnsupportedNodeError(node.name, name or node.op, reason, way_out)


def _check_pool(node: Node, window: ExactWindow, extents: _Shape) -> None:
    if any(pad >= extent for pad, extent in zip(window.pads, (*extents, *extents), strict=True)):
        raise _refusal(node, "a window lies wholly in the padding", "use smaller pads")


def _pads(read: WindowAsRead, size: _Shape, extents: _Shape, strides: _Shape) -> _Shape:
    if read.auto_pad == "NOTSET":
        return read.pads
    if read.auto_pad == "VALID":
        return (0, 0, 0, 0)
    total = [max(0, (-(-n // s) - 1) * s + extent - n) for n, s, extent in zip(size, strides, extents, strict=True)]
    less, more = [t // 2 for t in total], [t - t // 2 for t in total]
    return (*less, *more) if read.auto_pad == "SAME_UPPER" else (*more, *less)


def _fit(node: Node, read: WindowAsRead, size: _Shape, extents: _Shape, pads: _Shape,
         ) -> tuple[Sequence[int], Sequence[int]]:
    """Return the output's size, and the pads enlarged to what ceil_mode makes of them."""
    out, ends = [], []
    for n, extent, stride, before, after in zip(size, extents, read.strides, pads[:2], pads[2:], strict=True):
        room = n + before + after - extent
        if room < 0:
            raise BadModelError(f"Window of node {node.name!r} must fit into its padded input, and is larger")
        steps = -(-room // stride) if read.ceil_mode else room // stride
        if read.ceil_mode and steps * stride >= n + before:
            # A window that would start behind the image is left out.
            steps -= 1
        out.append(steps + 1)
        ends.append(max(min(after, steps * stride + stride - 1 + extent - n - before),
                        steps * stride + extent - n - before))
    return out, [*pads[:2], *ends]
