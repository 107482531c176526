"""Attributes that no operator takes, and inputs and data that are none, are refused on reading, with what is wrong."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.cli.test_app import refused
from tilewright.compiler.errors import BadModelError
from tilewright.compiler.onnx.reader import read_model


def _model(*nodes, constants=None, inputs=()):
    held = {"s": np.float32(.05), "z": np.int8(0), "w": np.ones((4, 3, 3, 3), np.int8), **(constants or {})}
    weights = helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wd"], "weights")
    graph = helper.make_graph(
        [weights, *nodes], "bad", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 8)), *inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in held.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _conv(**attributes):
    return helper.make_node("Conv", ["x", "wd"], ["y"], "product", **attributes)


@pytest.mark.parametrize(("node", "named"), [
    (helper.make_node("Transpose", ["x"], ["y"], "turn", perm=[0, 1, 1, 3]), "each axis once"),
    (_conv(auto_pad="SAME"), "SAME_LOWER"), (_conv(kernel_shape=[5, 5]), r"kernel_shape \[3, 3\]")])
def test_an_attribute_that_no_operator_takes_is_refused_with_its_node(node, named):
    with pytest.raises(BadModelError, match=named) as refusal:
        read_model(_model(node).SerializeToString())
    assert repr(node.name) in str(refusal.value)


def test_scales_by_channel_of_a_model_too_old_for_them_are_refused_with_the_opset_that_has_them():
    model = _model(_conv())
    model.opset_import[0].version = 11
    assert read_model(model.SerializeToString()).graph.node
    model.graph.node[0].attribute.append(helper.make_attribute("axis", 0))
    with pytest.raises(BadModelError, match="opset 13 or later") as refusal:
        read_model(model.SerializeToString())
    assert "not 11" in str(refusal.value)


@pytest.mark.parametrize("node", [
    helper.make_node("Transpose", ["x"], ["y"], "turn", perm=[3, 1, 0, 2]),
    _conv(auto_pad="VALID", kernel_shape=[3, 3])])
def test_one_that_it_takes_is_read(node):
    assert read_model(_model(node).SerializeToString()).graph.node


def test_an_input_that_is_no_tensor_is_refused_as_such(tmp_path):
    several = helper.make_tensor_sequence_value_info("several", TensorProto.FLOAT, None)
    path = tmp_path / "net.onnx"
    onnx.save(_model(_conv(), inputs=[several]), path)
    assert "'several' must be a tensor" in refused(2, "check", path)


def test_an_index_that_nothing_has_is_refused_with_those_that_there_are(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(_model(helper.make_node("Gather", ["x", "i"], ["y"], "chosen", axis=1),
                     constants={"i": np.array([17], np.int64)}), path)
    assert "indices from -3 to 2, not 17" in refused(2, "run", path, "--float")


def test_an_offset_of_external_data_is_a_number(tmp_path):
    proto = _model(_conv())
    (weights,) = (each for each in proto.graph.initializer if each.name == "w")
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "net.data"), ("offset", "first")):
        weights.external_data.add(key=key, value=value)
    (tmp_path / "net.data").write_bytes(bytes(108))
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(BadModelError, match="number as offset, not 'first'"):
        read_model(tmp_path / "net.onnx")
