"""Softmax of words is that of the numbers they stand for, within one level, and its C is its NumPy."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of, compute
from tilewright.compiler.kernels.levels.softmax.softmax_of_words import SOFTMAX_OF_WORDS

SHAPES = (((1, 300), 1), ((2, 5, 3, 4), 1), ((3, 7), -1), ((4, 1), 1), ((1, 8, 4, 16), 1))


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_results_are_those_of_the_numbers(dtype):
    rng, cases, bounds = np.random.default_rng(5), [], np.iinfo(dtype)
    for shape, axis in SHAPES:
        for scale in (0.0003, 0.01, 0.00001):
            x = rng.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
            below = (x.astype(np.float64) - x.max(axis=axis, keepdims=True)) * scale
            real = np.exp(below) / np.exp(below).sum(axis=axis, keepdims=True)
            for y_scale, zero in ((1 / 65_535, bounds.min), (1 / 32_767, bounds.min // 2), (0.25, 3)):
                attrs = {"scale_value": scale, "axis": axis, "y_scale": float(np.float32(y_scale)),
                         "y_zero_point": int(zero)}
                found = compute(call_of("SoftmaxOfWords", [x], shape, dtype, attrs), [x])
                off = found - np.clip(real / attrs["y_scale"] + zero, bounds.min, bounds.max)
                assert np.abs(off).max() < 0.55
                cases.append(("SoftmaxOfWords", [x], shape, dtype, attrs))
    check_c(cases)


@pytest.mark.parametrize(("shape", "more"), [((1, 1025), {}), ((1, 4), {"scale_value": -1.0}),
                                             ((1, 4), {"y_scale": 2.0**-18}), ((1, 4), {"y_zero_point": 40_000})])
def test_what_it_does_not_hold_is_refused(shape, more):
    attrs = {"scale_value": 0.01, "axis": 1, "y_scale": 2.0**-15, "y_zero_point": 0, **more}
    assert SOFTMAX_OF_WORDS.refusal(call_of("SoftmaxOfWords", [np.zeros(shape, np.int16)], shape, "int16", attrs))
