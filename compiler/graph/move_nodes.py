"""Nodes that concatenate, slice, upsample and pad integers, made from ONNX nodes."""

import math

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.move_operators import IntegerMove, QConcat, QPad, QSlice, QUpsample
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxConcat, OnnxPad, OnnxResize, OnnxSlice, OnnxUpsample
from tilewright.compiler.network.layers import Pads, Pair

__all__ = ["OnnxMove", "move_node", "move_shape"]

OnnxMove = OnnxConcat | OnnxSlice | OnnxResize | OnnxPad
"""ONNX operators that may become one."""

_EXACT_AT_HALF = ("half_pixel", "pytorch_half_pixel")


def move_node(graph: Graph, node: Node, inputs: tuple[str, ...], value: int = 0) -> Node:
    """Return the integer operator for ``node``, an ``OnnxMove``, on the integer tensors ``inputs``.

    ``value`` is the level of a Pad's zero.

    Raises
    ------
    UnsupportedNodeError
        If the datapath's addresses cannot express it.
    """
    shape = graph.tensors[inputs[0]].shape or ()
    if len(shape) not in (2, 4) or shape[0] != 1:
        raise UnsupportedNodeError(node.name, node.op, f"its input has the shape {list(shape)}",
                                   "use tensors of the shape (1, channels) or (1, channels, height, width)")
    operator: IntegerMove
    match node.operator:
        case OnnxPad() as pad:
            pads, channels = _pads(graph, node, pad, shape)
            operator = QPad(pads, value, channels)
        case OnnxConcat() as concat:
            operator = _concat(node, concat, shape)
        case OnnxSlice():
            operator = _slice(graph, node, shape)
        case OnnxResize() as resize:
            operator = _resize(graph, node, resize, shape)
        case other:
            raise TypeError(f"Node {node.name!r} must be a move, not {other.name}")
    return Node(operator, inputs, node.output, node.onnx_nodes)


def move_shape(operator: IntegerMove, shapes: tuple[tuple[int, ...], ...], known: tuple[int, ...] | None,
               ) -> tuple[int, ...]:
    """Return the shape of the result of a QConcat, QSlice, QUpsample or QPad; that of a slice is ``known``."""
    channels, height, width = (*shapes[0][1:], 1, 1)[:3]
    new = [channels, height, width]
    match operator:
        case QConcat(axis):
            new[axis] = sum((*shape[1:], 1, 1)[axis] for shape in shapes)
        case QUpsample(factors):
            new[1:] = (height * factors[0], width * factors[1])
        case QPad(pads):
            top, left, bottom, right = pads
            new = [channels + sum(operator.channels), height + top + bottom, width + left + right]
        case _ if known is not None:
            return known
    return (1, *new[:len(shapes[0]) - 1])


def _refusal(node: Node, reason: str) -> UnsupportedNodeError:
    return UnsupportedNodeError(node.name, node.op, reason, "replace it by another operator")


def _concat(node: Node, concat: OnnxConcat, shape: tuple[int, ...]) -> QConcat:
    axis = int(concat.axis) % len(shape)
    if axis == 0:
        raise _refusal(node, "it joins batches")
    return QConcat(axis - 1)


def _list(graph: Graph, node: Node, position: int, name: str) -> list[int] | None:
    """Return a list of integers that is an input, or in older operator sets an attribute."""
    if len(node.inputs) > position and node.inputs[position]:
        return [int(each) for each in quantisation.constant(graph, node, node.inputs[position], name).ravel()]
    attributes = node.operator.attributes if isinstance(node.operator, OnnxMove) else {}
    return [int(each) for each in attributes[name]] if name in attributes else None


def _slice(graph: Graph, node: Node, shape: tuple[int, ...]) -> QSlice:
    starts, ends = _list(graph, node, 1, "starts"), _list(graph, node, 2, "ends")
    if starts is None or ends is None:
        raise _refusal(node, "its bounds are computed while the model runs")
    axes = _list(graph, node, 3, "axes") or list(range(len(starts)))
    steps = _list(graph, node, 4, "steps") or [1] * len(starts)
    begin, every = [0] * 4, [1] * 4
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis %= len(shape)
        first, _, _ = slice(start, end, step).indices(shape[axis])
        begin[axis], every[axis] = first, step
    if min(every) < 1 or every[0] * every[1] != 1 or begin[0]:
        raise _refusal(node, f"its steps are {steps}")
    return QSlice((begin[1], begin[2], begin[3]), (every[2], every[3]))


def _resize(graph: Graph, node: Node, resize: OnnxResize, shape: tuple[int, ...]) -> QUpsample:
    target = graph.tensors[node.output].shape or ()
    if resize.mode != "nearest":
        raise _refusal(node, f"its mode is {resize.mode}")
    if len(target) != len(shape) or target[:2] != shape[:2] or len(shape) != 4 or \
            any(new % old or not new for new, old in zip(target, shape, strict=True)):
        raise _refusal(node, f"it makes {list(target)} of {list(shape)}")
    factors = target[2] // shape[2], target[3] // shape[3]
    if resize.axes is not None or not all(_repeats(node, resize, old, factor)
                                          for old, factor in zip(shape[2:], factors, strict=True)):
        raise _refusal(node, "it does not repeat all pixels equally often")
    return QUpsample(factors)


def _repeats(node: Node, resize: OnnxResize, size: int, factor: int) -> bool:
    """Tell whether pixel x of the output is pixel x // factor of the input; formulas of ONNX's Resize."""
    mode = resize.coordinate_transformation_mode
    older = isinstance(resize, OnnxUpsample) or (len(node.inputs) == 2 and mode is None)
    mode = mode or ("asymmetric" if older else "half_pixel")
    rounding = resize.nearest_mode or ("floor" if older else "round_prefer_floor")
    x = np.arange(size * factor)
    if mode == "asymmetric":
        position = x / factor
    elif mode in _EXACT_AT_HALF:
        position = (x + 0.5) / factor - 0.5
    elif mode == "align_corners":
        position = x * (size - 1) / max(1, size * factor - 1)
    else:
        return factor == 1
    if rounding == "floor":
        nearest = np.floor(position)
    elif rounding == "ceil":
        nearest = np.ceil(position)
    elif rounding == "round_prefer_ceil":
        nearest = np.floor(position + 0.5)
    else:
        nearest = np.ceil(position - 0.5)
    return bool(np.array_equal(np.clip(nearest, 0, size - 1), x // factor))


def _pads(graph: Graph, node: Node, pad: OnnxPad, shape: tuple[int, ...]) -> tuple[Pads, Pair]:
    """Return the pads of an image, and those of its channels: before and behind."""
    pads = _list(graph, node, 1, "pads")
    if pad.mode != "constant" or pads is None:
        raise _refusal(node, f"its mode is {pad.mode}")
    axes = [axis % len(shape) for axis in _list(graph, node, 3, "axes") or range(len(shape))]
    before, after = [0] * 4, [0] * 4
    for index, axis in enumerate(axes):
        before[axis], after[axis] = pads[index], pads[index + len(axes)]
    if before[0] or after[0] or min(before + after) < 0 or math.prod(shape) == 0:
        raise _refusal(node, f"its pads are {pads}")
    return (before[2], before[3], after[2], after[3]), (before[1], after[1])
