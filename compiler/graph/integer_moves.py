"""Concatenation, slices, upsampling and padding of integers, which are a matter of addresses; no pass of its own.

=========== ================== ======================================================================
operator    inputs             attributes
=========== ================== ======================================================================
QConcat     any number         ``axis`` of (channels, height, width)
QSlice      x                  ``starts`` (channel, row, column), ``steps`` (rows, columns)
QUpsample   x                  ``factors`` (rows, columns)
QPad        x                  ``pads`` (top, left, bottom, right), ``value``: a level of the model's type
QInterleave phases, row by row ``steps`` (rows, columns): as many phases as their product
=========== ================== ======================================================================
"""

import math

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Node

MOVES = ("Concat", "Slice", "Resize", "Upsample", "Pad")
"""ONNX operators that may become one."""

_EXACT_AT_HALF = ("half_pixel", "pytorch_half_pixel")


def move_node(graph: Graph, node: Node, inputs: tuple[str, ...], value: int = 0) -> Node:
    """Return the integer operator for ``node``, one of ``MOVES``, on the integer tensors ``inputs``.

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
    if node.op == "Pad":
        attrs = {"pads": _pads(graph, node, shape), "value": value}
    else:
        attrs = {"Concat": _concat, "Slice": _slice, "Resize": _resize, "Upsample": _resize}[node.op](
            graph, node, shape)
    op = {"Resize": "QUpsample", "Upsample": "QUpsample"}.get(node.op, f"Q{node.op}")
    return Node(op, inputs, node.output, attrs, node.onnx_nodes)


def move_shape(node: Node, shapes: tuple[tuple[int, ...], ...], known: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the shape of what a QConcat, QSlice, QUpsample or QPad writes; that of a slice is ``known``."""
    channels, height, width = (*shapes[0][1:], 1, 1)[:3]
    new = [channels, height, width]
    if node.op == "QConcat":
        axis = node.attrs["axis"]
        new[axis] = sum((*shape[1:], 1, 1)[axis] for shape in shapes)
    elif node.op == "QUpsample":
        new[1:] = (height * node.attrs["factors"][0], width * node.attrs["factors"][1])
    elif node.op == "QPad":
        top, left, bottom, right = node.attrs["pads"]
        new[1:] = height + top + bottom, width + left + right
    elif known is not None:
        return known
    return (1, *new[:len(shapes[0]) - 1])


def _refusal(node: Node, reason: str) -> UnsupportedNodeError:
    return UnsupportedNodeError(node.name, node.op, reason, "replace it by another operator")


def _concat(graph: Graph, node: Node, shape: tuple[int, ...]) -> dict[str, object]:
    axis = int(node.attrs.get("axis", 1)) % len(shape)
    if axis == 0:
        raise _refusal(node, "it joins batches")
    return {"axis": axis - 1}


def _list(graph: Graph, node: Node, position: int, name: str) -> list[int] | None:
    """Return a list of integers that is an input, or in older operator sets an attribute."""
    if len(node.inputs) > position and node.inputs[position]:
        return [int(each) for each in quantisation.constant(graph, node, node.inputs[position], name).ravel()]
    return [int(each) for each in node.attrs[name]] if name in node.attrs else None


def _slice(graph: Graph, node: Node, shape: tuple[int, ...]) -> dict[str, object]:
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
    return {"starts": tuple(begin[1:]), "steps": (every[2], every[3])}


def _resize(graph: Graph, node: Node, shape: tuple[int, ...]) -> dict[str, object]:
    target = graph.tensors[node.output].shape or ()
    if node.attrs.get("mode", "nearest") != "nearest":
        raise _refusal(node, f"its mode is {node.attrs['mode']}")
    if len(target) != len(shape) or target[:2] != shape[:2] or len(shape) != 4 or \
            any(new % old or not new for new, old in zip(target, shape, strict=True)):
        raise _refusal(node, f"it makes {list(target)} of {list(shape)}")
    factors = target[2] // shape[2], target[3] // shape[3]
    if "axes" in node.attrs or not all(_repeats(node, old, factor)
                                       for old, factor in zip(shape[2:], factors, strict=True)):
        raise _refusal(node, "it does not repeat each pixel as often as the next")
    return {"factors": factors}


def _repeats(node: Node, size: int, factor: int) -> bool:
    """Tell whether pixel x of the output is pixel x // factor of the input; formulas of ONNX's Resize."""
    older = node.op == "Upsample" or (len(node.inputs) == 2 and "coordinate_transformation_mode" not in node.attrs)
    mode = node.attrs.get("coordinate_transformation_mode", "asymmetric" if older else "half_pixel")
    rounding = node.attrs.get("nearest_mode", "floor" if older else "round_prefer_floor")
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


def _pads(graph: Graph, node: Node, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    pads = _list(graph, node, 1, "pads")
    if node.attrs.get("mode", "constant") != "constant" or pads is None:
        raise _refusal(node, f"its mode is {node.attrs.get('mode', 'constant')}")
    axes = [axis % len(shape) for axis in _list(graph, node, 3, "axes") or range(len(shape))]
    before, after = [0] * 4, [0] * 4
    for index, axis in enumerate(axes):
        before[axis], after[axis] = pads[index], pads[index + len(axes)]
    if any(before[:2]) or any(after[:2]) or min(before + after) < 0 or math.prod(shape) == 0:
        raise _refusal(node, f"its pads are {pads}")
    return before[2], before[3], after[2], after[3]
