"""Groups of channels as PyTorch normalises them, reshaped around an InstanceNormalization, are one operator."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer


def group_norm(*, affine=False, levels=False, shape=(1, 3, 120)):
    """Return a quantised model; with ``levels`` every tensor is quantised, as quantize_static leaves them."""
    model = ModelBuilder("qdq", seed=4, zero_point=None)
    x = model.conv(model.input((1, 3, 6, 5)), 12, kernel=1)
    gain, shift = (model.constant(model.rng.uniform(0.5, 1.5, shape[1]).astype(np.float32)) for _ in range(2))
    out = model.value(x.shape, np.float32(1 / 40))
    groups = model.reshape(x, shape) if levels else None
    real = model.dequantised(groups) if groups else model.node("Reshape", [
        model.dequantised(x), model.constant(np.array(shape))], "groups")
    real = model.node("InstanceNormalization", [real, gain, shift], "normalised")
    if levels:
        made = model.value(shape, out.scale)
        model.quantised(real, made)
        out = model.reshape(made, x.shape)
    else:
        real = model.node("Reshape", [real, model.constant(np.array(x.shape))], "back")
        if affine:
            for op in ("Mul", "Add"):
                values = model.rng.uniform(-1.5, 1.5, (12, 1, 1)).astype(np.float32)
                real = model.node(op, [real, model.constant(values)], op.lower())
        model.quantised(real, out)
    return assert_layers(model.finish(model.conv(out, 4, kernel=1)))


@pytest.mark.parametrize("form", [{}, {"affine": True}, {"levels": True}])
def test_they_are_one_normalisation_of_channels_that_lie_as_they_did(form):
    layers = group_norm(**form).layers
    (norm,) = [layer for layer in layers if isinstance(layer, CoreLayer)]
    assert (norm.op, norm.attrs["kind"], norm.attrs["num_groups"]) == ("NormalisationOfLevels", "GroupNormalization", 3)
    assert len(layers) == 3     # so nothing is copied


def test_groups_that_are_no_channels_stay_as_they_are():
    norm = next(layer for layer in group_norm(levels=True, shape=(1, 5, 72)).layers if isinstance(layer, CoreLayer))
    assert norm.attrs["kind"] == "InstanceNormalization"
