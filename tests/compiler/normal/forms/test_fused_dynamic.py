"""Products quantised at run time, and a sum before a LayerNormalization, as ONNX Runtime's optimiser fuses them."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.exactness import assert_layers

_RNG = np.random.default_rng(8)
_MS, _FLOAT = "com.microsoft", TensorProto.FLOAT


def _weights(name, inputs, outputs, dtype=np.int8):
    bounds = np.iinfo(dtype)
    return {name: _RNG.integers(bounds.min, bounds.max + 1, (inputs, outputs)).astype(dtype),
            f"{name}_scale": np.full(1, .01, np.float32), f"{name}_zero": np.zeros(1, dtype),
            f"{name}_bias": _RNG.normal(size=outputs).astype(np.float32)}


def _saved(path, nodes, constants):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", _FLOAT, (1, 6, 16))],
                              [helper.make_tensor_value_info("y", _FLOAT, None)],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_MS, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.mark.parametrize("biased", [True, False])
def test_products_are_those_of_their_integers(biased, tmp_path):
    bias = [f"{name}_bias" if biased else "" for name in "vw"]
    nodes = [helper.make_node("DynamicQuantizeMatMul", ["x", "v", "v_scale", "v_zero", bias[0]], ["a"], "first",
                              domain=_MS),
             helper.make_node("Relu", ["a"], ["r"], "relu"),
             helper.make_node("DynamicQuantizeLinear", ["r"], ["q", "s", "z"], "levels"),
             helper.make_node("MatMulIntegerToFloat", ["q", "w", "s", "w_scale", "z", "w_zero", bias[1]], ["m"],
                              "second", domain=_MS), helper.make_node("Neg", ["m"], ["y"], "last")]
    path = _saved(tmp_path / "net.onnx", nodes, {**_weights("v", 16, 24), **_weights("w", 24, 8)})
    network = assert_layers(path, rtol=1e-5)
    assert sum(getattr(layer, "whole", False) for layer in network.layers) == 2


@pytest.mark.parametrize("results", [1, 4])
def test_a_sum_before_a_normalisation_is_a_sum(results, tmp_path):
    outputs = ["n", "", "", "t"][:results]
    nodes = [helper.make_node("Neg", ["x"], ["m"], "other"),
             helper.make_node("SkipLayerNormalization", ["x", "m2", "g", "h", "b"], outputs, "norm", domain=_MS,
                              epsilon=1e-5),
             helper.make_node("Add", ["n", "t" if results > 1 else "m"], ["y"], "last")]
    nodes.insert(1, helper.make_node("Mul", ["m", "half"], ["m2"], "less"))
    vectors = {name: _RNG.normal(size=16).astype(np.float32) for name in "ghb"}
    path = _saved(tmp_path / "net.onnx", nodes, {**vectors, "half": np.float32(.5)})
    assert_layers(path, rtol=1e-4)
