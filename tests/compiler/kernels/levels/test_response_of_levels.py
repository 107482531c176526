"""LRN of levels is within a level of LRN of the numbers they stand for, and its C is its NumPy."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of, compute
from tilewright.compiler.kernels.levels.response_of_levels import RESPONSE_OF_LEVELS


def attributes(**changes):
    return {"scale_value": 0.5, "zero_point_value": -128, "y_scale": 0.4, "y_zero_point": -128, "size": 5, **changes}


def exact(x, attrs):
    alpha, beta, bias = (attrs.get(name, value) for name, value in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    size, real = attrs["size"], (x.astype(np.float64) - attrs["zero_point_value"]) * attrs["scale_value"]
    before = (size - 1) // 2
    squares = np.pad(real * real, [(0, 0), (before, size - 1 - before)] + [(0, 0)] * (x.ndim - 2))
    sums = sum(squares[:, k:k + x.shape[1]] for k in range(size))
    y = real / (bias + alpha / size * sums) ** beta
    bounds = np.iinfo(x.dtype)
    return np.clip(np.rint(y / attrs["y_scale"]) + attrs["y_zero_point"], bounds.min, bounds.max)


@pytest.mark.parametrize("shape", [(1, 96, 3, 4), (2, 3, 5), (1, 1, 2, 2), (1, 6, 2, 3)])
def test_results_are_within_a_level_of_those_of_the_numbers(shape):
    rng, cases = np.random.default_rng(6), []
    for changes in ({}, {"size": 4}, {"size": 1}, {"size": 9, "alpha": 0.001}, {"beta": 0.5, "bias": 2.0},
                    {"zero_point_value": 0, "y_zero_point": 5, "y_scale": 0.2}, {"scale_value": 0.02, "y_scale": 0.02},
                    {"alpha": 0.05, "scale_value": 0.05, "y_scale": 0.02}):
        attrs = attributes(**changes)
        x = rng.integers(-128, 128, shape, np.int8)
        found = compute(call_of("ResponseOfLevels", [x], shape, "int8", attrs), [x])
        wanted = exact(x, attrs)
        assert np.abs(found - wanted).max() <= 1
        assert np.mean(found != wanted) < 0.1
        cases.append(("ResponseOfLevels", [x], shape, "int8", attrs))
    x = rng.integers(0, 256, shape, np.uint8)
    unsigned = attributes(zero_point_value=100, y_zero_point=100)
    assert np.abs(compute(call_of("ResponseOfLevels", [x], shape, "uint8", unsigned), [x]).astype(int)
                  - exact(x, unsigned)).max() <= 1
    check_c([*cases, ("ResponseOfLevels", [x], shape, "uint8", unsigned)])


@pytest.mark.parametrize("changes", [{"bias": 0.0}, {"scale_value": -1.0}, {"y_scale": 0.0}, {"size": 0}, {"size": 99},
                                     {"alpha": float("inf")}, {"alpha": 1e4}, {"y_scale": 1e-12}])
def test_what_a_table_does_not_come_close_to_is_refused(changes):
    x = np.zeros((1, 4, 3, 3), np.int8)
    call = call_of("ResponseOfLevels", [x], x.shape, "int8", attributes(**changes))
    assert RESPONSE_OF_LEVELS.refusal(call) is not None
