"""Find every shape, and state every window as kernel, strides, dilations and pads.

ONNX's own inference stops at com.microsoft's operators, and before opset 19 counts windows of ceil_mode that begin
behind the image, which nothing computes. Formulas: ONNX operator specification, Conv and MaxPool.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilewright.compiler.errors import BadModelError, UnsupportedModelError, UnsupportedNodeError
from tilewright.compiler.graph.graph import Graph, Node, Tensor
from tilewright.compiler.graph.integer_moves import move_shape
from tilewright.compiler.graph.integer_ops import INTEGER, ONNX_NAMES, PLACED
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.compiler.graph.transposed_windows import transposed_result
from tilewright.isa.limits import MAX_KERNEL, MAX_PADDING, MAX_WINDOW, MAX_WINDOW_STRIDE

_WINDOWS = ("QConv", "QAverage", "QMaxPool")
_Shape = tuple[int, ...]


class InferShapes(Pass):
    """Give every tensor a shape; windows get ``kernel``, ``strides``, ``dilations``, ``pads`` and ``groups``.

    Pads are then (top, left, bottom, right) and exact: the window fits a whole number of times, also where the model
    says ``auto_pad`` or ``ceil_mode``.
    """

    def apply(self, graph: Graph) -> Graph:
        tensors = dict(graph.tensors)
        nodes = []
        integers = any(node.op in INTEGER for node in graph.nodes)
        for name in graph.inputs:
            shape = tensors[name].shape or ()
            quantised = any(node.op == "Quantize" for node in graph.readers(name))
            # The host core takes any batch, the datapath one image.
            if ((len(shape) == 4 and integers) or (len(shape) == 2 and quantised)) and shape[0] != 1:
                raise UnsupportedModelError(f"Input {name!r} must have a batch of 1, not {shape[0]}; "
                                            "run larger batches one by one")
        for node in graph.nodes:
            if node.op in INTEGER:
                node, shape = _infer(graph, tensors, node)
                tensors[node.output] = replace(tensors[node.output], shape=shape)
            nodes.append(node)
        return graph.with_(nodes=tuple(nodes), tensors=tensors)

    def ensures(self, graph: Graph) -> None:
        wrong = [node.name for node in graph.nodes if node.op in _WINDOWS and not
                 {"kernel", "strides", "dilations", "pads", "groups"} <= node.attrs.keys()]
        if wrong:
            raise PassError(f"Windows must all be stated, not left out in {', '.join(wrong)}")


def inferred(graph: Graph, node: Node) -> tuple[Node, _Shape]:
    """Return an integer operator with its window stated, and the shape of its output.

    Raises
    ------
    UnsupportedNodeError
        If the datapath does not compute it.
    """
    return _infer(graph, graph.tensors, node)


def _infer(graph: Graph, tensors: Mapping[str, Tensor], node: Node) -> tuple[Node, _Shape]:
    """Return the node with its window stated, and the shape of its output."""
    shape = tensors[node.inputs[0]].shape
    if shape is None:
        raise BadModelError(f"Shape of tensor {node.inputs[0]!r} must be known, and nothing tells it")
    if node.op == "QAlias":
        return node, tensors[node.output].shape or ()
    if node.op not in ("QReshape", "Quantize", "Dequantize") and (len(shape) not in (2, 4) or shape[0] != 1):
        raise _refusal(node, f"its input has the shape {list(shape)}",
                       "use tensors of the shape (1, channels) or (1, channels, height, width)")
    if node.op in PLACED:
        return node, move_shape(node, tuple(tensors[name].shape or () for name in node.inputs),
                                tensors[node.output].shape)
    if node.op == "QConvTranspose":
        return node, transposed_result(graph, node, shape)
    if node.op in _WINDOWS:
        return _window(graph, node, shape)
    if node.op == "QDense":
        weights = graph.constants[node.inputs[1]]
        if len(shape) != 2 or shape[1] != weights.shape[1]:
            raise _refusal(node, f"its input has the shape {list(shape)}, its weights take "
                                       f"{weights.shape[1]} values", "give it a flat input of that many")
        return node, (shape[0], weights.shape[0])
    if node.op == "QAdd" and tensors[node.inputs[1]].shape != shape:
        raise _refusal(node, "its operands differ in shape",
                                   "expand the smaller when exporting")
    if node.op == "QReshape":
        return node, _reshaped(node, shape)
    return node, shape


def _reshaped(node: Node, shape: _Shape) -> _Shape:
    attrs, count = node.attrs, math.prod(shape)
    if attrs["onnx_op"] == "Flatten":
        axis = attrs["axis"] + (len(shape) if attrs["axis"] < 0 else 0)
        new = [math.prod(shape[:axis]), math.prod(shape[axis:])]
    elif attrs["onnx_op"] == "Reshape":
        new = [shape[i] if extent == 0 and not attrs.get("allowzero") and i < len(shape) else extent
               for i, extent in enumerate(attrs["shape"])]
        if new.count(-1) == 1:
            new[new.index(-1)] = count // max(1, -math.prod(new))
    elif attrs["onnx_op"] == "Squeeze":
        axes = attrs["axes"] if attrs["axes"] is not None else [i for i, n in enumerate(shape) if n == 1]
        gone = {axis % len(shape) for axis in axes}
        new = [extent for i, extent in enumerate(shape) if i not in gone]
    else:
        new = list(shape)
        rank = len(shape) + len(attrs["axes"])
        for axis in sorted(axis % rank for axis in attrs["axes"]):
            new.insert(axis, 1)
    if math.prod(new) != count or any(extent < 1 for extent in new):
        raise BadModelError(f"Node {node.name!r} must keep {count} elements, and cannot make {new} of {list(shape)}")
    return tuple(new)


def _window(graph: Graph, node: Node, shape: _Shape) -> tuple[Node, _Shape]:
    if len(shape) != 4:
        raise _refusal(node, f"its input has the shape {list(shape)}",
                                   "use operators over two dimensions: (batch, channels, height, width)")
    attrs, size = node.attrs, shape[2:]
    channels, groups = shape[1], attrs.get("group", 1)
    kernel = attrs.get("kernel_shape", size)
    if node.op == "QConv":
        weights = graph.constants[node.inputs[1]]
        if weights.shape[1] * groups != channels or weights.shape[0] % groups:
            raise BadModelError(f"Weights of node {node.name!r} must fit {channels} channels in {groups} groups, "
                                f"not have the shape {list(weights.shape)}")
        kernel = weights.shape[2:]
        channels = weights.shape[0]
    strides, dilations = attrs.get("strides", (1, 1)), attrs.get("dilations", (1, 1))
    if {len(kernel), len(strides), len(dilations)} != {2} or min(*kernel, *strides, *dilations) < 1:
        raise BadModelError(f"Window of node {node.name!r} must have two dimensions of at least 1")
    extents = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True))
    pads = _pads(attrs, size, extents, strides)
    if len(pads) != 4:
        raise BadModelError(f"Window of node {node.name!r} must have four pads, not {len(pads)}")
    if min(pads) < 0:
        raise _refusal(node, "its pads are negative", "slice the input instead")
    out, pads = _fit(node, size, extents, strides, pads)
    _check_limits(node, kernel, strides, pads)
    if node.op != "QConv":
        _check_pool(node, kernel, dilations, pads)
    stated = {"kernel": tuple(kernel), "strides": tuple(strides), "dilations": tuple(dilations), "pads": pads,
              "groups": groups if node.op == "QConv" else channels}
    return node.with_(attrs={"low": attrs["low"], "high": attrs["high"], **_rest(attrs), **stated}), \
        (shape[0], channels, *out)


def _refusal(node: Node, reason: str, way_out: str) -> UnsupportedNodeError:
    return UnsupportedNodeError(node.name, ONNX_NAMES.get(node.op, node.op), reason, way_out)


def _rest(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: attrs[name] for name in ("alpha", "count_include_pad", "exact", "windowed") if name in attrs}


def _check_limits(node: Node, kernel: _Shape, strides: _Shape, pads: _Shape) -> None:
    """Refuse windows beyond the operands of the commands."""
    pooled = node.op == "QMaxPool"
    largest = MAX_WINDOW if pooled else MAX_KERNEL
    if max(kernel) > largest or max(pads) > (MAX_WINDOW if pooled else MAX_PADDING) \
            or (pooled and max(strides) > MAX_WINDOW_STRIDE):
        raise _refusal(node, f"its window is {kernel[0]}x{kernel[1]} with strides {list(strides)} and pads "
                             f"{list(pads)}, and the datapath's at most {largest}x{largest}", "use a smaller window")


def _check_pool(node: Node, kernel: _Shape, dilations: _Shape, pads: _Shape) -> None:
    if tuple(dilations) != (1, 1):
        raise _refusal(node, "its window is dilated", "use a window without dilation")
    if any(pad >= extent for pad, extent in zip(pads, (*kernel, *kernel), strict=True)):
        raise _refusal(node, "a whole window lies in the padding", "use smaller pads")


def _pads(attrs: Mapping[str, Any], size: _Shape, extents: _Shape, strides: _Shape) -> _Shape:
    mode = attrs.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return tuple(attrs.get("pads", (0, 0, 0, 0)))
    if mode == "VALID":
        return (0, 0, 0, 0)
    total = [max(0, (-(-n // s) - 1) * s + extent - n) for n, s, extent in zip(size, strides, extents, strict=True)]
    less, more = [t // 2 for t in total], [t - t // 2 for t in total]
    return (*less, *more) if mode == "SAME_UPPER" else (*more, *less)


def _fit(node: Node, size: _Shape, extents: _Shape, strides: _Shape, pads: _Shape) -> tuple[_Shape, _Shape]:
    """Return the output's size, and the pads enlarged to what ceil_mode makes of them."""
    out, ends = [], []
    for n, extent, stride, before, after in zip(size, extents, strides, pads[:2], pads[2:], strict=True):
        room = n + before + after - extent
        if room < 0:
            raise BadModelError(f"Window of node {node.name!r} must fit its padded input, and is larger")
        steps = -(-room // stride) if node.attrs.get("ceil_mode", 0) else room // stride
        if node.attrs.get("ceil_mode", 0) and steps * stride >= n + before:
            # A window that would start behind the image is left out.
            steps -= 1
        out.append(steps + 1)
        ends.append(max(min(after, steps * stride + stride - 1 + extent - n - before),
                        steps * stride + extent - n - before))
    return tuple(out), (*pads[:2], *ends)
