"""Maxima of tensors and along axes are max pooling on the datapath, equal to ONNX Runtime's."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder, Value
from tilewright.compiler.network.layers import CoreLayer

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def on_core(network):
    return [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]


def largest(model: ModelBuilder, parts: list[Value], scale: float) -> Value:
    out = model.value(parts[0].shape, np.float32(scale))
    model.quantised(model.node("Max", [model.dequantised(each) for each in parts], f"float{len(model.nodes)}"), out)
    return out


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize(("size", "count"), [((5, 7), 2), ((5, 7), 3), ((40, 33), 2), ((1, 1), 2)])
def test_the_largest_of_images_is_pooled_from_rows_of_each(size, count, dtype, zero_point):
    model = ModelBuilder("qdq", seed=2, dtype=dtype, zero_point=zero_point)
    x = model.input((1, 3, *size))
    network = assert_layers(model.finish(largest(model, [model.conv(x, 5, kernel=1) for _ in range(count)], 1 / 40)))
    assert on_core(network) == []
    assert all(layer.exact for layer in network.layers)


def test_the_largest_of_vectors_is_pooled_too():
    model = ModelBuilder("qdq", seed=3, zero_point=None)
    x = model.flatten(model.conv(model.input((1, 3, 4, 4)), 4, kernel=1))
    network = assert_layers(model.finish(largest(model, [model.gemm(x, 12), model.gemm(x, 12)], 1 / 30)))
    assert on_core(network) == []


def test_the_largest_of_an_image_and_a_vector_is_the_cores():
    model = ModelBuilder("qdq", seed=4)
    x = model.conv(model.input((1, 3, 6, 6)), 4, kernel=1)
    assert "Max" in on_core(assert_layers(model.finish(largest(model, [x, model.average(x)], 1 / 40))))


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize(("axes", "keep"), [((2, 3), 1), ((2, 3), 0), ((1,), 1), ((1,), 0), ((2,), 1), ((1, 3), 0),
                                           ((1, 2, 3), 1)])
@pytest.mark.parametrize("scale", [1.0, 0.8])
def test_the_largest_along_axes_is_pooled(axes, keep, scale, dtype, zero_point):
    model = ModelBuilder("qdq", seed=5, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 6, 19)), 20, kernel=1)
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape) if keep or axis not in axes)
    out = model.value(shape, np.float32(x.scale * scale), x.zero_point)
    model.quantised(model.node("ReduceMax", [model.dequantised(x)], "largest", axes=axes, keepdims=keep), out)
    network = assert_layers(model.finish(out))
    assert on_core(network) == []


@pytest.mark.parametrize("axis", [1, 2])
def test_the_largest_of_rows_is_pooled(axis):
    model = ModelBuilder("qdq", seed=6, zero_point=None)
    x = model.reshape(model.conv(model.input((1, 3, 5, 4)), 8, kernel=1), (1, 8, 20))
    out = model.value((1, 20 if axis == 1 else 8), x.scale, x.zero_point)
    model.quantised(model.node("ReduceMax", [model.dequantised(x)], "largest", axes=[axis], keepdims=0), out)
    assert on_core(assert_layers(model.finish(out))) == []
