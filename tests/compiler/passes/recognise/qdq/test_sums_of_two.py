"""Sums and differences of two computed tensors of any rank run on the datapath."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.session import InferenceSession

SCALE = 0.07


def pair(name, shape, dtype, relu=False):
    """Return Q → DQ of two inputs → Add or Sub → (Relu) → Q → DQ."""
    constants = {"s": np.float32(0.05), "z": dtype(3), "s2": np.float32(0.031), "z2": dtype(9),
                 "t": np.float32(SCALE), "u": dtype(5)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["qx"]),
             helper.make_node("DequantizeLinear", ["qx", "s", "z"], ["dx"]),
             helper.make_node("QuantizeLinear", ["w", "s2", "z2"], ["qw"]),
             helper.make_node("DequantizeLinear", ["qw", "s2", "z2"], ["dw"]),
             helper.make_node(name, ["dx", "dw"], ["r"]),
             *([helper.make_node("Relu", ["r"], ["p"])] if relu else []),
             helper.make_node("QuantizeLinear", ["p" if relu else "r", "t", "u"], ["e"]),
             helper.make_node("DequantizeLinear", ["e", "t", "u"], ["y"])]
    graph = helper.make_graph(
        nodes, "pair", [helper.make_tensor_value_info(each, TensorProto.FLOAT, shape) for each in ("x", "w")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(array), key) for key, array in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("shape", [(1, 60, 2), (1, 12, 5, 7), (1, 40), (3, 8, 4), (1, 2210, 2),
                                   (1, 2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("name", ["Add", "Sub"])
def test_two_tensors_of_one_shape(tmp_path, name, shape, dtype, relu):
    path = tmp_path / "model.onnx"
    onnx.save(pair(name, shape, dtype, relu), path)
    done = run_model(ModelSource.of(path), PRESETS["base"], "fast", None)
    assert done.report.core_cycles == 0
    rng = np.random.default_rng(1)
    feed = {each: (rng.normal(size=shape) * 3).astype(np.float32) for each in ("x", "w")}
    (ours,) = InferenceSession(path, "nano").run(None, feed)
    (theirs,) = onnx_session(path).run(None, feed)
    assert np.abs(ours - theirs).max() <= SCALE * 1.001
    assert np.mean(ours == theirs) > 0.95
