"""Normalisations of the channels of an image, turned for them, are those of rows in one run: nothing is moved."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.rows.row_layers import with_row_layers
from tilewright.isa.machine import preset


@pytest.mark.parametrize(("axis", "dtype"), [(-1, np.int8), (3, np.uint8)])
def test_a_normalisation_of_channels_that_are_turned_last_is_a_layer_of_the_datapath(axis, dtype):
    model = ModelBuilder("qdq", seed=3, dtype=dtype, zero_point=None)
    x = model.conv(model.input((1, 8, 5, 4)), 32, kernel=1)
    last = model.node("Transpose", [model.dequantised(x)], "last", perm=[0, 2, 3, 1])
    gain = model.constant(np.linspace(0.5, 1.5, 32).astype(np.float32))
    normal = model.node("LayerNormalization", [last, gain], "normal", axis=axis)
    rows = model.value((1, 5, 4, 32), np.float32(1 / 40))
    model.quantised(normal, rows)
    out = model.value(x.shape, rows.scale, rows.zero_point)
    model.quantised(model.node("Transpose", [model.dequantised(rows)], "first", perm=[0, 3, 1, 2]), out)
    network = assert_layers(model.finish(model.conv(out, 4, kernel=1)))
    layers = with_row_layers(network, replace(preset("base"), row_unit=True)).layers
    assert all(isinstance(layer, Layer) for layer in layers)
    assert [(layer.kind, layer.rows is not None) for layer in layers] == [
        ("conv", False), ("pass", True), ("conv", False)]
