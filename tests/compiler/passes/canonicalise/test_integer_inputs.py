"""Integers that a model takes are laid by the host in the shape and order in which the first layer reads them."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.compiler.normal.graphs import node
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource

PADS = {"channels last": [0, 1, 1, 0, 0, 1, 1, 0], "channels first": [0, 0, 1, 1, 0, 0, 1, 1]}


def convolved(shape, before, *, kind="int8", kernel=(3, 3), last="x"):
    """Return a model that takes integers, with a Conv behind nodes that move them, and its constants."""
    levels = np.dtype(kind).type
    constants = {"s": np.float32(0.05), "z": levels(7), "w": np.random.default_rng(0).integers(
        -128, 127, (8, 4, *kernel)).astype(np.int8), "ws": np.float32(0.01), "wz": np.int8(0), "ys": np.float32(0.5),
                 "axes": np.array([2], np.int64), "last": np.array(PADS["channels last"], np.int64),
                 "first": np.array(PADS["channels first"], np.int64)}
    nodes = [*before, node("DequantizeLinear", [last, "s", "z"], "d"),
             node("DequantizeLinear", ["w", "ws", "wz"], "wd"),
             node("Conv", ["d", "wd"], "c", strides=[1, 2]), node("QuantizeLinear", ["c", "ys", "wz"], "q"),
             node("DequantizeLinear", ["q", "ys", "wz"], "y")]
    graph = helper.make_graph(
        nodes, "integers", [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize(("shape", "before", "kernel"), [
    ((1, 4, 12), [("Unsqueeze", ["x", "axes"], {})], (1, 3)),
    ((1, 8, 8, 4), [("Pad", ["x", "last", "z"], {}), ("Transpose", ["p0"], {"perm": [0, 3, 1, 2]})], (3, 3)),
    ((1, 8, 8, 4), [("Transpose", ["x"], {"perm": [0, 3, 1, 2]}), ("Pad", ["p0", "first", "z"], {})], (3, 3)),
])
def test_no_pass_moves_the_integers_of_an_input(tmp_path, kind, shape, before, kernel):
    nodes = [node(op, inputs, f"p{index}", **attributes) for index, (op, inputs, attributes) in enumerate(before)]
    onnx.save(convolved(shape, nodes, kind=kind, kernel=kernel, last=nodes[-1].output[0]), tmp_path / "net.onnx")
    run = run_model(ModelSource.of(tmp_path / "net.onnx"), PRESETS["base"], "fast", None)
    assert run.comparison.matches
    assert [layer.kind for layer in run.report.layers] == ["conv"]
