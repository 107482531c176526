"""A QuantizeLinear right behind a DequantizeLinear of the same parameters does nothing, whatever the rank."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer


@pytest.mark.parametrize("shape", [(1, 4, 6), (3, 4, 6), (1, 2, 3, 4, 5)])
def test_levels_of_any_rank_are_levels_again(shape):
    model = ModelBuilder("qdq", seed=1, zero_point=None)
    x = model.conv(model.input((1, 3, 4, 6)), int(np.prod(shape)) // 24, kernel=1)
    flat = model.moved("Reshape", x, shape, (model.constant(np.array(shape, np.int64)),))
    again = model.value(shape, flat.scale, flat.zero_point)
    model.quantised(model.dequantised(flat), again)
    back = model.moved("Reshape", again, x.shape, (model.constant(np.array(x.shape, np.int64)),))
    network = assert_layers(model.finish(model.conv(back, 4, kernel=1)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
