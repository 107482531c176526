"""Levels that are read by another quantisation than they were written with are another tensor of the same bytes."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.runtime.oracle.conversion import quantise_input
from tilewright.runtime.oracle.onnx_runtime import run_reference


def model_of(*, moved=False):
    """Return two sums of levels of which the second reads the first by another scale, moved or as they are."""
    constants = {"s": np.float32(0.05), "z": np.int8(3), "t": np.float32(0.0501), "y": np.int8(-9),
                 "pads": np.array([0, 0, 1, 0, 0, 0, 0, 2])}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["a"]),
             helper.make_node("Add", ["a", "a"], ["b"]), helper.make_node("QuantizeLinear", ["b", "s", "z"], ["p"]),
             *([helper.make_node("Pad", ["p", "pads", "z"], ["m"])] if moved else []),
             helper.make_node("DequantizeLinear", ["m" if moved else "p", "t", "y"], ["c"]),
             helper.make_node("DequantizeLinear", ["m" if moved else "p", "s", "z"], ["d"]),
             helper.make_node("Add", ["c", "d"], ["e"]), helper.make_node("QuantizeLinear", ["e", "t", "z"], ["r"]),
             helper.make_node("DequantizeLinear", ["r", "t", "z"], ["out"])]
    shape = (1, 4, 7, 8) if moved else (1, 4, 6, 6)
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 6, 6))],
                              [helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made.SerializeToString()


@pytest.mark.parametrize("moved", [False, True])
def test_what_is_read_by_another_scale_is_computed_as_onnx_runtime_does(moved):
    model = model_of(moved=moved)
    given = np.random.default_rng(4).normal(0, 2, (1, 4, 6, 6)).astype(np.float32)
    network = compile_network(model)
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    (info,) = network.inputs
    found = run_network(network, {info.name: quantise_input(info, given)})
    theirs = run_reference(model, {"x": given})
    assert np.array_equal(found["r"].ravel(), theirs["r"].ravel())


def test_levels_of_two_scales_that_are_joined_may_be_read_as_whole_numbers():
    """Nothing says then by which scale all of them are: what is joined keeps its bytes."""
    constants = {"s": np.float32(0.05), "z": np.int8(3), "t": np.float32(1), "y": np.int8(-9), "two": np.int32(2)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["a"]),
             helper.make_node("Add", ["a", "a"], ["b"]), helper.make_node("QuantizeLinear", ["b", "t", "y"], ["p"]),
             helper.make_node("Concat", ["q", "p"], ["m"], axis=1),
             helper.make_node("Cast", ["m"], ["w"], to=TensorProto.INT32),
             helper.make_node("Mul", ["w", "two"], ["out"])]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 6, 6))],
                              [helper.make_tensor_value_info("out", TensorProto.INT32, (1, 8, 6, 6))],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    given = np.random.default_rng(5).normal(0, 2, (1, 4, 6, 6)).astype(np.float32)
    network = compile_network(model)
    (info,), (out,) = network.inputs, network.outputs
    found = run_network(network, {info.name: quantise_input(info, given)})[out.name]
    assert np.array_equal(found.ravel(), run_reference(model, {"x": given})["out"].ravel())
