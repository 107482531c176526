"""A look-up gives the table's entry for every value of 8 bits, in NumPy and in C."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of, compute
from tilewright.compiler.kernels.levels.look_up import LOOK_UP


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("made", ["float32", "int8", "uint8"])
def test_every_value_has_its_entry(dtype, made):
    rng = np.random.default_rng(4)
    table = (rng.standard_normal(256) * 40).astype(made)
    if made == "float32":
        table[:3] = np.inf, np.nan, -0.0
    bounds = np.iinfo(dtype)
    x = rng.permutation(np.arange(bounds.min, bounds.max + 1)).astype(dtype).reshape(1, 8, 4, 8)
    call = call_of("LookUp", [x, table], x.shape, made)
    np.testing.assert_array_equal(compute(call, [x, table]), table[x.astype(int) - bounds.min])
    check_c([("LookUp", [x, table], x.shape, made, {}), ("LookUp", [x[0, 0], table], (4, 8), made, {})])


@pytest.mark.parametrize("attrs", [{}, {"table": [0.0] * 255}, {"table": 3}])
def test_a_table_has_256_numbers(attrs):
    call = call_of("LookUp", [np.zeros((2, 3), np.int8)], (2, 3), "float32", attrs)
    assert LOOK_UP.refusal(call) is not None
