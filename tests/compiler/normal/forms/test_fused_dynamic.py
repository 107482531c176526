"""Products quantised at run time, and a sum before a LayerNormalization, as ONNX Runtime's optimiser fuses them."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.exactness import assert_layers
from tilewright.compiler.normal.rules.normal_form import normalise

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


@pytest.mark.parametrize(("directions", "per_channel"), [(1, False), (2, True)])
def test_a_recurrence_quantised_at_run_time_is_an_lstm_of_its_weights(directions, per_channel):
    hidden, steps = 6, 5
    constants = {}
    for name, inputs in (("w", 16), ("r", hidden)):
        size = (directions, 4 * hidden) if per_channel else (directions,)
        constants |= {name: _RNG.integers(-127, 128, (directions, inputs, 4 * hidden)).astype(np.int8),
                      f"{name}_scale": _RNG.uniform(.001, .003, size).astype(np.float32),
                      f"{name}_zero": np.zeros(size, np.int8)}
    constants["b"] = _RNG.normal(size=(directions, 8 * hidden)).astype(np.float32)
    node = helper.make_node(
        "DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"],
        ["y", "", "c"], "lstm", domain=_MS, hidden_size=hidden,
        direction="bidirectional" if directions == 2 else "forward")
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", _FLOAT, (steps, 1, 16))],
        [helper.make_tensor_value_info(name, _FLOAT, None) for name in "yc"],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(_MS, 1)],
                              ir_version=8)
    form = normalise(proto)
    assert [each.op_type for each in form.proto.graph.node] == ["LSTM"]
    assert "not those of the file" in " ".join(form.notes)
    feed = {"x": _RNG.normal(size=(steps, 1, 16)).astype(np.float32)}
    before, after = (onnxruntime.InferenceSession(each.SerializeToString(), providers=["CPUExecutionProvider"])
                     .run(["y", "c"], feed) for each in (proto, form.proto))
    for expected, found in zip(before, after, strict=True):
        assert expected.shape == found.shape
        np.testing.assert_allclose(found, expected, atol=.03)   # it quantises what it reads to 8 bits
        assert np.abs(expected).max() > .3


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
