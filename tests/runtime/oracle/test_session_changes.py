"""The reference has the meaning of the file where ONNX Runtime's session changes it by itself, and the change is said.

Expected values are those of ONNX Runtime with nothing fused, which computes in float what the file says.
"""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.runtime.changes_by_session import changes_said
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.comparison import Output
from tilewright.runtime.oracle.onnx_runtime import Reference, changes_by_session
from tilewright.runtime.oracle.plain_sessions import PlainSession

RNG = np.random.default_rng(8)
X = RNG.integers(0, 256, (1, 4, 9, 9)).astype(np.uint8)
WEIGHTS = RNG.integers(-127, 128, (6, 4, 3, 3)).astype(np.int8)
SCALES = RNG.uniform(0.01, 0.03, 6).astype(np.float32)


def model(constants, nodes, output=(1, 6, 7, 7), shape=X.shape):
    """Return a model of ``nodes`` between the DequantizeLinear of x and the QuantizeLinear of y."""
    constants = {"xs": np.float32(0.05), "xz": np.uint8(3), "ys": np.float32(0.4), "yz": np.uint8(5)} | constants
    nodes = [helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xd"]), *nodes,
             helper.make_node("QuantizeLinear", ["c", "ys", "yz"], ["y"])]
    graph = helper.make_graph(nodes, "small", [helper.make_tensor_value_info("x", TensorProto.UINT8, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.UINT8, output)],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def convolution(bias, scales=SCALES, weights=WEIGHTS):
    """Return a Conv of quantised weights with a float bias."""
    constants = {"w": weights, "ws": scales, "wz": np.zeros(6, np.int8), "b": bias.astype(np.float32)}
    return model(constants, [helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
                             helper.make_node("Conv", ["xd", "wd", "b"], ["c"], "product")])


def excluded():
    """Return a Conv of float weights with one that is far larger than the rest, between quantised tensors."""
    weights = (WEIGHTS * np.float32(0.01)).astype(np.float32)
    weights[0, 0, 0, 0] = 60
    return model({"w": weights}, [helper.make_node("Conv", ["xd", "w"], ["c"], "kept")])


def dead(index=2, bias=8.0):
    """Return a convolution with one channel whose weights are as good as 0."""
    scales = SCALES.copy()
    scales[index] = 1e-10
    return convolution(np.full(6, bias), scales)


def far(one, other):
    return int(np.abs(one.astype(int) - other.astype(int)).max())


def outputs(proto, feed=None):
    """Return y of the reference, of the session that is left to itself, and of one with nothing fused."""
    content = proto.SerializeToString()
    feed = feed or {"x": X}
    return (Reference(content).run(feed)["y"], Reference(content, mended=False).run(feed)["y"],
            PlainSession(content, "unfused").run(feed)["y"])


def test_float_weights_stay_float():
    proto = excluded()
    reference, session, unfused = outputs(proto)
    assert far(session, unfused) > 3
    assert far(reference, unfused) == 0
    (change,) = changes_by_session(proto.SerializeToString())
    assert (change.node, change.operator, change.mended) == ("kept", "Conv", True)
    assert "float weights" in change.what


def test_weights_of_a_node_constant_stay_float_too():
    proto = excluded()
    (weights,) = (each for each in proto.graph.initializer if each.name == "w")
    proto.graph.initializer.remove(weights)
    proto.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=weights))
    reference, session, unfused = outputs(proto)
    assert far(session, unfused) > 3
    assert far(reference, unfused) == 0


@pytest.mark.parametrize("bias", [8.0, 12.3, -30.0, 1e6])
def test_a_dead_channel_is_computed_on_the_datapath_and_right(bias):
    proto = dead(bias=bias)
    reference, session, unfused = outputs(proto)
    assert bias < 0 or bias > 100 or far(session, unfused) > 3      # else the result saturates either way
    network = compile_network(proto.SerializeToString())
    assert all(isinstance(layer, Layer) and layer.exact for layer in network.layers)
    ours = run_network(network, {network.inputs[0].name: (X.astype(np.int16) - 128).astype(np.int8)[0]})
    ours = ours[network.outputs[0].name].astype(np.int16).reshape(reference.shape) + 128
    assert far(ours, reference) == 0
    assert far(ours, unfused) <= 1      # elsewhere float sums are rounded
    assert far(ours[:, 2], unfused[:, 2]) == 0


def test_a_channel_that_its_sums_move_is_not_taken_for_dead():
    scales = SCALES.copy()
    scales[2] = 7e-8
    proto = convolution(np.full(6, 8.2), scales)    # 20.5 levels, and the sums move that by up to 0.01
    reference, session, unfused = outputs(proto)
    assert len(np.unique(unfused[:, 2])) == 2
    assert far(session, unfused) > 3
    assert far(reference, unfused) == 0
    assert not all(isinstance(layer, Layer) for layer in compile_network(proto.SerializeToString()).layers)


def test_a_session_that_changes_nothing_is_left_alone():
    assert changes_by_session(convolution(RNG.normal(size=6)).SerializeToString()) == ()


def test_the_sentence_says_what_and_by_how_much(tmp_path):
    proto = excluded()
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    reference, session, _ = outputs(proto)
    (said,) = changes_said(ModelSource(path), {"x": X}, [Output("y", "y", reference)], {"y": reference})
    assert "float weights of kept (Conv)" in said
    assert f"up to {far(session, reference)} levels" in said


def test_an_own_scale_that_is_ignored_is_said_of_the_user_s_file(tmp_path):
    """The file to compile states its bias as floats; the user's own has levels of twice the product of the scales."""
    weights = RNG.integers(-127, 128, (16, 6)).astype(np.int8)
    levels, scale = RNG.integers(-3000, 3000, 6).astype(np.int32), np.float32(0.05 * 0.02)
    constants = {"w": weights, "ws": np.float32(0.02), "wz": np.int8(0)}
    weigh = helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"])
    gemm = helper.make_node("Gemm", ["xd", "wd", "b"], ["c"], "product")
    shapes = {"output": (1, 6), "shape": (1, 16)}
    floats = model(constants | {"b": (levels * 2 * scale).astype(np.float32)}, [weigh, gemm], **shapes)
    own = model(constants | {"bl": levels, "bs": 2 * scale, "bz": np.int32(0)},
                [weigh, helper.make_node("DequantizeLinear", ["bl", "bs", "bz"], ["b"]), gemm], **shapes)
    for name, proto in (("floats", floats), ("own", own)):
        onnx.save(proto, tmp_path / f"{name}.onnx")
    feed = {"x": RNG.integers(0, 256, (1, 16)).astype(np.uint8)}
    right, wrong = outputs(floats, feed)[0], outputs(own, feed)[1]
    assert far(right, outputs(own, feed)[2]) == 0
    assert far(right, wrong) > 3
    source = ModelSource(tmp_path / "floats.onnx", original=tmp_path / "own.onnx")
    (said,) = changes_said(source, feed, [Output("y", "y", right)], {"y": right})
    assert "own scale of the int32 bias of product (Gemm)" in said
    assert f"up to {far(right, wrong)} levels" in said
