"""One pixel that a Tile or Expand repeats is stored as often as it is there; nothing is left to the core."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import FORMS, ModelBuilder
from tilewright.compiler.network.layers import CoreLayer


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("op", "sizes"), [("Tile", (1, 1, 12, 9)), ("Expand", (1, 6, 12, 9))])
def test_a_pixel_becomes_an_image(op, sizes, form):
    model = ModelBuilder(form, seed=1, zero_point=None)
    x = model.conv(model.input((1, 3, 12, 9)), 6, kernel=1)
    real = model.dequantised(model.average(x))
    wide = model.value((1, 6, 12, 9), np.float32(x.scale * 0.4), 3)
    model.quantised(model.node(op, [real, model.constant(np.array(sizes))], "repeated"), wide)
    network = assert_layers(model.finish(model.conv(model.concat([x, wide], x.scale), 4, kernel=1)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
