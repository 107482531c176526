"""Tests of pooling over windows larger than the datapath's: steps of it, all equal to ONNX Runtime."""

import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize("size", [(1, 128), (70, 40), (2, 100)])
def test_a_mean_over_many_pixels_is_one_over_the_same_in_another_arrangement(size: tuple[int, int], form: str) -> None:
    model = ModelBuilder(form, seed=1, zero_point=None)
    x = model.conv(model.input((1, 3, *size)), 4, kernel=1)
    network = assert_layers(model.finish(model.average(x)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert all(layer.exact for layer in network.layers)


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize(("kernel", "size"), [((16, 16), (37, 35)), ((20, 9), (41, 30)), ((8, 1), (33, 4))])
def test_windows_side_by_side_are_pooled_in_steps(kernel: tuple[int, int], size: tuple[int, int], form: str) -> None:
    model = ModelBuilder(form, seed=2, zero_point=None)
    x = model.conv(model.input((1, 3, *size)), 4, kernel=1)
    shape = (1, 4, size[0] // kernel[0], size[1] // kernel[1])
    y = model.moved("MaxPool", x, shape, kernel_shape=kernel, strides=kernel)
    network = assert_layers(model.finish(y))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


@pytest.mark.parametrize("size", [(16, 16), (50, 3), (1, 128), (7, 7)])
def test_a_maximum_over_all_of_an_image_is_pooled_in_steps(size: tuple[int, int]) -> None:
    model = ModelBuilder("qdq", seed=3, zero_point=None)
    x = model.conv(model.input((1, 3, *size)), 4, kernel=1)
    network = assert_layers(model.finish(model.moved("GlobalMaxPool", x, (1, 4, 1, 1))))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


def test_a_mean_over_pixels_of_no_such_arrangement_is_left_to_the_core() -> None:
    model = ModelBuilder("qdq", seed=4)
    x = model.conv(model.input((1, 1, 1, 67)), 2, kernel=1)
    assert any(isinstance(layer, CoreLayer) for layer in assert_layers(model.finish(model.average(x))).layers)
