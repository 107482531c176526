"""Products of several matrices by constants are grouped convolutions, exact; others are left as they are."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer


def product(batch, rows, terms, results, scales=(), axis=-1, left=False):
    model = ModelBuilder("qdq", seed=3, zero_point=None)
    x = model.input((*batch, *((terms, rows) if left else (rows, terms))))
    shape = (results, terms) if left else (terms, results)
    weights = model.rng.integers(-127, 128, (*batch, *shape)).astype(np.int8)
    scale = model.rng.uniform(0.004, 0.01, scales).astype(np.float32)
    constants = [model.constant(each) for each in (weights, scale, np.zeros(scales, np.int8))]
    result = (results, rows) if left else (rows, results)
    out = model.value((*batch, *result), np.float32(x.scale * 0.007 * np.sqrt(terms) * 74**2 / 40))
    real = model.node("DequantizeLinear", constants, "weights", axis=axis % (len(batch) + 2))
    operands = [model.dequantised(x), real]
    model.quantised(model.node("MatMul", operands[::-1] if left else operands, "product"), out)
    return assert_layers(model.finish(out))


@pytest.mark.parametrize(("batch", "rows", "terms", "results"), [
    ((3,), 4, 16, 8), ((2,), 1, 5, 3), ((1, 4), 6, 8, 8), ((5,), 7, 3, 10), ((1,), 4, 8, 8)])
def test_each_product_is_a_group(batch, rows, terms, results):
    network = product(batch, rows, terms, results)
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert all(layer.exact for layer in network.layers)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(("batch", "axis"), [((1, 4), 1), ((4,), 0)])
def test_each_matrix_may_have_a_scale_of_its_own_on_either_side(batch, axis, left):
    network = product(batch, 5, 16, 8, (batch[axis],), axis, left)
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert all(layer.exact for layer in network.layers)


def test_scales_of_columns_are_left_to_the_core():
    assert any(isinstance(layer, CoreLayer) for layer in product((3,), 4, 16, 8, (8,)).layers)
