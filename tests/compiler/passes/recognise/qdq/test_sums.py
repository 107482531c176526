"""ReduceMean and ReduceSum over any axes of an image run on the datapath, within one level."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource

SHAPE = (1, 12, 7, 9)


def reduction(name, axes, keepdims, dtype, shape=SHAPE):
    """Return Q → DQ → reduction → Q → DQ over an image."""
    scale = 0.05 if name == "ReduceMean" else 0.6
    constants = {"s": np.float32(0.05), "z": dtype(3), "t": np.float32(scale), "u": dtype(5)}
    inputs, attributes = ["d"], {"axes": axes}
    if name == "ReduceSum":     # an input since opset 13
        constants["axes"], inputs, attributes = np.array(axes, np.int64), ["d", "axes"], {}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             helper.make_node(name, inputs, ["r"], keepdims=keepdims, **attributes),
             helper.make_node("QuantizeLinear", ["r", "t", "u"], ["e"]),
             helper.make_node("DequantizeLinear", ["e", "t", "u"], ["y"])]
    reduced = np.zeros(shape).sum(axis=tuple(axes), keepdims=bool(keepdims)).shape
    graph = helper.make_graph(
        nodes, "reduction", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, reduced)],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[1], [2], [3], [-1, -2], [1, 2, 3], [1, 2], [-3]], ids=str)
@pytest.mark.parametrize("name", ["ReduceMean", "ReduceSum"])
def test_any_axes_of_an_image(tmp_path, name, axes, keepdims, dtype):
    path = tmp_path / "model.onnx"
    onnx.save(reduction(name, axes, keepdims, dtype), path)
    done = run_model(ModelSource.of(path), PRESETS["nano"], "fast", None)
    assert done.comparison.matches
    assert done.comparison.levels <= 1
    assert done.report.core_cycles == 0


@pytest.mark.parametrize(("axes", "shape"), [([0, 1], (1, 3, 4, 4)), ([0, 2], (3, 4, 5))])
def test_others_are_the_cores(axes, shape):
    network = compile_network(reduction("ReduceSum", axes, 1, np.int8, shape).SerializeToString())
    assert any(isinstance(layer, CoreLayer) and layer.reason for layer in network.layers)


def test_sums_along_many_pixels_are_the_datapaths():
    network = compile_network(reduction("ReduceSum", [2, 3], 1, np.int8, (1, 3, 100, 3)).SerializeToString())
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
