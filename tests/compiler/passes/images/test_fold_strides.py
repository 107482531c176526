"""Kernels wider than the datapath's over neighbouring pixels as channels: equal to ONNX Runtime, and no copy."""

import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize(("image", "kernel", "strides", "pads"), [
    ((1, 1, 400), (1, 80), (1, 4), (0, 0, 0, 0)), ((1, 1, 400), (1, 79), (1, 4), (0, 38, 0, 38)),
    ((2, 1, 300), (1, 65), (1, 2), (0, 31, 0, 32)), ((3, 5, 210), (3, 70), (2, 10), (1, 0, 1, 3)),
    ((1, 1, 402), (1, 90), (1, 4), (0, 3, 0, 0)), ((2, 1, 300), (1, 20), (1, 6), (0, 70, 0, 0))])
def test_wide_kernels_lose_a_factor_of_their_stride(image, kernel, strides, pads, form):
    model = ModelBuilder(form, seed=5)
    x = model.conv(model.input((1, *image)), image[0], kernel=1)
    y = model.conv(x, 6, kernel=kernel, strides=strides, pads=pads)
    network = assert_layers(model.finish(y))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert len(network.layers) == 2


@pytest.mark.parametrize(("width", "strides"), [(200, (1, 1)), (201, (1, 2))])
def test_without_a_common_factor_of_stride_and_width_the_core_computes(width, strides):
    model = ModelBuilder("qdq", seed=6)
    y = model.conv(model.input((1, 1, 1, width)), 2, kernel=(1, 80), strides=strides)
    assert any(isinstance(layer, CoreLayer) for layer in assert_layers(model.finish(y)).layers)
