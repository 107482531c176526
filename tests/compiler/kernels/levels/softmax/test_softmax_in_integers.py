"""Softmax in whole numbers is TensorFlow Lite's, as its source has it number by number, and its C is its NumPy."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of, compute
from tilewright.compiler.kernels.levels.softmax.softmax_in_integers import SOFTMAX_IN_INTEGERS
from tilewright.compiler.tflite.numbers.kernel_numbers import softmax_terms
from tilewright.isa.integers.gemmlowp import divide_by_power, high_product

SHAPES = (((1, 10), 1), ((2, 5, 3, 4), 1), ((3, 7), -1), ((4, 1), 1), ((6, 300), 0), ((300, 2), -1))


def row_of(x, terms):
    """Return the levels of a row, by ``Softmax`` of kernels/internal/reference/softmax.h."""
    parts = [int(terms[max(x) - each]) for each in x]
    total = sum(divide_by_power(part, 12) for part in parts)
    zeros = 32 - total.bit_length()
    half = ((total << zeros) - (1 << 31) + (1 << 31)) >> 1
    near = 1515870810 + high_product(half, -1010580540)
    for _ in range(3):
        near += high_product(near, (1 << 29) - high_product(half, near)) << 2
    scale = min(near << 1, (1 << 31) - 1)
    return [min(divide_by_power(high_product(scale, part), 35 - zeros) - 128, 127) for part in parts]


def test_rows_are_those_of_the_source():
    rng, cases = np.random.default_rng(3), []
    for shape, axis in SHAPES:
        for scale in (0.06, 1.0, 0.003):
            terms = softmax_terms(scale, 1.0)
            x = np.clip(rng.normal(0, rng.choice([9, 60]), shape), -128, 127).astype(np.int8)
            attrs = {"axis": axis % len(shape), "terms": terms.tolist()}
            found = compute(call_of("SoftmaxInIntegers", [x], shape, "int8", attrs), [x])
            rows = np.moveaxis(x, axis, -1).astype(int)
            wanted = np.array([row_of(row, terms) for row in rows.reshape(-1, shape[axis]).tolist()])
            assert np.array_equal(np.moveaxis(found, axis, -1).reshape(wanted.shape), wanted)
            cases.append(("SoftmaxInIntegers", [x], shape, "int8", attrs))
    check_c(cases)


def test_terms_are_exponentials_down_to_the_kernels_radius():
    terms = softmax_terms(0.1, 2.0) / 2**31
    below = np.arange(256) * 0.2
    assert np.abs(terms - np.exp(-below))[:156].max() < 2e-7
    assert not terms[156:].any()


@pytest.mark.parametrize("attrs", [{"axis": 1, "terms": [2**31 - 1] * 255}, {"axis": 1, "terms": [5] * 256}])
def test_other_terms_are_refused(attrs):
    x = np.zeros((1, 4), np.int8)
    assert SOFTMAX_IN_INTEGERS.refusal(call_of("SoftmaxInIntegers", [x], x.shape, "int8", attrs)) is not None
