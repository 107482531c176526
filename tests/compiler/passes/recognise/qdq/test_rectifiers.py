"""PRelu with slopes of channels or of elements runs on the datapath, within a level of ONNX Runtime's."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def on_core(network):
    return [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("slopes", [(0.1, 0.25, 0.4, 0.9), (-0.5, 0.0, 1.0, 2.5), (0.25,) * 4])
def test_slopes_of_channels(slopes, dtype, zero_point):
    model = ModelBuilder("qdq", seed=7, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 6, 5)), 4)
    out = model.value(x.shape, np.float32(x.scale * 0.9))
    slope = model.constant(np.array(slopes, np.float32).reshape(4, 1, 1))
    model.quantised(model.node("PRelu", [model.dequantised(x), slope], "rectified"), out)
    network = assert_layers(model.finish(out))
    assert on_core(network) == []
    assert all(layer.exact for layer in network.layers) == (len(set(slopes)) == 1)


def test_slopes_of_a_vector():
    model = ModelBuilder("qdq", seed=8, zero_point=None)
    x = model.gemm(model.flatten(model.conv(model.input((1, 3, 4, 4)), 2)), 9)
    out = model.value(x.shape, np.float32(x.scale))
    slope = model.constant(np.linspace(0.1, 0.9, 9).astype(np.float32))
    model.quantised(model.node("PRelu", [model.dequantised(x), slope], "rectified"), out)
    assert on_core(assert_layers(model.finish(out))) == []


@pytest.mark.parametrize("shape", [(1, 4, 5), (4, 4, 5), (4, 1, 5), (5,)])
def test_slopes_of_elements(shape):
    model = ModelBuilder("qdq", seed=9)
    x = model.conv(model.input((1, 3, 4, 5)), 4, kernel=1)
    out = model.value(x.shape, np.float32(x.scale))
    slope = model.constant(model.rng.uniform(0.1, 0.9, shape).astype(np.float32))
    model.quantised(model.node("PRelu", [model.dequantised(x), slope], "rectified"), out)
    assert on_core(assert_layers(model.finish(out))) == []


def test_slopes_that_are_computed_are_the_cores():
    model = ModelBuilder("qdq", seed=9)
    x = model.conv(model.input((1, 3, 4, 5)), 4, kernel=1)
    out = model.value(x.shape, np.float32(x.scale))
    slope = model.conv(x, 4, kernel=1)
    model.quantised(model.node("PRelu", [model.dequantised(x), model.dequantised(slope)], "rectified"), out)
    assert "PRelu" in on_core(assert_layers(model.finish(out)))


def test_quantised_slopes_that_are_all_the_same_are_a_table():
    model = ModelBuilder("qdq", seed=11, zero_point=None)
    x = model.conv(model.input((1, 3, 6, 5)), 4)
    out = model.value(x.shape, np.float32(x.scale * 0.9))
    levels = [model.constant(each) for each in (np.full((4, 1, 1), 50, np.int8), np.float32(.005), np.int8(0))]
    slope = model.node("DequantizeLinear", levels, "slope")
    model.quantised(model.node("PRelu", [model.dequantised(x), slope], "rectified"), out)
    network = assert_layers(model.finish(out))
    assert len(network.layers) == 1
    assert network.layers[0].table is not None
