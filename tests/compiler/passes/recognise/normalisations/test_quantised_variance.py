"""Normalisations whose variance is quantised on the way, as ONNX Runtime's quantiser leaves them, run in integers."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tests.support.taken_apart import taken_apart
from tilewright.compiler.network.layers import CoreLayer

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def on_core(network):
    return [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]


def normalised(form, axes, dtype=np.int8, zero_point=0, *, epsilon=0.5, steps=100, gain=None, zero_of_variance=None):
    model = ModelBuilder("qdq", seed=8, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 6, 5)), 12, kernel=1)
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))

    def rounded(name):
        zero = int(np.iinfo(dtype).min) if zero_of_variance is None else zero_of_variance
        level = model.value(shape, np.float32((74 * x.scale)**2 / steps), zero)
        model.quantised(name, level)
        return model.dequantised(level)

    out = model.value(x.shape, np.float32(1 / 40))
    model.quantised(taken_apart(model, model.dequantised(x), axes, form, gain, None, epsilon, rounded), out)
    return model.finish(model.conv(out, 4, kernel=1))


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("axes", [(1,), (3,), (2, 3), (1, 2, 3), (1, 3)])
@pytest.mark.parametrize("form", ["power", "half power", "reciprocal"])
def test_it_is_one_normalisation_of_levels(form, axes, dtype, zero_point):
    network = assert_layers(normalised(form, axes, dtype, zero_point))
    assert on_core(network) == ["NormalisationOfLevels"]


def test_a_variance_of_level_0_gives_the_bounds():
    """Epsilon is lost in the variance's scale, as it is where ONNX Runtime quantises a whole network."""
    network = assert_layers(normalised("power", (1,), epsilon=1e-5, steps=0.8))
    assert on_core(network) == ["NormalisationOfLevels"]


def test_levels_of_negative_variances_whose_root_is_no_number_never_count():
    """Symmetric quantisation has as many of them as of others."""
    network = assert_layers(normalised("power", (1,), steps=50, zero_of_variance=0, epsilon=1e-3))
    assert on_core(network) == ["NormalisationOfLevels"]


def test_what_is_scaled_before_it_is_quantised_stays_as_it_is():
    gain = np.linspace(0.5, 1.5, 12, dtype=np.float32).reshape(12, 1, 1)
    assert "NormalisationOfLevels" not in on_core(assert_layers(normalised("power", (1,), gain=gain)))
