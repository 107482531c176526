"""Pads that mirror or repeat what is there are a matter of addresses, equal to ONNX Runtime's."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import FORMS, ModelBuilder
from tilewright.compiler.network.layers import CoreLayer


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [(1, 1, 1, 1), (4, 4, 4, 4), (0, 2, 3, 0)])
def test_mirrored_pads_are_no_work_of_the_core(mode, pads, form):
    model = ModelBuilder(form, seed=1, zero_point=None)
    x = model.conv(model.input((1, 3, 8, 9)), 4, kernel=1)
    top, left, bottom, right = pads
    constant = model.constant(np.array([0, 0, top, left, 0, 0, bottom, right]))
    y = model.moved("Pad", x, (1, 4, 8 + top + bottom, 9 + left + right), (constant,), mode=mode)
    network = assert_layers(model.finish(model.conv(y, 5, kernel=3)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert all(layer.exact for layer in network.layers)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pads", [(-1, -2, 0, -1), (-1, 2, 1, -3), (0, -4, 0, 4)])
def test_pads_below_zero_cut_off(pads, form):
    model = ModelBuilder(form, seed=2, zero_point=None)
    x = model.conv(model.input((1, 3, 8, 9)), 4, kernel=1)
    top, left, bottom, right = pads
    constant = model.constant(np.array([0, 0, top, left, 0, 0, bottom, right]))
    value = model.constant(np.float32(0) if form == "qdq" else np.int8(x.zero_point))
    y = model.moved("Pad", x, (1, 4, 8 + top + bottom, 9 + left + right), (constant, value))
    network = assert_layers(model.finish(model.conv(y, 5, kernel=3)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert all(layer.exact for layer in network.layers)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pads", [(2, 0, 0, 0), (0, 1, 0, 2), (2, 1, 1, 3)])
def test_rows_that_a_pad_surrounds_are_those_of_an_image(pads, form):
    """As TensorFlow's causal convolutions have it: (1, rows, channels) between convolutions over images."""
    model = ModelBuilder(form, seed=3, zero_point=None)
    x = model.conv(model.input((1, 3, 1, 12)), 4, kernel=1)

    def reshaped(value, *shape):
        return model.moved("Reshape", value, shape, (model.constant(np.array(shape)),))

    x = reshaped(model.moved("Transpose", x, (1, 1, 12, 4), perm=[0, 2, 3, 1]), 1, 12, 4)
    before, left, behind, right = pads
    value = model.constant(np.float32(0) if form == "qdq" else np.int8(x.zero_point))
    rows, channels = 12 + before + behind, 4 + left + right
    x = model.moved("Pad", x, (1, rows, channels), (model.constant(np.array([0, before, left, 0, behind, right])),
                                                    value))
    x = model.moved("Transpose", reshaped(x, 1, 1, rows, channels), (1, channels, 1, rows), perm=[0, 3, 1, 2])
    network = assert_layers(model.finish(model.conv(x, 5, kernel=(1, 3))))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert all(layer.exact for layer in network.layers)
