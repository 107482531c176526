"""Max pooling beyond the datapath's operands: poolings within them, equal to ONNX Runtime."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer, Layer, Network
from tilewright.isa.limits import MAX_WINDOW, MAX_WINDOW_STRIDE


def pooled(size: tuple[int, int], form: str = "qdq", channels: int = 4, **attributes: object) -> Network:
    """Compile a max pooling behind a convolution, with ONNX's ``attributes``, and compare it with ONNX Runtime."""
    model = ModelBuilder(form, seed=2, zero_point=None)
    x = model.conv(model.input((1, 3, *size)), channels, kernel=1)
    kernel, strides = attributes["kernel_shape"], attributes.setdefault("strides", (1, 1))
    pads, dilations = attributes.setdefault("pads", (0, 0, 0, 0)), attributes.setdefault("dilations", (1, 1))
    shape = tuple((size[i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
                  for i in range(2))
    network = assert_layers(model.finish(model.moved("MaxPool", x, (1, channels, *shape), **attributes)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    for pool in (layer.pool for layer in network.layers if isinstance(layer, Layer) and layer.pool):
        assert max(*pool.kernel, *pool.pads) <= MAX_WINDOW
        assert max(pool.strides) <= MAX_WINDOW_STRIDE
    return network


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize(("kernel", "strides", "pads", "size"), [
    ((16, 16), (16, 16), (0, 0, 0, 0), (37, 35)), ((20, 9), (20, 9), (0, 0, 0, 0), (41, 30)),
    ((8, 1), (8, 1), (0, 0, 0, 0), (33, 4)), ((16, 16), (1, 1), (7, 8, 8, 7), (20, 21)),
    ((64, 1), (11, 1), (31, 0, 32, 0), (150, 2)), ((3, 3), (8, 9), (0, 0, 0, 0), (30, 30)),
    ((17, 40), (4, 13), (8, 20, 0, 19), (50, 60))])
def test_large_windows_are_pooled_in_steps(kernel, strides, pads, size, form):
    network = pooled(size, form, kernel_shape=kernel, strides=strides, pads=pads)
    assert sum(layer.pool is not None for layer in network.layers) > 1 or max(strides) > MAX_WINDOW_STRIDE


@pytest.mark.parametrize("seed", range(40))
def test_windows_of_any_kind(seed):
    rng = np.random.default_rng(seed)
    axes = []
    for _ in range(2):
        kernel, dilation = int(rng.choice([1, 2, 3, 7, 15, 16, 30])), int(rng.choice([1, 1, 2, 3]))
        pads = [int(pad) for pad in rng.integers(0, kernel, 2)]
        least = max(kernel, dilation * (kernel - 1) + 1 - sum(pads))
        stride = int(rng.choice([1, 2, 5, 8, 11, 14, kernel]))
        axes.append((kernel, stride, dilation, pads, least + int(rng.integers(0, 20))))
    kernel, strides, dilations, pads, size = zip(*axes, strict=True)
    pooled(size, channels=int(rng.integers(1, 9)), kernel_shape=kernel, strides=strides, dilations=dilations,
           pads=(pads[0][0], pads[1][0], pads[0][1], pads[1][1]))


@pytest.mark.parametrize("size", [(16, 16), (50, 3), (1, 128), (7, 7)])
def test_a_maximum_over_all_of_an_image_is_pooled_in_steps(size):
    model = ModelBuilder("qdq", seed=3, zero_point=None)
    x = model.conv(model.input((1, 3, *size)), 4, kernel=1)
    network = assert_layers(model.finish(model.moved("GlobalMaxPool", x, (1, 4, 1, 1))))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


def test_a_dear_window_is_pooled_axis_by_axis_and_a_cheap_one_at_once():
    dear = pooled((30, 30), kernel_shape=(13, 13), pads=(6, 6, 6, 6))
    cheap = pooled((30, 30), kernel_shape=(13, 13), strides=(7, 7))
    assert (len(dear.layers), len(cheap.layers)) == (2, 1)


def test_pixels_apart_are_neighbours_in_another_shape():
    """Nothing is copied: the poolings along rows and along columns are all there is."""
    network = pooled((20, 24), kernel_shape=(3, 3), dilations=(2, 3), pads=(2, 0, 2, 0))
    assert [layer.pool.kernel for layer in network.layers[1:] if layer.pool] == [(3, 1), (1, 3)]
    assert len(network.layers) == 3
