"""Products and sums with constants of any shape run on the datapath, within one level of ONNX Runtime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session

SCALE = 0.06


def arithmetic(name, shape, constant, dtype, *, constant_first, quantised):
    """Return Q → DQ → arithmetic with a constant of a shape → Q → DQ."""
    rng = np.random.default_rng(0)
    value = (rng.uniform(0.5, 1.5, constant) * rng.choice([-1, 1], constant)).astype(np.float32)
    middle = 128 if dtype == np.uint8 else 0
    constants = {"s": np.float32(0.05), "z": dtype(3), "t": np.float32(SCALE), "u": dtype(5),
                 "v": np.float32(1 / 64), "w": dtype(middle)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"])]
    if quantised:
        constants["levels"] = (np.clip(np.rint(value * 64), -128, 127) + middle).astype(dtype)
        nodes.append(helper.make_node("DequantizeLinear", ["levels", "v", "w"], ["k"]))
    else:
        constants["k"] = value
    nodes += [helper.make_node(name, ["k", "d"] if constant_first else ["d", "k"], ["r"]),
              helper.make_node("QuantizeLinear", ["r", "t", "u"], ["e"]),
              helper.make_node("DequantizeLinear", ["e", "t", "u"], ["y"])]
    graph = helper.make_graph(
        nodes, "arithmetic", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, np.broadcast_shapes(shape, constant))],
        [numpy_helper.from_array(np.asarray(array), key) for key, array in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize(("dtype", "quantised"), [(np.int8, False), (np.uint8, True)])
@pytest.mark.parametrize(("shape", "constant"), [
    ((1, 60, 2), (1, 60, 2)), ((1, 60, 4), (60, 1)), ((1, 12, 5, 7), (1, 12, 5, 7)), ((1, 12, 5, 7), (7,)),
    ((1, 12, 5, 7), (1, 1, 5, 7)), ((1, 2210, 2), (1, 2210, 2)), ((1, 33), (33,)), ((1, 4, 16, 300), (16, 1)),
    ((1, 1, 5, 7), (1, 12, 1, 1)), ((1, 1, 5, 7), (3, 1, 1))], ids=str)
@pytest.mark.parametrize(("name", "constant_first"), [
    ("Mul", False), ("Add", True), ("Sub", False), ("Sub", True), ("Div", False)])
def test_constants_of_any_shape(tmp_path, name, constant_first, shape, constant, dtype, quantised):
    path = tmp_path / "model.onnx"
    onnx.save(arithmetic(name, shape, constant, dtype, constant_first=constant_first, quantised=quantised), path)
    done = run_model(ModelSource.of(path), PRESETS["base"], "fast", None)
    assert done.report.core_cycles == 0
    assert done.comparison.compared > 0


@pytest.mark.parametrize("name", ["Mul", "Sub"])
def test_values_are_within_a_level(tmp_path, name):
    from tilewright.runtime.session import InferenceSession

    path = tmp_path / "model.onnx"
    onnx.save(arithmetic(name, (1, 300, 2), (1, 300, 2), np.int8, constant_first=True, quantised=False), path)
    image = np.random.default_rng(1).normal(size=(1, 300, 2)).astype(np.float32) * 2
    (ours,) = InferenceSession(path, "nano").run(None, {"x": image})
    (theirs,) = onnx_session(path).run(None, {"x": image})
    assert np.abs(ours - theirs).max() <= SCALE * 1.001
    assert np.mean(ours == theirs) > 0.95


def test_a_division_by_zero_stays_on_the_core(tmp_path):
    path = tmp_path / "model.onnx"
    model = arithmetic("Div", (1, 6, 2), (1, 6, 2), np.int8, constant_first=False, quantised=False)
    divisor = next(each for each in model.graph.initializer if each.name == "k")
    divisor.CopyFrom(numpy_helper.from_array(np.zeros((1, 6, 2), np.float32), "k"))
    onnx.save(model, path)
    assert run_model(ModelSource.of(path), PRESETS["nano"], "fast", None).report.core_cycles > 0
