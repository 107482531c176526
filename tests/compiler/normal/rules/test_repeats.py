"""An operand that an Expand repeats is read before it, where the product repeats it anyway."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def expanded(model, x, shape, scale):
    """Add an Expand of ``x`` to ``shape`` with a quantisation of its own."""
    name = model.node("Expand", [model.dequantised(x), model.constant(np.array(shape))], f"float{len(model.nodes)}")
    y = model.value(shape, np.float32(scale))
    model.quantised(name, y)
    return y


def joined(model, op, a, b, scale):
    """Add an operator of two tensors."""
    y = model.value(a.shape, np.float32(scale))
    model.quantised(model.node(op, [model.dequantised(a), model.dequantised(b)], f"float{len(model.nodes)}"), y)
    return y


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("op", ["Mul", "Add"])
def test_one_element_for_each_channel_is_not_copied(op, dtype, zero_point):
    model = ModelBuilder("qdq", seed=1, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 8, 8)), 6)
    gate = model.conv(model.average(x), 6, kernel=1)
    wide = expanded(model, gate, x.shape, gate.scale * 1.1)
    network = assert_layers(model.finish(joined(model, op, x, wide, 0.9)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert wide.name not in network.tensors


def test_a_small_operand_beside_the_one_that_is_repeated_still_needs_it():
    model = ModelBuilder("qdq", seed=2)
    x = model.average(model.conv(model.input((1, 3, 8, 8)), 6))
    wide = expanded(model, x, (1, 6, 4, 4), x.scale)
    y = model.value((1, 6, 4, 4), np.float32(0.8))
    model.quantised(model.node("Mul", [model.dequantised(wide), model.dequantised(x)], "product"), y)
    assert_layers(model.finish(model.conv(y, 3)))
