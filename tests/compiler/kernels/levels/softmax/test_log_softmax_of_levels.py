"""LogSoftmax of levels is that of the numbers they stand for, to a level or to a float, and its C is its NumPy."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of, compute
from tilewright.compiler.kernels.levels.softmax.log_softmax_of_levels import LOG_SOFTMAX_OF_LEVELS

OP = "LogSoftmaxOfLevels"


def logarithms(x, scale):
    """Return float64 from the definition, along the last axis."""
    values = x.astype(np.float64) * scale
    values -= values.max(axis=-1, keepdims=True)
    return values - np.log(np.exp(values).sum(axis=-1, keepdims=True))


def rows_of_levels(length, count, widest, dtype="int8"):
    """Return normally distributed rows."""
    x = np.rint(np.random.default_rng((length, widest)).normal(0, widest, (count, length)))
    return (np.clip(x, -128, 127) + (128 if dtype == "uint8" else 0)).astype(dtype)


@pytest.mark.parametrize("widest", [4, 40])
@pytest.mark.parametrize("scale", [0.004, 0.06, 0.7, 1.9])
@pytest.mark.parametrize("length", [2, 10, 37, 65, 401, 8192])
def test_floats_are_within_one_in_a_million_before_they_are_rounded(length, scale, widest):
    x = rows_of_levels(length, 40_000 // length + 1, widest)
    wanted = logarithms(x, scale)
    found = compute(call_of(OP, [x], x.shape, "float32", {"scale_value": scale, "axis": 1}), [x])
    np.testing.assert_allclose(found, wanted, rtol=6e-8, atol=1e-6)


def quantised(length, scale, y_scale, zero, count):
    """Return how many levels lie beside those of float32, of how many; none is further off than one."""
    x = rows_of_levels(length, count, 40)
    attrs = {"scale_value": scale, "axis": 1, "y_scale": y_scale, "y_zero_point": zero}
    found = compute(call_of(OP, [x], x.shape, "int8", attrs), [x])
    wanted = np.clip(np.rint(logarithms(x, scale).astype(np.float32) / np.float32(y_scale)) + zero, -128, 127)
    difference = np.abs(found - wanted)
    assert difference.max() <= 1
    return np.count_nonzero(difference), difference.size


def test_at_most_two_hundred_levels_in_a_million_lie_beside_those_of_floats():
    found = [quantised(length, scale, y_scale, zero, 20_000 // length) for length in (3, 10, 37, 100, 1000)
             for scale in (0.02, 0.06, 0.4) for y_scale, zero in ((0.05, 100), (0.11, 127), (0.9, 127))]
    off, seen = np.sum(found, axis=0)
    assert seen > 800_000
    assert off <= 200e-6 * seen


def test_its_c_is_its_numpy():
    cases = []
    for dtype, length, attrs in (("int8", 37, {}), ("uint8", 600, {}), ("int8", 1, {}), ("uint8", 70, {}),
                                 ("int8", 10, {"y_scale": 0.1, "y_zero_point": 127}), ("int8", 2, {}),
                                 ("uint8", 90, {"y_scale": 0.07, "y_zero_point": 255}),
                                 ("uint8", 2, {"y_scale": 0.07, "y_zero_point": 255})):
        x = rows_of_levels(length, 9, 40, dtype)
        x[0], x[1, :] = np.iinfo(dtype).min, np.iinfo(dtype).min
        x[1, 0] = np.iinfo(dtype).max      # far above the others: a logarithm of 1
        cases.append((OP, [x], x.shape, dtype if attrs else "float32", {"scale_value": 0.3, "axis": 1, **attrs}))
    check_c(cases)


@pytest.mark.parametrize(("attrs", "dtype"), [
    ({"scale_value": 2.1}, "float32"), ({"scale_value": 0.1, "y_scale": 1e-5, "y_zero_point": 0}, "int8")])
def test_numbers_without_room_for_their_fractions_are_refused(attrs, dtype):
    x = np.zeros((2, 4), np.int8)
    assert "fractional bits" in LOG_SOFTMAX_OF_LEVELS.refusal(call_of(OP, [x], x.shape, dtype, {"axis": 1, **attrs}))
