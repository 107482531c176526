"""Products of several matrices by constants are grouped convolutions, exact; others are left as they are."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer


def product(batch, rows, terms, results, scales=()):
    model = ModelBuilder("qdq", seed=3, zero_point=None)
    x = model.input((*batch, rows, terms))
    weights = model.rng.integers(-127, 128, (*batch, terms, results)).astype(np.int8)
    scale = model.rng.uniform(0.004, 0.01, scales).astype(np.float32)
    constants = [model.constant(each) for each in (weights, scale, np.zeros(scales, np.int8))]
    out = model.value((*batch, rows, results), np.float32(x.scale * 0.007 * np.sqrt(terms) * 74**2 / 40))
    real = model.node("DequantizeLinear", constants, "weights", axis=len(batch) + 1)
    model.quantised(model.node("MatMul", [model.dequantised(x), real], "product"), out)
    return assert_layers(model.finish(out))


@pytest.mark.parametrize(("batch", "rows", "terms", "results"), [
    ((3,), 4, 16, 8), ((2,), 1, 5, 3), ((1, 4), 6, 8, 8), ((5,), 7, 3, 10), ((1,), 4, 8, 8)])
def test_each_product_is_a_group(batch, rows, terms, results):
    network = product(batch, rows, terms, results)
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert all(layer.exact for layer in network.layers)


def test_scales_of_columns_are_left_to_the_core():
    assert any(isinstance(layer, CoreLayer) for layer in product((3,), 4, 16, 8, (8,)).layers)
