"""Constants that are added to levels, or joined with them, lie in memory beside the weights; results are exact."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.session import InferenceSession

SHAPE, BEHIND = (1, 20, 24), (1, 23, 24)
LEVEL = 0.05
RNG = np.random.default_rng(0)


def embedded(dtype, swapped):
    """Return rows of levels, joined with three constant rows, plus a constant of each element."""
    info, middle = np.iinfo(dtype), 128 if dtype == np.uint8 else 0
    constants = {"s": np.float32(0.05), "z": dtype(3), "t": np.float32(0.07), "u": dtype(5), "v": np.float32(1 / 64),
                 "w": dtype(middle), "rows": RNG.integers(info.min, info.max, (1, 3, 24)).astype(dtype),
                 "places": RNG.integers(info.min, info.max, BEHIND).astype(dtype)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             helper.make_node("DequantizeLinear", ["rows", "s", "z"], ["c"]),
             helper.make_node("Concat", ["d", "c"] if swapped else ["c", "d"], ["j"], axis=1),
             helper.make_node("QuantizeLinear", ["j", "s", "z"], ["qj"]),
             helper.make_node("DequantizeLinear", ["qj", "s", "z"], ["dj"]),
             helper.make_node("DequantizeLinear", ["places", "v", "w"], ["k"]),
             helper.make_node("Add", ["k", "dj"] if swapped else ["dj", "k"], ["r"]),
             helper.make_node("QuantizeLinear", ["r", "t", "u"], ["e"]),
             helper.make_node("DequantizeLinear", ["e", "t", "u"], ["y"])]
    graph = helper.make_graph(
        nodes, "embedded", [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, BEHIND)],
        [numpy_helper.from_array(np.asarray(array), key) for key, array in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_rows_and_places_of_constants(tmp_path, dtype, swapped):
    path = tmp_path / "model.onnx"
    onnx.save(embedded(dtype, swapped), path)
    done = run_model(ModelSource.of(path), PRESETS["base"], "fast", None)
    assert done.report.core_cycles == 0
    feed = {"x": (RNG.normal(size=SHAPE) * 3).astype(np.float32)}
    (ours,) = InferenceSession(path, "nano").run(None, feed)
    (theirs,) = onnx_session(path).run(None, feed)
    assert np.array_equal(ours, theirs)


def test_a_machine_without_an_adder_adds_them_on_the_core(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(embedded(np.int8, False), path)
    feed = {"x": (RNG.normal(size=SHAPE) * 3).astype(np.float32)}
    (ours,) = InferenceSession(path, "nano,residual_adder=false").run(None, feed)
    (theirs,) = onnx_session(path).run(None, feed)
    assert np.array_equal(ours, theirs)


def biased_rows():
    """Return rows times a matrix, plus a constant of each element, as a mask of scores is one."""
    constants = {"s": np.float32(LEVEL), "z": np.int8(3), "v": np.float32(1 / 64), "w": np.int8(0),
                 "levels": RNG.integers(-127, 127, (24, 32)).astype(np.int8),
                 "mask": RNG.integers(-127, 127, (20, 32)).astype(np.int8)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             helper.make_node("DequantizeLinear", ["levels", "v", "w"], ["m"]),
             helper.make_node("MatMul", ["d", "m"], ["p"]),
             helper.make_node("QuantizeLinear", ["p", "s", "z"], ["qp"]),
             helper.make_node("DequantizeLinear", ["qp", "s", "z"], ["dp"]),
             helper.make_node("DequantizeLinear", ["mask", "v", "w"], ["k"]),
             helper.make_node("Add", ["dp", "k"], ["r"]),
             helper.make_node("QuantizeLinear", ["r", "s", "z"], ["e"]),
             helper.make_node("DequantizeLinear", ["e", "s", "z"], ["y"])]
    graph = helper.make_graph(
        nodes, "biased", [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 20, 32))],
        [numpy_helper.from_array(np.asarray(array), key) for key, array in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_a_constant_is_added_to_a_product_of_rows(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(biased_rows(), path)
    done = run_model(ModelSource.of(path), PRESETS["base"], "fast", None)
    assert done.report.core_cycles == 0
    feed = {"x": RNG.normal(size=SHAPE).astype(np.float32)}
    (ours,), (theirs,) = InferenceSession(path, "nano").run(None, feed), onnx_session(path).run(None, feed)
    assert np.abs(ours - theirs).max() <= LEVEL * 1.001     # parameters of a product, whose sums are rounded once
