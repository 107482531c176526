"""Means of rows, means of means and means of large images run on the datapath, within a level of ONNX Runtime's."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder, Value
from tilewright.compiler.network.layers import CoreLayer


def on_core(network):
    return [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]


def reduced(model: ModelBuilder, x: Value, shape: tuple[int, ...], *axes: tuple[int, ...], keep: int = 1) -> Value:
    out = model.value(shape, np.float32(x.scale * 0.6))
    name = model.dequantised(x)
    for index, each in enumerate(axes):
        last = index == len(axes) - 1
        name = model.node("ReduceMean", [name], f"mean {index}", axes=each, keepdims=keep if last else 1)
    model.quantised(name, out)
    return out


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("size", [(5, 4), (9, 10)])
def test_a_mean_of_rows_is_one_of_an_image(axis, keep, size):
    model = ModelBuilder("qdq", seed=1, zero_point=None)
    pixels = size[0] * size[1]
    x = model.reshape(model.conv(model.input((1, 3, *size)), 8, kernel=1), (1, 8, pixels))
    shape = (1, pixels) if axis == 1 else (1, 8)
    y = reduced(model, x, (*shape[:axis], 1, *shape[axis:]) if keep else shape, (axis,), keep=keep)
    assert on_core(assert_layers(model.finish(y))) == []


@pytest.mark.parametrize("axes", [(0, 2), (0, 1)])
def test_a_mean_over_the_batch_too_is_one_of_an_image(axes):
    model = ModelBuilder("qdq", seed=3, zero_point=None)
    x = model.reshape(model.conv(model.input((1, 3, 5, 4)), 8, kernel=1), (1, 8, 20))
    y = reduced(model, x, (1, 8, 1) if axes[1] == 2 else (1, 1, 20), axes)
    assert on_core(assert_layers(model.finish(y))) == []


def test_a_mean_of_a_mean_is_one_mean():
    model = ModelBuilder("qdq", seed=2)
    x = model.conv(model.input((1, 3, 6, 9)), 4, kernel=1)
    network = assert_layers(model.finish(reduced(model, x, (1, 4, 1, 1), (2,), (3,))))
    assert on_core(network) == []
    assert len(network.layers) == 2


def test_a_mean_over_a_large_image_is_taken_in_steps():
    model = ModelBuilder("qdq", seed=3)
    x = model.conv(model.input((1, 2, 66, 10)), 4, kernel=1)
    assert on_core(assert_layers(model.finish(reduced(model, x, (1, 4, 1, 1), (2, 3))))) == []


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize(("shape", "axes"), [
    ((1, 336), (1,)), ((1, 8, 42), (1, 2)), ((6, 7, 8), (0, 1, 2)), ((1, 8, 6, 7), (1, 2, 3)),
    ((1, 8, 6, 7), (0, 1, 2, 3)), ((1, 2, 4, 6, 7), (1, 2, 3, 4)), ((336, 1), (0,))])
def test_a_mean_of_all_elements_is_one_of_an_image_wherever_they_lie(shape, axes, keep):
    model = ModelBuilder("qdq", seed=4, zero_point=None)
    x = model.conv(model.input((1, 3, 6, 7)), 8, kernel=1)
    x = x if shape == x.shape else model.reshape(x, shape)
    left = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape) if keep or axis not in axes)
    network = assert_layers(model.finish(reduced(model, x, left, axes, keep=keep)))
    assert on_core(network) == []
    assert not shape[0] == 1 or len(network.layers) == 2     # nothing is moved
