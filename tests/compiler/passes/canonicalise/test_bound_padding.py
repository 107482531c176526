"""Kernels of any width, and padding of more columns than a load writes: on the datapath, equal to ONNX Runtime."""

import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import Layer
from tilewright.isa.limits import MAX_PADDING


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize(("image", "kernel", "strides", "pads", "layers"), [
    ((1, 1, 400), (1, 80), (1, 4), (0, 0, 0, 0), 1), ((3, 5, 210), (3, 70), (2, 10), (1, 0, 1, 3), 1),
    ((2, 1, 300), (1, 20), (1, 6), (0, 70, 0, 0), 2), ((2, 2, 90), (1, 129), (1, 1), (0, 64, 0, 64), 2),
    ((1, 1, 100), (1, 301), (1, 1), (0, 150, 0, 150), 3), ((2, 150, 2), (141, 1), (1, 1), (70, 0, 70, 0), 1)])
def test_wide_kernels_and_padding(image, kernel, strides, pads, layers, form):
    model = ModelBuilder(form, seed=5)
    x = model.conv(model.input((1, *image)), image[0], kernel=1)
    network = assert_layers(model.finish(model.conv(x, 6, kernel=kernel, strides=strides, pads=pads)))
    assert len(network.layers) == 1 + layers
    for layer in network.layers:
        assert isinstance(layer, Layer)
        assert max(layer.pads[1], layer.pads[3]) <= MAX_PADDING


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize("size", [(1, 128), (70, 40), (2, 100), (1, 67), (80, 80)])
def test_a_mean_over_many_pixels_is_one_layer(size, form):
    model = ModelBuilder(form, seed=1, zero_point=None)
    x = model.conv(model.input((1, 3, *size)), 4, kernel=1)
    network = assert_layers(model.finish(model.average(x)))
    assert [layer.kind for layer in network.layers if isinstance(layer, Layer)] == ["conv", "average"]
    assert all(layer.exact for layer in network.layers)
