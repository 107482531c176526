"""Softmax, LRN and ArgMax of quantised tensors are computed with levels on the host core."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.passes.pass_order import compile_network

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def core(model):
    return [layer.op for layer in compile_network(model).layers if isinstance(layer, CoreLayer)]


def built(op, dtype, zero_point, *, quantised, shape=(1, 8, 4, 3), **attrs):
    """Return a model of one operator between quantisations, or behind one."""
    model = ModelBuilder("qdq", seed=6, dtype=dtype, zero_point=zero_point)
    x = model.input(shape)
    float_ = model.node(op, [model.dequantised(x)], "float", **attrs)
    if quantised:
        y = model.value(shape, np.float32(1 / 200 if op == "Softmax" else x.scale))
        model.quantised(float_, y)
        return model.finish(y)
    kind = TensorProto.INT64 if op.startswith("Arg") else TensorProto.FLOAT
    result = (1, 1, *shape[2:]) if op.startswith("Arg") else shape
    model.outputs.append(helper.make_tensor_value_info("float", kind, result))
    return model.proto().SerializeToString()


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize(("op", "quantised", "kernels", "attrs"), [
    ("Softmax", True, ["SoftmaxOfLevels"], {"axis": 1}), ("Softmax", False, ["SoftmaxOfLevels"], {"axis": -1}),
    ("LogSoftmax", False, ["LogSoftmaxOfLevels"], {"axis": 1}),
    ("LogSoftmax", True, ["LogSoftmaxOfLevels"], {"axis": 1}),
    ("LRN", True, ["ResponseOfLevels"], {"size": 5}), ("LRN", False, ["DequantizeLinear", "LRN"], {"size": 5}),
    ("ArgMax", False, ["ArgMax"], {"axis": 1}), ("ArgMin", False, ["ArgMin"], {"axis": 1})])
def test_levels_stand_for_numbers(op, quantised, kernels, attrs, dtype, zero_point):
    network = assert_layers(built(op, dtype, zero_point, quantised=quantised, **attrs))
    assert [layer.op for layer in network.layers if isinstance(layer, CoreLayer)] == kernels


def test_what_the_levels_cannot_is_left_in_float():
    assert core(built("LRN", np.int8, 0, quantised=True, size=5, bias=-1.0)) == [
        "DequantizeLinear", "LRN", "QuantizeLinear"]


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
def test_positions_of_integers_need_no_copy(dtype, zero_point):
    model = ModelBuilder("qoperator", seed=7, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 4, 5)), 6, kernel=1)
    model.node("ArgMax", [x.name], "largest", axis=1)
    model.outputs.append(helper.make_tensor_value_info("largest", TensorProto.INT64, (1, 1, 4, 5)))
    network = assert_layers(model.proto().SerializeToString())
    assert [layer.op for layer in network.layers if isinstance(layer, CoreLayer)] == ["ArgMax"]


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize(("op", "count"), [("InstanceNormalization", 8), ("LayerNormalization", 3)])
def test_normalisations_take_levels_to_levels(op, count, relu, dtype, zero_point):
    model = ModelBuilder("qdq", seed=6, dtype=dtype, zero_point=zero_point)
    x = model.input((1, 8, 4, 3))
    parameters = [model.constant(np.linspace(low, 1.5, count).astype(np.float32)) for low in (0.5, -1.5)]
    result = model.node(op, [model.dequantised(x), *parameters], "normal", epsilon=0.01)
    y = model.value(x.shape, np.float32(1 / 30))
    model.quantised(model.node("Relu", [result], "positive") if relu else result, y)
    network = assert_layers(model.finish(y))
    assert [layer.op for layer in network.layers if isinstance(layer, CoreLayer)] == ["NormalisationOfLevels"]


@pytest.mark.parametrize("scaling", ["Mul", "Div", "Mul of a constant"])
def test_a_softmax_of_scaled_levels_is_one_of_levels_of_another_scale(scaling):
    model = ModelBuilder("qdq", seed=8)
    x = model.conv(model.input((1, 3, 4, 5)), 7, kernel=1)
    operands = [model.dequantised(x), model.constant(np.float32(0.35))]
    scaled = model.node(scaling.split()[0], operands[::-1] if "constant" in scaling else operands, "scaled")
    y = model.value(x.shape, np.float32(1 / 256), -128)
    model.quantised(model.node("Softmax", [scaled], "rows", axis=1), y)
    network = assert_layers(model.finish(y))
    assert [layer.op for layer in network.layers if isinstance(layer, CoreLayer)] == ["SoftmaxOfLevels"]
