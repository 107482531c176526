"""A Pad of the model's input is one of integers, whether or not the input was quantised before it."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.support.exactness import assert_layers
from tests.support.onnx_models import FORMS, ModelBuilder
from tilewright.compiler.network.layers import CoreLayer

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def padded_input(model, shape, pads, value=None, mode="constant"):
    """Add a float input, padded and then quantised."""
    model.inputs.append(helper.make_tensor_value_info("image", TensorProto.FLOAT, shape))
    extra = [model.constant(np.array(pads)), *([] if value is None else [model.constant(np.float32(value))])]
    name = model.node("Pad", ["image", *extra], "padded", mode=mode)
    rank = len(shape)
    y = model.value(tuple(shape[k] + pads[k] + pads[k + rank] for k in range(rank)), np.float32(0.02))
    model.quantised(name, y)
    return y


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("pads", "value", "mode"), [
    ((0, 0, 1, 1, 0, 0, 2, 2), 0, "constant"), ((0, 0, 0, 2, 0, 0, 1, 0), 0.47, "constant"),
    ((0, 0, 1, 1, 0, 0, 1, 1), None, "constant"), ((0, 0, 0, 0, 0, 1, 0, 0), 0, "constant"),
    ((0, 0, 2, 2, 0, 0, 2, 2), None, "reflect")])
def test_it_is_no_work_of_the_core(pads, value, mode, form, dtype, zero_point):
    model = ModelBuilder(form, seed=1, dtype=dtype, zero_point=zero_point)
    network = assert_layers(model.finish(model.conv(padded_input(model, (1, 3, 9, 8), pads, value, mode), 5)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert all(layer.exact for layer in network.layers)
