"""Normalisations of levels are within a level of those of the numbers they stand for, and the C is the NumPy."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of, compute
from tilewright.compiler.kernels.levels.normalisation_of_levels import NORMALISATION_OF_LEVELS

SHAPE = (1, 6, 5, 7)


def attributes(kind, count, **changes):
    rng = np.random.default_rng(count)
    return {"kind": kind, "scale_value": 0.05, "y_scale": 0.03, "y_zero_point": -7, "epsilon": 1e-3, "axis": -1,
            "num_groups": 2, "zero_point_value": 9, "gains": rng.uniform(-1.5, 1.5, count).tolist(),
            "shifts": rng.uniform(-1, 1, count).tolist(), **changes}


def exact(x, attrs):
    real = x.astype(np.float64) * attrs["scale_value"]
    kind, (batch, channels, *rest) = attrs["kind"], x.shape
    along = {"InstanceNormalization": (2, 3), "GroupNormalization": (2, 3, 4)}.get(kind, (3,))
    rows = real.reshape(batch, attrs["num_groups"], -1, *rest) if kind == "GroupNormalization" else real
    mean = attrs["zero_point_value"] * attrs["scale_value"] if kind == "RMSNormalization" else \
        rows.mean(axis=along, keepdims=True)
    normal = (rows - mean) / np.sqrt(((rows - mean)**2).mean(axis=along, keepdims=True) + attrs["epsilon"])
    shape = (-1,) if along == (3,) else (channels, 1, 1)
    y = normal.reshape(x.shape) * np.reshape(attrs["gains"], shape) + np.reshape(attrs["shifts"], shape)
    bounds = np.iinfo(x.dtype)
    low = max(attrs.get("low", bounds.min), bounds.min)
    return np.clip(np.rint(y / attrs["y_scale"]) + attrs["y_zero_point"], low, bounds.max)


@pytest.mark.parametrize(("kind", "count"), [
    ("InstanceNormalization", 6), ("LayerNormalization", 7), ("GroupNormalization", 6), ("RMSNormalization", 7)])
def test_results_are_within_a_level_of_those_of_the_numbers(kind, count):
    rng, cases = np.random.default_rng(6), []
    for changes in ({}, {"low": -7}, {"scale_value": 2.0}, {"scale_value": 0.001, "epsilon": 1e-5}, {"y_scale": 0.3},
                    {"epsilon": 4.0}, {"scale_value": 1e9}):
        attrs = attributes(kind, count, **changes)
        x = rng.integers(-128, 128, SHAPE, np.int8)
        x[:, 0] = 5     # no variance
        found, wanted = compute(call_of("NormalisationOfLevels", [x], SHAPE, "int8", attrs), [x]), exact(x, attrs)
        assert np.abs(found - wanted).max() <= 1
        assert np.mean(found != wanted) < 0.02
        assert len(np.unique(found)) > 10
        cases.append(("NormalisationOfLevels", [x], SHAPE, "int8", attrs))
    x = rng.integers(0, 256, SHAPE, np.uint8)
    attrs = attributes(kind, count, y_zero_point=100)
    found = compute(call_of("NormalisationOfLevels", [x], SHAPE, "uint8", attrs), [x])
    assert np.abs(found - exact(x, attrs)).max() <= 1
    check_c([*cases, ("NormalisationOfLevels", [x], SHAPE, "uint8", attrs)])


@pytest.mark.parametrize("changes", [{"kind": "LRN"}, {"epsilon": 0.0}, {"scale_value": -1.0}, {"y_scale": 1e-9},
                                     {"gains": [1.0]}, {"gains": [float("nan")] * 6}])
def test_what_has_no_such_integers_is_refused(changes):
    x = np.zeros(SHAPE, np.int8)
    attrs = {**attributes("InstanceNormalization", 6), **changes}
    assert NORMALISATION_OF_LEVELS.refusal(call_of("NormalisationOfLevels", [x], SHAPE, "int8", attrs)) is not None


@pytest.mark.parametrize(("kind", "count"), [
    ("InstanceNormalization", 6), ("LayerNormalization", 7), ("GroupNormalization", 6)])
@pytest.mark.parametrize(("variance", "zero"), [("int8", -128), ("uint8", 0)])
def test_a_quantised_variance_is_looked_up(kind, count, variance, zero):
    """The factors of levels without variance are infinite: as QuantizeLinear, above the mean is 127, else -128."""
    rng, step, levels = np.random.default_rng(7), 0.05, np.arange(256)
    with np.errstate(divide="ignore"):
        factors = 1 / np.sqrt(levels * step)
    attrs = attributes(kind, count, epsilon=0.0, factors=factors.tolist(), variance_scale=step,
                       variance_zero_point=zero, variance_dtype=variance, gains=[1.0] * count, shifts=[0.0] * count,
                       y_zero_point=3)
    x = rng.integers(-128, 128, SHAPE, np.int8)
    x[:, :2] = 5 + (rng.uniform(size=(1, 2, *SHAPE[2:])) < 0.05)
    along = {"InstanceNormalization": (2, 3), "LayerNormalization": (3,), "GroupNormalization": (2, 3, 4)}[kind]
    real = x * attrs["scale_value"]
    rows = real.reshape(1, 2, 3, 5, 7) if kind == "GroupNormalization" else real
    less = rows - rows.mean(axis=along, keepdims=True)
    level = np.clip(np.rint((less**2).mean(axis=along, keepdims=True) / step), 0, 255).astype(int)
    with np.errstate(invalid="ignore"):
        y = np.rint(np.where(np.isinf(factors[level]), np.where(less > 1e-9, 1e9, -1e9), less * factors[level])
                    / attrs["y_scale"]) + 3
    wanted = np.clip(y, -128, 127).reshape(SHAPE)
    case = ("NormalisationOfLevels", [x], SHAPE, "int8", attrs)
    found = compute(call_of(*case), [x])
    assert np.abs(found - wanted).max() <= 1
    assert np.mean(found != wanted) < 0.05
    assert {-128, 127} < set(np.unique(found)) if kind != "GroupNormalization" else len(np.unique(found)) > 10
    check_c([case])


@pytest.mark.parametrize("changes", [{"factors": [1.0]}, {"factors": [-1.0] * 256}, {"factors": [1e9] * 256},
                                     {"variance_scale": 0.0}, {"factors": [float("nan")] * 256}])
def test_factors_that_are_none_are_refused(changes):
    x = np.zeros(SHAPE, np.int8)
    attrs = {**attributes("InstanceNormalization", 6), "factors": [1.0] * 256, "variance_scale": 0.1,
             "variance_zero_point": -128, "variance_dtype": "int8", **changes}
    assert NORMALISATION_OF_LEVELS.refusal(call_of("NormalisationOfLevels", [x], SHAPE, "int8", attrs)) is not None
