"""The greatest of levels are levels, whatever reads them."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def pooled(model, x):
    """Add a MaxPool that is not quantised; return its name and shape."""
    name = model.node("MaxPool", [model.dequantised(x)], f"float{len(model.nodes)}", kernel_shape=(2, 2),
                      strides=(2, 2))
    return name, (*x.shape[:2], x.shape[2] // 2, x.shape[3] // 2)


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
def test_a_pooling_may_have_a_scale_of_its_own(dtype, zero_point):
    model = ModelBuilder("qdq", seed=1, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 10, 10)), 6)
    name, shape = pooled(model, x)
    y = model.value(shape, np.float32(x.scale * 0.8))
    model.quantised(name, y)
    network = assert_layers(model.finish(model.conv(y, 4), model.conv(x, 3)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert all(layer.exact for layer in network.layers)


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
def test_a_pooling_may_be_read_by_two_operators(dtype, zero_point):
    model = ModelBuilder("qdq", seed=2, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 10, 10)), 6)
    name, shape = pooled(model, x)
    parts = [model.value(shape, np.float32(0.03)) for _ in range(2)]
    model.quantised(name, parts[0])
    model.quantised(model.node("Sigmoid", [name], "sigmoid"), parts[1])
    network = assert_layers(model.finish(*(model.conv(each, 4) for each in parts)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


def test_a_pooling_may_be_an_output_too():
    model = ModelBuilder("qdq", seed=3)
    x = model.conv(model.input((1, 3, 10, 10)), 6)
    name, shape = pooled(model, x)
    model.outputs.append(model.float_output(name, shape))
    y = model.value(shape, np.float32(x.scale * 0.8))
    model.quantised(name, y)
    network = assert_layers(model.finish(model.conv(y, 4)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
