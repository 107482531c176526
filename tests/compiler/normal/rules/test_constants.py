"""Constants that the model quantises, once or twice, are folded; what would compute with a constant is refused."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper

from tests.support.exactness import assert_layers
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.passes.pass_order import compile_network

SHAPE = (1, 4, 6, 6)
SCALES = {"x": 0.1, "c": 0.2, "q": 0.15, "y": 0.3}
ZERO_POINTS = {"x": 3, "c": -5, "q": 1, "y": 0}


def quantise(name, output, kind):
    return helper.make_node("QuantizeLinear", [name, f"{kind}_scale", f"{kind}_zero_point"], [output])


def dequantise(name, output, kind):
    return helper.make_node("DequantizeLinear", [name, f"{kind}_scale", f"{kind}_zero_point"], [output])


def model(chain, combine):
    """Return a model that combines its input with ``chain``, which makes tensor e from the integer constant c."""
    rng = np.random.default_rng(4)
    constants = {"c": rng.integers(-128, 128, SHAPE).astype(np.int8), "shape": np.array(SHAPE, np.int64)}
    constants |= {f"{kind}_scale": np.float32(value) for kind, value in SCALES.items()}
    constants |= {f"{kind}_zero_point": np.int8(value) for kind, value in ZERO_POINTS.items()}
    nodes = [quantise("x", "qx", "x"), dequantise("qx", "dx", "x"), *chain, combine, quantise("a", "qa", "y"),
             dequantise("qa", "y", "y")]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, None, 6, 6))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(made)
    return made.SerializeToString()


def test_a_bias_that_is_computed_for_a_product_of_levels_is_a_constant():
    rng = np.random.default_rng(2)
    constants = {"w": rng.integers(-127, 128, (8, 6)).astype(np.int8), "wz": np.zeros(6, np.int8),
                 "b": rng.integers(-99, 99, 6).astype(np.int32), "s": np.float32(0.02), "z": np.int8(3),
                 "ws": np.full(6, 0.01, np.float32)}
    parts = {"b0": constants["b"][:2], "b1": constants.pop("b")[2:]}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("Concat", ["b0", "b1"], ["b"], axis=0),
             helper.make_node("QGemm", ["q", "s", "z", "w", "ws", "wz", "b", "s", "z"], ["p"], domain="com.microsoft"),
             helper.make_node("DequantizeLinear", ["p", "s", "z"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 6))],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in (constants | parts).items()])
    made = helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    layers = compile_network(made.SerializeToString()).layers
    assert [isinstance(layer, CoreLayer) for layer in layers] == [False]
    assert_layers(made.SerializeToString())


def test_scales_that_are_computed_for_a_mixed_convolution_keep_their_axis():
    rng = np.random.default_rng(2)
    constants = {"w": rng.integers(-127, 128, (3, 1, 2, 2)).astype(np.int8), "wz": np.zeros(3, np.int8),
                 "s": np.float32(0.02), "z": np.uint8(3), "ws0": np.float32([0.01]), "ws1": np.float32([0.02, 0.03]),
                 "zi": np.int8(-9)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("Concat", ["ws0", "ws1"], ["ws"], axis=0),
             helper.make_node("QLinearConv", ["q", "s", "z", "w", "ws", "wz", "s", "z"], ["p"]),
             helper.make_node("DequantizeLinear", ["p", "s", "z"], ["f"]),
             helper.make_node("QuantizeLinear", ["f", "s", "zi"], ["g"]),
             helper.make_node("DequantizeLinear", ["g", "s", "zi"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1, 6, 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 3, 5, 5))],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()])
    made = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    assert not any(isinstance(layer, CoreLayer) for layer in assert_layers(made.SerializeToString()).layers)


TWICE = [dequantise("c", "dc", "c"), quantise("dc", "qc", "q"), dequantise("qc", "e", "q")]
MOVED = {
    "alone": [],
    "transposed": [helper.make_node("Transpose", ["dc"], ["m"], perm=[0, 1, 3, 2])],
    "reshaped": [helper.make_node("Reshape", ["dc", "shape"], ["m"])],
    "through Relu": [helper.make_node("Relu", ["dc"], ["m"])],
}
COMBINED = {
    "added": helper.make_node("Add", ["dx", "e"], ["a"]),
    "added first": helper.make_node("Add", ["e", "dx"], ["a"]),
    "multiplied": helper.make_node("Mul", ["dx", "e"], ["a"]),
    "joined": helper.make_node("Concat", ["dx", "e"], ["a"], axis=1),
}


@pytest.mark.parametrize("combine", COMBINED.values(), ids=COMBINED)
@pytest.mark.parametrize("moves", MOVED.values(), ids=MOVED)
def test_a_constant_that_is_quantised_twice_is_exact(moves, combine):
    chain = [TWICE[0], *moves, quantise("m" if moves else "dc", "qc", "q"), TWICE[2]]
    assert_layers(model(chain, combine))


@pytest.mark.parametrize("combine", COMBINED.values(), ids=COMBINED)
def test_nothing_computes_what_is_known(combine):
    network = compile_network(model(TWICE, combine))
    read = {name for layer in network.layers for name in layer.reads if not isinstance(layer, CoreLayer)}
    assert not {"c", "qc"} & read


def test_a_pooling_of_a_constant_is_computed_now():
    pool = helper.make_node("MaxPool", ["c"], ["pc"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    assert_layers(model([pool, dequantise("pc", "e", "c")], COMBINED["added"]))


def test_a_layer_that_reads_a_constant_is_refused():
    pool = helper.make_node("MaxPool", ["c"], ["pc", "places"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    chain = [pool, dequantise("pc", "e", "c")]  # with two results it is not computed now
    with pytest.raises(UnsupportedNodeError, match=r"constant 'c'.* fold constants"):
        compile_network(model(chain, COMBINED["added"]))
