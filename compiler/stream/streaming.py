"""Rewrite a network over a window of time as one of the new frames, with rings of earlier ones as state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import numpy_helper

from tilewright.compiler.control.node_writer import attributes_of, node_name
from tilewright.compiler.onnx.shapes import fix_batch, infer_shapes
from tilewright.compiler.stream.kernel_rules import KERNELS, pad, sliding
from tilewright.compiler.stream.move_rules import ELEMENTWISE, FRAME_RULES, SHAPED, elementwise, reshaped
from tilewright.compiler.stream.stream_graph import StreamGraph
from tilewright.compiler.stream.time_axis import CoarserFrames, StreamError, TimeAxis
from tilewright.errors import InputError

__all__ = ["StreamedNetwork", "streamed"]

_WHOLE = {"GlobalAveragePool", "GlobalMaxPool", "Concat", "Slice", *ELEMENTWISE, *FRAME_RULES, *SHAPED, *KERNELS}
"""Operators that may read a whole window of what arrives frame by frame; of others it is not known."""

_MOST_FRAMES = 4096


@dataclass(frozen=True, slots=True)
class StreamedNetwork:
    """A network of new frames.

    Attributes
    ----------
    proto : ModelProto
    state : mapping of str to str
        By input that is state, the output that it is in the next call.
    axis, frames, window : int
        The axis of the input that is time, the new frames of a call, and those of the window.
    calls : int
        The call, from the start of the state, whose outputs are the window's, or the last of the window's.
    whole : tuple of str
        Nodes that read the whole window of what is before them, so that all behind them is computed in every call.
    ends : mapping of str to (int, int)
        Of each output with an axis of time that axis, and the elements of the stream, from the first call on, up to
        the window's last.
    """

    proto: onnx.ModelProto
    state: Mapping[str, str]
    axis: int
    frames: int
    window: int
    calls: int
    whole: tuple[str, ...]
    ends: Mapping[str, tuple[int, int]]


def streamed(proto: onnx.ModelProto, axis: int) -> StreamedNetwork:
    """Return the stream of a model of one input whose ``axis`` is time.

    Each call takes as few new frames as the model's strides allow. Outputs that have an axis of time are the new
    elements of each call; others are those of the window that ends with the call.

    Raises
    ------
    InputError
        If the model has not one input, or no such axis.
    StreamError
        If it reads frames that are not there yet, or it is not known how it works frame by frame.
    """
    window = onnx.ModelProto()
    window.CopyFrom(proto)
    fix_batch(window)
    inferred = infer_shapes(window)
    constants = {each.name: numpy_helper.to_array(each) for each in window.graph.initializer}
    inputs = [each for each in window.graph.input if each.name not in constants]
    if len(inputs) != 1:
        raise InputError("Option --stream needs a model of one input, not of "
                         f"{', '.join(each.name for each in inputs)}")
    shapes = {value.name: tuple(extent.dim_value for extent in value.type.tensor_type.shape.dim)
              for value in (*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output)}
    shapes |= {name: values.shape for name, values in constants.items()}
    shape = shapes[inputs[0].name]
    if not 1 <= axis < len(shape) or shape[axis] < 2:
        raise InputError(f"Option --stream must be an axis of time of input {inputs[0].name!r} of shape {shape}, from "
                         f"1 on and of several frames, not {axis}")
    frames = 1
    while frames <= _MOST_FRAMES:
        graph = StreamGraph(shapes, constants, {inputs[0].name: TimeAxis(axis, shape[axis], frames)}, set(constants))
        try:
            return _finished(window, graph, inputs[0], _calls(window, graph))
        except CoarserFrames as coarser:
            frames *= coarser.factor
    raise InputError(f"Option --stream needs strides of at most {_MOST_FRAMES} frames together")


def _calls(window: onnx.ModelProto, graph: StreamGraph) -> int:
    """Write all nodes; return the calls that a window takes."""
    for node in window.graph.node:
        _write(graph, node)
    last = 0
    for value in window.graph.output:
        if (time := graph.axes.get(value.name)) is None:
            continue
        if time.lead < 0:
            raise StreamError(value.name, "is an output with padding", "pad in front of a Conv only")
        last = max(last, -(-(time.lead + time.length) // time.hop))
    return graph.calls or last


def _write(graph: StreamGraph, node: onnx.NodeProto) -> None:
    """Write one node for the stream."""
    if not any(name in graph.axes for name in node.input):
        graph.nodes.append(node)
        if all(name in graph.fixed for name in node.input if name):
            graph.fixed.update(node.output)
        return
    op = "" if node.domain else node.op_type
    done = _rule(graph, node, op)(graph, node)
    if not done and op not in _WHOLE:
        raise StreamError(node_name(node), f"is a {node.op_type}, which is not computed frame by frame",
                          "cut the model before it, or compile the whole window")
    if not done:
        made = onnx.NodeProto()
        made.CopyFrom(node)
        for place, name in enumerate(node.input):
            if name in graph.axes:
                made.input[place] = graph.window(node, name)
        graph.nodes.append(made)


def _rule(graph: StreamGraph, node: onnx.NodeProto, op: str) -> Callable[[StreamGraph, onnx.NodeProto], bool]:
    """Return what writes a node for the stream, and tells whether that is possible frame by frame."""
    if op in KERNELS:
        return sliding if graph.timed(node) == [node.input[0]] else _never
    known = {"Pad": pad, "Concat": _concatenated, "Slice": _sliced, **dict.fromkeys(SHAPED, reshaped),
             **dict.fromkeys(ELEMENTWISE, elementwise), **dict.fromkeys(FRAME_RULES, _framed)}
    return known.get(op, _never)


def _never(graph: StreamGraph, node: onnx.NodeProto) -> bool:
    """Write nothing."""
    del graph, node
    return False


def _framed(graph: StreamGraph, node: onnx.NodeProto) -> bool:
    """Write what computes each frame by itself."""
    time = graph.axes.get(node.input[0])
    if time is None or (time.lead < 0 and node.op_type != "Transpose"):
        return False
    axis = FRAME_RULES[node.op_type](graph, node)
    if axis is None:
        return False
    graph.nodes.append(node)
    for name in filter(None, node.output):
        graph.axes[name] = replace(time, axis=axis)
    return True


def _concatenated(graph: StreamGraph, node: onnx.NodeProto) -> bool:
    """Write the concatenation of frames that arrive together."""
    known = [graph.axes.get(name) for name in node.input]
    along = int(attributes_of(node)["axis"]) % len(graph.shapes[node.output[0]])  # type: ignore[call-overload]
    first = known[0]
    if first is None or along == first.axis or any(
            each is None or (each.axis, each.length, each.hop) != (first.axis, first.length, first.hop)
            or each.lead < 0 for each in known):
        return False
    lead = max(each.lead for each in known if each is not None)
    made = onnx.NodeProto()
    made.CopyFrom(node)
    for place, name in enumerate(node.input):
        made.input[place] = graph.delayed(name, lead - graph.axes[name].lead)
    graph.nodes.append(made)
    graph.axes[node.output[0]] = replace(first, lead=lead)
    return True


def _sliced(graph: StreamGraph, node: onnx.NodeProto) -> bool:
    """Write a Slice of other axes, or one that leaves out the first frames: those are early elements of the stream."""
    time, rank = graph.axes[node.input[0]], len(graph.shapes[node.input[0]])
    stated = [graph.constants.get(name) for name in node.input[1:]]
    if len(stated) < 2 or any(each is None for each in stated):
        return False
    starts, ends = (np.atleast_1d(each).astype(np.int64) for each in stated[:2] if each is not None)
    axes = np.arange(len(starts)) if stated[2:] == [] else np.atleast_1d(np.asarray(stated[2])) % rank
    steps = np.ones(len(starts), np.int64) if len(stated) < 4 else np.atleast_1d(np.asarray(stated[3]))
    places = np.flatnonzero(axes == time.axis)
    if not len(places):
        graph.nodes.append(node)
        graph.axes[node.output[0]] = time
        return True
    place, length = int(places[0]), time.length
    start = int(starts[place]) + (length if starts[place] < 0 else 0)
    if steps[place] != 1 or ends[place] < length or not 0 <= start < length or time.lead < 0:
        return False
    starts[place], ends[place] = 0, np.iinfo(np.int64).max
    made = onnx.NodeProto()
    made.CopyFrom(node)
    made.input[1] = graph.constant(f"{node.output[0]}:starts", starts.tolist())
    made.input[2] = graph.constant(f"{node.output[0]}:ends", ends.tolist())
    graph.nodes.append(made)
    graph.axes[node.output[0]] = replace(time, length=length - start, lead=time.lead + start)
    return True


def _finished(window: onnx.ModelProto, graph: StreamGraph, frames: onnx.ValueInfoProto, calls: int) -> StreamedNetwork:
    """Return the model that was written."""
    time = graph.axes[frames.name]
    if not graph.state:
        raise InputError("Option --stream needs a network that looks at several frames, and this one computes each by "
                         f"itself; give --shape {frames.name}=… with one frame")
    proto = onnx.ModelProto()
    proto.CopyFrom(window)
    del proto.graph.node[:], proto.graph.value_info[:]
    proto.graph.node.extend(graph.nodes)
    proto.graph.initializer.extend(graph.added)
    for value in proto.graph.input:
        if value.name == frames.name:
            value.type.tensor_type.shape.dim[time.axis].dim_value = time.hop
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    proto.graph.input.extend(graph.inputs())
    proto.graph.output.extend(graph.outputs())
    ends = {value.name: graph.axes[value.name] for value in window.graph.output if value.name in graph.axes}
    return StreamedNetwork(proto, graph.pairs, time.axis, time.hop, time.length, calls,
                           tuple(dict.fromkeys(graph.whole)),
                           {name: (each.axis, each.lead + each.length) for name, each in ends.items()})
