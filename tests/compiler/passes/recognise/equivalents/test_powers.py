"""The second power is a product, on the datapath or on the core, with ONNX Runtime's bits."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer


def powered(exponent, *, between):
    """Return a network with a power behind a sum of floats, which the core computes, or between quantisations."""
    model = ModelBuilder("qdq", seed=5)
    x = model.conv(model.input((1, 3, 6, 7)), 4, kernel=1)
    real = model.dequantised(x)
    if not between:
        real = model.node("Sub", [real, model.node("ReduceMean", [real], "mean", axes=[1])], "less")
    power = model.node("Pow", [real, model.constant(exponent)], "power")
    if not between:
        model.outputs.append(model.float_output(power, x.shape))
        return model.proto().SerializeToString()
    out = model.value(x.shape, np.float32(1 / 40))
    model.quantised(power, out)
    return model.finish(out)


@pytest.mark.parametrize("exponent", [np.float32(2), np.int64(2), np.array([2], np.float32)])
def test_the_second_power_is_a_product(exponent):
    network = assert_layers(powered(exponent, between=False))
    operators = [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]
    assert "Pow" not in operators
    assert "Mul" in operators


def test_between_quantisations_it_is_a_table():
    network = assert_layers(powered(np.float32(2), between=True))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


@pytest.mark.parametrize("exponent", [np.float32(4), np.full((1, 4, 1, 1), 2, np.float32)])
def test_other_powers_stay(exponent):
    network = assert_layers(powered(exponent, between=False))
    assert "Pow" in [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]
