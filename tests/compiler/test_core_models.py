"""What the datapath lacks runs on the host core, inside quantised models and in models of floats."""

import numpy as np
import pytest

from tests.support.exactness import assert_exact, assert_layers
from tests.support.onnx_models import FORMS, ModelBuilder
from tilewright.compiler.layers import CoreLayer

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def core_ops(network):
    return [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("form", FORMS)
def test_squeeze_and_excitation(form, dtype, zero_point):
    """x · Sigmoid(conv(average(x))): a product of two tensors, one value per channel."""
    model = ModelBuilder(form, seed=1, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 8, 8)), 6)
    gate = model.conv(model.average(x), 6, kernel=1)
    opened = model.value(gate.shape, np.float32(1 / 250))
    y = model.value(x.shape, np.float32(x.scale * 0.6))
    if form == "qdq":
        model.quantized(model.node("Sigmoid", [model.dequantized(gate)], "opened"), opened)
        model.quantized(model.node("Mul", [model.dequantized(x), model.dequantized(opened)], "product"), y)
    else:
        model.node("QLinearSigmoid", [gate.name, *model.parameters(gate), *model.parameters(opened)], opened.name,
                   "com.microsoft")
        model.node("QLinearMul", [x.name, *model.parameters(x), opened.name, *model.parameters(opened),
                                  *model.parameters(y)], y.name, "com.microsoft")
    network = assert_exact(model.finish(model.conv(y, 4)))
    assert core_ops(network) == ["QLinearMul"]


@pytest.mark.parametrize("attrs", [{"kernel": 16, "strides": (16, 16)}, {"kernel": 8, "strides": (8, 8)}])
@pytest.mark.parametrize("form", FORMS)
def test_poolings_beyond_the_datapaths_windows(form, attrs):
    model = ModelBuilder(form, seed=2)
    x = model.conv(model.input((1, 3, 34, 34)), 4)
    network = assert_layers(model.finish(model.conv(model.max_pool(x, **attrs), 4, kernel=1)))
    assert "MaxPool" in core_ops(network)


def test_an_average_of_a_large_image():
    model = ModelBuilder("qdq", seed=3)
    network = assert_layers(model.finish(model.average(model.conv(model.input((1, 3, 66, 66)), 4, kernel=1))))
    assert core_ops(network) == ["DequantizeLinear", "GlobalAveragePool", "QuantizeLinear"]


def test_a_product_with_a_large_image():
    model = ModelBuilder("qdq", seed=4)
    x = model.conv(model.input((1, 1, 65, 65)), 2, kernel=1)
    network = assert_exact(model.finish(model.gemm(model.flatten(x), 3)))
    assert core_ops(network) == ["Reshape"]


def test_a_global_maximum_is_the_datapaths():
    model = ModelBuilder("qdq", seed=5)
    x = model.conv(model.input((1, 3, 8, 9)), 4)
    network = assert_layers(model.finish(model.conv(model.moved("GlobalMaxPool", x, (1, 4, 1, 1)), 5, kernel=1)))
    assert core_ops(network) == []
