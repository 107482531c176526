"""Operators that move elements or combine those of one frame: the axis of time stays, or goes elsewhere."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from tilewright.compiler.control.node_writer import attributes_of, node_name
from tilewright.compiler.graph.onnx_names import BINARY, UNARY
from tilewright.compiler.stream.stream_graph import StreamGraph
from tilewright.compiler.stream.time_axis import StreamError, TimeAxis

__all__ = ["ELEMENTWISE", "FRAME_RULES", "SHAPED", "elementwise", "reshaped"]

_QUANTISATION = {"QuantizeLinear", "DequantizeLinear"}
_ZERO = {*_QUANTISATION, "Relu", "LeakyRelu", "Identity", "Cast", "Dropout"}
"""Functions of one element that leave zero as it is."""

ELEMENTWISE = {*UNARY, *BINARY, *_ZERO, "BatchNormalization", "Min", "Where"}

SHAPED = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"}


def elementwise(stream: StreamGraph, node: onnx.NodeProto) -> bool:
    """Write a function of elements at one place; those of tensors that come earlier wait for the others.

    Raises
    ------
    StreamError
        If a constant has another value for each frame, or tensors have other frames.
    """
    rank = len(stream.shapes[node.output[0]])
    timed = [name for name in node.input if name in stream.axes]
    known = {name: replace(time, axis=time.axis + rank - len(stream.shapes[name]))
             for name, time in ((name, stream.axes[name]) for name in timed)}
    if any(name and name not in stream.axes and name not in stream.fixed for name in node.input):
        return False
    first = known[timed[0]]
    apart = {(each.axis, each.length, each.hop) for each in known.values()}
    lead = max(each.lead for each in known.values())
    padded = min(each.lead for each in known.values()) < 0
    if len(apart) > 1 or (padded and (len(timed) > 1 or node.op_type not in _ZERO)):
        raise StreamError(node_name(node), f"joins {' and '.join(map(repr, timed))}, whose frames differ or are padded",
                          "pad in front of a Conv only")
    if node.op_type not in (*_QUANTISATION, "BatchNormalization"):
        for name in filter(stream.fixed.__contains__, node.input):
            shape = (1,) * rank + stream.shapes[name]
            if shape[first.axis - rank] > 1:
                raise StreamError(node_name(node), f"reads the constant {name!r}, which differs from frame to frame")
    made = onnx.NodeProto()
    made.CopyFrom(node)
    for place, name in enumerate(node.input):
        if name in known:
            made.input[place] = stream.delayed(name, lead - known[name].lead)
    stream.nodes.append(made)
    stream.axes[node.output[0]] = replace(first, lead=lead)
    return True


def reshaped(stream: StreamGraph, node: onnx.NodeProto) -> bool:
    """Write an operator that gives a tensor another shape, if the axis of time stays one."""
    time, before, after = (stream.axes[node.input[0]], stream.shapes[node.input[0]], stream.shapes[node.output[0]])
    inner = math.prod(before[:time.axis])
    place = next((axis for axis, extent in enumerate(after)
                  if extent == time.length and math.prod(after[:axis]) == inner), None)
    if place is None:
        return False
    made = onnx.NodeProto()
    made.CopyFrom(node)
    if node.op_type == "Reshape":
        shape = [time.hop if axis == place else extent for axis, extent in enumerate(after)]
        made.input[1] = stream.constant(f"{node.output[0]}:shape", shape)
    stream.nodes.append(made)
    stream.axes[node.output[0]] = replace(time, axis=place)
    return True


def _transposed(stream: StreamGraph, node: onnx.NodeProto) -> int | None:
    rank = len(stream.shapes[node.input[0]])
    order: Sequence[int] = attributes_of(node).get("perm") or range(rank)[::-1]  # type: ignore[assignment]
    return list(order).index(stream.axes[node.input[0]].axis)


_TRAILING = ("LayerNormalization", "RMSNormalization")
"""Operators along an axis and all behind it."""


def _along(stream: StreamGraph, node: onnx.NodeProto) -> int | None:
    """Return the axis of time of what works along one other axis."""
    time, rank = stream.axes[node.input[0]], len(stream.shapes[node.input[0]])
    default = {"Softmax": -1, "LogSoftmax": -1, **dict.fromkeys(_TRAILING, -1)}.get(node.op_type, 0)
    along = int(attributes_of(node).get("axis", default)) % rank  # type: ignore[call-overload]
    if node.op_type in _TRAILING:
        return time.axis if time.axis < along else None
    return None if along == time.axis else time.axis


def _gathered(stream: StreamGraph, node: onnx.NodeProto) -> int | None:
    axis, along = stream.axes[node.input[0]].axis, _along(stream, node)
    if along is None or node.input[1] not in stream.constants:
        return None
    place = int(attributes_of(node).get("axis", 0)) % len(stream.shapes[node.input[0]])  # type: ignore[call-overload]
    return axis if axis < place else axis + stream.constants[node.input[1]].ndim - 1


def _multiplied(stream: StreamGraph, node: onnx.NodeProto) -> int | None:
    """Return the axis of time of a product whose rows are frames."""
    rank, axis = len(stream.shapes[node.input[0]]), stream.axes.get(node.input[0], TimeAxis(-1, 0, 0)).axis
    if not 0 <= axis < rank - 1 or any(name and name not in stream.fixed for name in node.input[1:]):
        return None
    if node.op_type == "Gemm" and (attributes_of(node).get("transA") or axis != 0):
        return None
    return axis if len(stream.shapes[node.input[1]]) == 2 else None


def _reduced(stream: StreamGraph, node: onnx.NodeProto) -> int | None:
    time, rank, given = stream.axes[node.input[0]], len(stream.shapes[node.input[0]]), attributes_of(node)
    stated: Any = stream.constants.get(node.input[1]) if len(node.input) > 1 else given.get("axes")
    axes = {int(each) % rank for each in np.atleast_1d(range(rank) if stated is None else stated)}
    if time.axis in axes:
        return None
    return time.axis if given.get("keepdims", 1) else time.axis - sum(each < time.axis for each in axes)


FRAME_RULES = {"Transpose": _transposed, "Softmax": _along, "LogSoftmax": _along, **dict.fromkeys(_TRAILING, _along),
               "Split": _along, "Gather": _gathered, "MatMul": _multiplied, "Gemm": _multiplied,
               **dict.fromkeys(("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"), _reduced)}
"""The axis of time of the results of what computes each frame by itself, by operator; None where it does not."""
