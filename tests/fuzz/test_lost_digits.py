"""ONNX Runtime's normalisations are not compared with where float32 loses their digits, and are everywhere else."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.fuzz.lost_digits import loses_digits
from tilewright.runtime.oracle.onnx_runtime import session

_LARGE = np.float32(838107.1)


def model(op, shape, constants=(), **attributes):
    names = [f"constant{index}" for index in range(len(constants))]
    node = helper.make_node(op, ["x", *names], ["y"], name="node", **attributes)
    kinds = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([node], "g", kinds[:1], kinds[1:], [
        onnx.numpy_helper.from_array(np.array(value, np.float32), name)
        for name, value in zip(names, constants, strict=True)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


CASES = {
    "LRN": (model("LRN", [1, 4, 1, 1], size=3), [_LARGE, 1, 1, 1], [0, 0, 0, 0]),
    "InstanceNormalization": (
        model("InstanceNormalization", [1, 2, 1, 1], ([1.2502253, 0.88780546], [0.7238329, 0.83641136]), epsilon=0.01),
        [-4588.173, 4588.173], [0.7238329, 0.83641136]),
}


@pytest.fixture(params=CASES)
def case(request):
    proto, x, exact = CASES[request.param]
    x, exact = np.array(x, np.float32).reshape(1, -1, 1, 1), np.array(exact, np.float32)
    if request.param == "LRN":
        squares = np.convolve(x.ravel().astype(np.float64)**2, [1, 1, 1], "same")
        exact = (x.ravel() / (1 + 1e-4 / 3 * squares)**0.75).astype(np.float32)
    return proto, x, exact.reshape(x.shape)


def answers(proto, x):
    return {"x": x, "y": session(proto.SerializeToString()).run(["y"], {"x": x})[0]}


def test_digits_that_float32_loses_are_told(case):
    proto, x, exact = case
    assert "float32 is not that of float64" in loses_digits(proto, ["node"], answers(proto, x), exact)


def test_a_result_that_is_wrong_in_float64_too_is_compared(case):
    proto, x, exact = case
    assert loses_digits(proto, ["node"], answers(proto, x), exact + np.float32(1)) == ""


def test_a_result_that_onnx_runtime_gets_right_is_compared(case):
    proto, x, _ = case
    x = np.linspace(-1, 1, x.size * 6, dtype=np.float32).reshape(1, x.size, 2, 3)
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    theirs = answers(proto, x)
    assert loses_digits(proto, ["node"], theirs, theirs["y"]) == ""


def test_other_layers_are_compared(case):
    proto, x, exact = case
    assert loses_digits(proto, ["another"], answers(proto, x), exact) == ""


def apart(variance):
    """Return a row less its mean over its deviation, of a variance that is rounded to tens, and all its tensors."""
    nodes = [helper.make_node(op, inputs, [output], name=output, **attributes) for op, inputs, output, attributes in (
        ("ReduceMean", ["x"], "mean", {"axes": [3]}), ("Sub", ["x", "mean"], "less", {}),
        ("Div", ["less", "deviation"], "y", {}))]
    names = ("mean", "less", "y")
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 1, 1, 3])],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names],
        [onnx.numpy_helper.from_array(np.sqrt(np.float32(variance)), "deviation")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.array([1, 2, 3], np.float32).reshape(1, 1, 1, 3)
    found = session(proto.SerializeToString()).run(list(names), {"x": x})
    return proto, dict(zip(names, found, strict=True))


@pytest.mark.parametrize(("variance", "reason"), [(0, "ONNX Runtime's Div behind a mean divides by 0"), (10, "")])
def test_a_variance_of_zero_is_told(variance, reason):
    proto, theirs = apart(variance)
    assert loses_digits(proto, ["mean", "less", "y"], theirs, np.zeros((1, 1, 1, 3), np.int8)) == reason
