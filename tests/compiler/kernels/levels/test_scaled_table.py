"""Tables times a factor, in integers: the float product, down to subnormal ones, but for halves."""

import numpy as np
import pytest

from tilewright.compiler.kernels.levels.scaled_table import ScaledTable


@pytest.mark.parametrize("step", [0.013, 0.25, 0.4])
def test_products_are_those_of_floats(step):
    values = np.exp(-np.arange(256) * step).astype(np.float32)
    factors = np.random.default_rng(1).uniform(2.0**-13, 1, 4000).astype(np.float32)
    table = ScaledTable(values)
    assert table.all_normal == (step < 0.3)
    found = table.times(np.arange(256)[:, None], factors)
    np.testing.assert_array_equal(found, values[:, None] * factors)


def test_halves_are_rounded_upwards():
    values = np.array([1 + 2.0**-23] * 256, np.float32)
    factors = np.array([0.5 + 2.0**-2, 1.0, 2.0**-13], np.float32)
    found = ScaledTable(values).times(np.zeros(3, int), factors)
    np.testing.assert_array_equal(found, np.array([0.75 + 2.0**-23, 1 + 2.0**-23, values[0] * 2.0**-13], np.float32))
