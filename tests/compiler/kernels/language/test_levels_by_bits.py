"""Quantising by comparing bits gives what a quotient, its rounding and its bounds give, for every float."""

import numpy as np
import pytest

from tilewright.compiler.kernels.language.expression import constant, evaluate, variable
from tilewright.compiler.kernels.language.levels_by_bits import level_at_run_time, level_of_bits, smallest_magnitudes
from tilewright.compiler.kernels.operators.quantisation import saturate

X = variable("x", "float32")


def floats(scale, rng):
    """Return floats at and beside all halves and whole multiples of ``scale``, and any others."""
    multiples = np.arange(-600, 600) / 2 * np.float64(scale)
    near = [multiples.astype(np.float32)]
    for towards in (np.inf, -np.inf):
        beside = near[0]
        for _ in range(3):
            beside = np.nextafter(beside, np.float32(towards))
            near.append(beside)
    return np.concatenate([*near, rng.integers(-2**31, 2**31, 20000).astype(np.int32).view(np.float32),
                           np.array([0, -0.0, np.inf, -np.inf, np.nan, -np.nan], np.float32)])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("scale", [1, 0.5, 1 / 255, 0.037, 1.9999999, 2.0**-100, 2.0**110, 1e-36])
def test_levels_are_those_of_the_quotient(scale, dtype):
    rng, bounds = np.random.default_rng(3), np.iinfo(dtype)
    scale = np.float32(scale)
    x = floats(scale, rng)
    for zero in (bounds.min, bounds.max, 0, 3, int(rng.integers(bounds.min, bounds.max))):
        quick = level_of_bits(X, float(scale), zero, dtype)
        assert quick is not None
        wanted = saturate(X / float(scale), constant(zero, "int32"), dtype)
        np.testing.assert_array_equal(evaluate(quick, {"x": x}), evaluate(wanted, {"x": x}))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("scale", [
    1, 0.5, 1 / 255, 0.037, 1.9999999, 1.0000001, 2.0**-100, 2.0**110, 1e-36, 0, -1, np.inf, np.nan, 1e38, 1e-40])
def test_levels_by_a_scale_of_run_time_are_those_of_the_quotient(scale, dtype):
    rng, bounds = np.random.default_rng(3), np.iinfo(dtype)
    s, zero = variable("s", "float32"), variable("z", "int32")
    wanted = saturate(X / s, zero, dtype)
    quick = level_at_run_time(X, s, zero, wanted, dtype)
    marked = level_at_run_time(X, s, zero, constant(77, dtype), dtype)
    with np.errstate(all="ignore"):
        x = floats(np.float32(scale), rng)
        for point in (bounds.min, bounds.max, 3, int(rng.integers(bounds.min, bounds.max))):
            given = {"x": x, "s": np.float32(scale), "z": np.int32(point)}
            expected = evaluate(wanted, given)
            np.testing.assert_array_equal(evaluate(quick, given), expected)
            if 1e-36 < scale < 1e37:    # most of them are not divided
                assert np.mean(evaluate(marked, given)[7 * 1200:-6] == expected[7 * 1200:-6]) > 0.99


@pytest.mark.parametrize("scale", [0, -1, np.inf, np.nan, 1e38, 2.0**-126, 1e-40])
def test_scales_beyond_the_normal_are_left(scale):
    assert smallest_magnitudes(np.float32(scale), 255) is None
    assert level_of_bits(X, scale, 0, "int8") is None


def test_a_zero_point_outside_the_type_is_left():
    assert level_of_bits(X, 0.1, 128, "int8") is None
