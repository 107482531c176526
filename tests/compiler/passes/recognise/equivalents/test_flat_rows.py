"""Normalisations of the channels of an image, and softmaxes of bins, are those of rows in one run: none is moved."""

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


@pytest.mark.parametrize("column", [(8, 1), (8,)], ids=["matrix", "vector"])
def test_a_softmax_of_bins_that_a_reshape_makes_is_a_layer_of_the_datapath(column):
    model = ModelBuilder("qdq", seed=5)
    x = model.conv(model.input((1, 3, 6, 5)), 32, kernel=1)
    last = model.node("Transpose", [model.dequantised(x)], "last", perm=[0, 2, 3, 1])
    bins = model.node("Reshape", [last, model.constant(np.array([1, -1, 4, 8], np.int64))], "bins")
    shares = model.value((1, 30, 4, 8), np.float32(1 / 127))
    model.quantised(model.node("Softmax", [bins], "shares", axis=-1), shares)
    levels = model.constant(np.arange(8).reshape(column).astype(np.int8))
    parameters = [model.constant(np.array(each)) for each in (np.float32(0.5), np.int8(0))]
    weights = model.node("DequantizeLinear", [levels, *parameters], "weights")
    boxes = model.value((1, 30, 4, 1)[:2 + len(column)], np.float32(1 / 32))
    model.quantised(model.node("MatMul", [model.dequantised(shares), weights], "boxes"), boxes)
    model.output(boxes)
    network = assert_layers(model.finish())
    layers = with_row_layers(network, replace(preset("base"), row_unit=True)).layers
    assert [(layer.kind, getattr(layer, "rows", None) is not None) for layer in layers] == [
        ("conv", False), ("pass", True), ("conv", False)]
