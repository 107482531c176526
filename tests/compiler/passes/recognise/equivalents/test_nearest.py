"""A Resize to the nearest pixel is a matter of addresses, whatever the ratio, equal to ONNX Runtime's."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import FORMS, ModelBuilder
from tilewright.compiler.network.layers import CoreLayer

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("size", "mode", "rounding"), [
    ((4, 4), "asymmetric", "floor"), ((13, 8), "asymmetric", "floor"), ((12, 12), "half_pixel", "round_prefer_floor"),
    ((5, 11), "align_corners", "round_prefer_ceil"), ((16, 8), "half_pixel", "ceil")])
def test_any_ratio_is_no_work_of_the_core(size, mode, rounding, form, dtype, zero_point):
    model = ModelBuilder(form, seed=1, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 8, 8)), 4, kernel=1)
    shape = (1, 4, *size)
    y = model.moved("Resize", x, shape, ("", "", model.constant(np.array(shape))), mode="nearest",
                    coordinate_transformation_mode=mode, nearest_mode=rounding)
    network = assert_layers(model.finish(model.conv(y, 5, kernel=3)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert all(layer.exact for layer in network.layers)
