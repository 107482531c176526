"""A stream computes call by call, in float and in any form, what the model computes of a whole window."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from tests.support.stream_models import separable_stack
from tilewright.compiler.stream.streaming import streamed
from tilewright.compiler.stream.time_axis import StreamError
from tilewright.errors import InputError
from tilewright.runtime.oracle.onnx_runtime import run_unfused

_FLOAT = np.float32


def frames_of(model, count):
    shape = [each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim]
    return np.random.default_rng(1).normal(size=[*shape[:2], count, *shape[3:]]).astype(_FLOAT)


def calls_of(stream, frames, count):
    """Return the outputs of calls one after the other, from zeros on."""
    shapes = {value.name: [each.dim_value for each in value.type.tensor_type.shape.dim]
              for value in stream.proto.graph.input}
    state, found = {name: np.zeros(shapes[name], _FLOAT) for name in stream.state}, []
    (name,) = set(shapes) - set(state)
    for call in range(count):
        part = frames.take(np.arange(call * stream.frames, (call + 1) * stream.frames), stream.axis)
        outputs = run_unfused(stream.proto, {name: part, **state})
        state = {each: outputs[output] for each, output in stream.state.items()}
        found.append(next(iter(outputs.values())))
    return found


def window_of(model, frames):
    return next(iter(run_unfused(model, {model.graph.input[0].name: frames}).values()))


def near(value, expected):
    np.testing.assert_allclose(value, expected, atol=1e-5 * np.abs(expected).max())


def test_a_sliding_window_is_that_of_the_last_frames():
    model = separable_stack(((3, 8), (4, 6), (5, 4)), frames=12, features=5, classes=3)
    stream = streamed(model, 2)
    assert (stream.frames, stream.window, stream.calls) == (1, 12, 12)
    frames = frames_of(model, 15)
    found = calls_of(stream, frames, 15)
    for call in (11, 12, 14):
        near(found[call], window_of(model, frames[:, :, call - 11:call + 1]))


@pytest.mark.parametrize("strides", [(1, 1), (2, 1), (1, 3), (2, 2)])
def test_causal_layers_give_the_elements_of_one_long_window(strides):
    model = separable_stack(((5, 4), (3, 6)), frames=12, features=3, causal=True, strides=strides)
    stream, frames = streamed(model, 2), frames_of(model, 12)
    assert stream.frames == strides[0] * strides[1]
    near(np.concatenate(calls_of(stream, frames, 12 // stream.frames), 2), window_of(model, frames))


def test_a_window_that_strides_use_up_in_part_ends_with_the_call_of_its_last_frame_used():
    model = separable_stack(((10, 4),), frames=49, features=3, classes=2, strides=(2,))
    stream, frames = streamed(model, 2), frames_of(model, 49)
    assert (stream.frames, stream.calls) == (2, 24)
    near(calls_of(stream, frames, 24)[-1], window_of(model, frames))


_BLOCK = """<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 4, 9, 5] x) => (float[1, N] y) {
    a = Conv<kernel_shape = [3, 3], pads = [0, 1, 0, 1]>(x, w)
    b = Slice(x, from, to, axis)
    s = Add(a, b)
    t = Transpose<perm = [0, 2, 1, 3]>(s)
    p = Sigmoid(t)
    u = Transpose<perm = [0, 2, 1, 3]>(p)
    m = MaxPool<kernel_shape = [2, 2], strides = [1, 2]>(u)
    c = Concat<axis = 1>(m, m)
    g = ReduceMean<axes = [2, 3], keepdims = 0>(c)
    y = Softmax<axis = 1>(g)
}"""


def test_branches_wait_for_each_other():
    model = parser.parse_model(_BLOCK)
    weights = np.random.default_rng(0).normal(size=(4, 4, 3, 3)).astype(_FLOAT)
    for name, values in (("w", weights), ("from", np.array([2])), ("to", np.array([10**6])), ("axis", np.array([2]))):
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    stream, frames = streamed(model, 2), frames_of(model, 11)
    found = calls_of(stream, frames, 11)
    near(found[8], window_of(model, frames[:, :, :9]))
    near(found[10], window_of(model, frames[:, :, 2:]))


def one_node(op, *inputs, constants=None, shape=(1, 4, 8, 3), **attributes):
    values = [numpy_helper.from_array(np.asarray(each), name) for name, each in (constants or {}).items()]
    graph = helper.make_graph([helper.make_node(op, ["x", *inputs], ["y"], "here", **attributes)], "net",
                              [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


_KERNEL = {"w": np.ones((2, 4, 3, 1), _FLOAT)}


@pytest.mark.parametrize(("model", "reason"), [
    (one_node("Conv", "w", constants=_KERNEL, pads=[1, 0, 1, 0]), "behind the last"),
    (one_node("Conv", "w", constants=_KERNEL, auto_pad="SAME_UPPER"), "behind the last"),
    (one_node("Conv", "w", constants=_KERNEL, pads=[4, 0, 0, 0]), "reaches back"),
    (one_node("MaxPool", kernel_shape=[3, 1], pads=[2, 0, 0, 0]), "pools"),
    (one_node("Pad", "p", constants={"p": np.array([0, 0, 0, 0, 0, 0, 2, 0])}), "behind the last"),
    (one_node("Add", "c", constants={"c": np.ones((8, 1), _FLOAT)}), "'c'"),
    (one_node("ConvTranspose", "w", constants={"w": np.ones((4, 2, 3, 1), _FLOAT)}), "ConvTranspose")])
def test_what_reads_other_frames_is_refused_by_its_name(model, reason):
    with pytest.raises(StreamError) as caught:
        streamed(model, 2)
    assert "'here'" in str(caught.value)
    assert reason in str(caught.value)


def test_padding_behind_a_layer_without_is_refused():
    model = separable_stack(((3, 4), (3, 4)), frames=9, features=4)
    pads = [each for each in model.graph.node[3].attribute if each.name == "pads"]
    pads[0].CopyFrom(helper.make_attribute("pads", [2, 0, 0, 0]))
    with pytest.raises(StreamError, match="depth1"):
        streamed(model, 2)


@pytest.mark.parametrize("axis", [0, 3, 7])
def test_an_axis_that_is_none_of_time_is_refused(axis):
    with pytest.raises(InputError, match="'x'"):
        streamed(separable_stack(((3, 4),), frames=9, features=4), axis)


def test_a_network_of_single_frames_is_no_stream():
    with pytest.raises(InputError, match="by itself"):
        streamed(one_node("Relu"), 2)
