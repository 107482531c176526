"""Operators that look at several frames: Conv and pools keep those before, a Pad is the start of the state."""

import math

import onnx
from onnx import helper

from tilewright.compiler.control.node_writer import attributes_of, node_name
from tilewright.compiler.stream.stream_graph import StreamGraph
from tilewright.compiler.stream.time_axis import CoarserFrames, StreamError, TimeAxis

__all__ = ["KERNELS", "pad", "sliding"]

KERNELS = {"Conv", "MaxPool", "AveragePool", "LpPool"}

_CAUSAL = "pad before the first frame only (causal), or not at all"


def sliding(stream: StreamGraph, node: onnx.NodeProto) -> bool:
    """Write a Conv or a pool; tell whether it was possible: where it makes one element of a window, it is not.

    Raises
    ------
    CoarserFrames
        If its stride is no divisor of the new elements of a call.
    StreamError
        If it reads frames that are not there yet, or padding that the stream does not have.
    """
    time, place = stream.axes[node.input[0]], stream.axes[node.input[0]].axis - 2
    given = attributes_of(node)
    kernel = list(given.get("kernel_shape") or stream.shapes[node.input[1]][2:])  # type: ignore[call-overload]
    if place < 0 or not 0 <= place < len(kernel):
        return False
    strides, dilations = (list(given.get(key) or [1] * len(kernel)) for key in ("strides", "dilations"))  # type: ignore[call-overload]
    reach, stride = (kernel[place] - 1) * dilations[place] + 1, strides[place]
    count = stream.shapes[node.output[0]][time.axis]
    pads = _pads(stream, node, (kernel, strides, dilations))
    before = pads[place]
    if (count - 1) * stride + reach - before > time.length:
        raise StreamError(node_name(node), f"reads frames behind the last, as padding: pads {pads}", _CAUSAL)
    if count == 1 and before == 0 and time.lead >= 0:
        return False
    found = _after(node, time, before, (reach, stride))
    keep = found.lead * stride - time.lead + before
    pads[place] = pads[place + len(kernel)] = 0
    if given.get("ceil_mode") and (keep + time.hop - reach) % stride:
        raise StreamError(node_name(node), "rounds up the number of its elements (ceil_mode)", "export it without")
    made = onnx.NodeProto()
    made.CopyFrom(node)
    kept = [each for each in made.attribute if each.name not in ("auto_pad", "pads")]
    del made.attribute[:]
    made.attribute.extend([*kept, helper.make_attribute("pads", pads)])
    made.input[0] = stream.kept(node.input[0], keep)
    stream.nodes.append(made)
    stream.axes[node.output[0]] = TimeAxis(time.axis, count, found.hop, found.lead)
    return True


def _after(node: onnx.NodeProto, time: TimeAxis, before: int, kernel: tuple[int, int]) -> TimeAxis:
    """Return the time axis behind a kernel of some reach and stride that pads ``before`` the first element.

    Element i of the stream is computed from elements i · stride - keep on, so element j of the window is element
    j + (lead + keep) / stride: that must be whole, and keep as short as new elements allow.
    """
    reach, stride = kernel
    if time.hop % stride:
        raise CoarserFrames(stride // math.gcd(time.hop, stride))
    lead = time.lead - before
    if before and time.lead > 0:
        raise StreamError(node_name(node), f"pads in front of {time.lead} elements that layers before make of the "
                          "start of the stream", "pad all layers causally, or none")
    if lead < 0 and node.op_type != "Conv":
        raise StreamError(node_name(node), "pads what it pools", "pad with zeros in front of a Conv, or not at all")
    keep = next(each for each in range(reach - stride, reach) if (lead + each) % stride == 0)
    if keep < 0 or lead + keep < 0:
        raise StreamError(node_name(node), f"has elements that begin {-lead} frames before the first and reach over "
                          f"{reach}", "pad at most the frames that its kernel reaches back")
    return TimeAxis(time.axis, 0, time.hop // stride, (lead + keep) // stride)


def _pads(stream: StreamGraph, node: onnx.NodeProto, kernel: tuple[list[int], list[int], list[int]]) -> list[int]:
    """Return the explicit pads of a kernel, its extents, strides and dilations: those before, then those behind.

    SAME_UPPER and SAME_LOWER as in ONNX's specification of Conv.
    """
    given, rank = attributes_of(node), len(kernel[0])
    auto = given.get("auto_pad", b"NOTSET")
    if auto in (b"NOTSET", b"VALID"):
        stated = given.get("pads") if auto == b"NOTSET" else None
        return list(stated or [0] * 2 * rank)  # type: ignore[call-overload]
    total = [max((math.ceil(extent / stride) - 1) * stride + (size - 1) * dilation + 1 - extent, 0)
             for extent, size, stride, dilation in zip(stream.shapes[node.input[0]][2:], *kernel, strict=True)]
    less, more = [each // 2 for each in total], [each - each // 2 for each in total]
    return [*less, *more] if auto == b"SAME_UPPER" else [*more, *less]


def pad(stream: StreamGraph, node: onnx.NodeProto) -> bool:
    """Write a Pad without that of time, whose zeros are the start of the state of what reads it.

    Raises
    ------
    StreamError
        If it pads behind the last frame, with something else than zeros, or what is no beginning.
    """
    time, rank = stream.axes[node.input[0]], len(stream.shapes[node.input[0]])
    pads = stream.constants.get(node.input[1]) if len(node.input) > 1 else None
    if pads is None or any(name for name in node.input[3:]):
        return False
    pads = pads.copy()
    before, behind = int(pads[time.axis]), int(pads[time.axis + rank])
    value = stream.constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    if behind or before < 0:
        raise StreamError(node_name(node), f"pads {behind} frames behind the last", _CAUSAL)
    if before and (time.lead > 0 or attributes_of(node).get("mode", b"constant") != b"constant"
                   or (value is not None and value.any()) or (len(node.input) > 2 and node.input[2] and value is None)):
        raise StreamError(node_name(node), "pads with something else than zeros, or behind a layer that does not",
                          "pad all layers causally, with zeros")
    pads[time.axis] = 0
    made = onnx.NodeProto()
    made.CopyFrom(node)
    made.input[1] = stream.constant(f"{node.output[0]}:pads", pads.tolist())
    stream.nodes.append(made)
    stream.axes[node.output[0]] = TimeAxis(time.axis, time.length + before, time.hop, time.lead - before)
    return True
