"""Elementary functions keep the bounds they state, over all of float32, and their C is their NumPy bit for bit."""

import math

import numpy as np
import pytest

from tests.support.core_kernels import call_of, compute, run_c, same_bits
from tilewright.compiler.kernels.language import float_functions as functions
from tilewright.compiler.kernels.language.c_expression import c_lines
from tilewright.compiler.kernels.language.expression import constant, evaluate, sqrt, variable, where

SMALLEST_NORMAL = 1.1754944e-38
EVERYWHERE = np.arange(0, 2**32, 4099, np.uint64).astype(np.uint32).view(np.float32)
NEAR = np.random.default_rng(0).uniform(-20, 20, 300_000).astype(np.float32)
REFERENCES = {
    "exp": (np.exp, 1), "log": (np.log, 1), "tanh": (np.tanh, 3), "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 3),
    "softplus": (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x))), 4), "erf": (np.vectorize(math.erf), 3),
}


@pytest.mark.parametrize("x", [EVERYWHERE, NEAR], ids=["everywhere", "near"])
@pytest.mark.parametrize("name", REFERENCES)
def test_elementary_functions_keep_their_bounds(name, x):
    reference, bound = REFERENCES[name]
    function = getattr(functions, name)
    result = evaluate(function.body, {"x": x})
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64))
        rounded = exact.astype(np.float32)
        error = abs(result - exact) / np.spacing(abs(rounded))
    assert result.dtype == np.float32
    assert np.array_equal(np.isnan(result), np.isnan(rounded))
    assert np.array_equal(np.isinf(result), np.isinf(rounded))
    assert np.max(error[np.isfinite(rounded) & (abs(exact) > SMALLEST_NORMAL)]) <= bound


@pytest.mark.parametrize("name", ["rint", "floor", "ceil"])
def test_rounding_is_numpys_bit_for_bit(name):
    with np.errstate(all="ignore"):
        assert same_bits(evaluate(getattr(functions, name).body, {"x": EVERYWHERE}), getattr(np, name)(EVERYWHERE))


def test_powers_keep_their_bound():
    rng = np.random.default_rng(1)
    x = abs(rng.standard_normal(200_000) * 10).astype(np.float32)
    y = (rng.standard_normal(200_000) * 8).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) ** y
        rounded = exact.astype(np.float32)
        error = abs(evaluate(functions.power.body, {"x": x, "y": y}) - exact) / np.spacing(rounded)
    assert np.max(error[np.isfinite(rounded) & (exact > SMALLEST_NORMAL)]) <= 1


def test_powers_at_the_edges_are_cs():
    edges = [0.0, -0.0, 1, -1, 2, 3, -2, -3, 0.5, -0.5, 1e-40, -1e-40, math.inf, -math.inf, math.nan, 1e30, -1e30, 7,
             1.5]
    for x in edges:
        for y in edges:
            result = evaluate(functions.power.body, {"x": np.float32(x), "y": np.float32(y)})
            with np.errstate(all="ignore"):
                # As C defines it; Python's own raises where C returns an infinity or NaN.
                wanted = np.float32(np.power(np.array([x], np.float32).astype(np.float64),
                                             np.array([y], np.float32).astype(np.float64))[0])
            assert same_bits(np.array(result), np.array(wanted)) or np.isclose(result, wanted, rtol=2e-7), (x, y)


@pytest.mark.parametrize("op", ["Exp", "Log", "Tanh", "Sigmoid", "Softplus", "Erf", "Floor", "Ceil", "Round", "Sqrt"])
def test_c_is_numpy_over_all_of_float32(op):
    x = EVERYWHERE[::2]
    call = call_of(op, [x], x.shape, "float32")
    assert same_bits(run_c([call], [[x]])[0], compute(call, [x]))


def test_c_of_power_is_numpy_bit_for_bit():
    x, y = EVERYWHERE[::5], np.random.default_rng(2).permutation(EVERYWHERE)[::5]
    y[::3] = np.random.default_rng(3).integers(-30, 30, len(y[::3]))
    call = call_of("Pow", [x, y], x.shape, "float32")
    assert same_bits(run_c([call], [[x, y]])[0], compute(call, [x, y]))


def test_a_value_used_twice_is_a_variable_and_a_choice_stays_lazy():
    x = variable("x", "float32")
    square = x * x
    assert c_lines(where(x < 0, sqrt(x), square + square * 2)) == (
        ["const float t0 = x * x;"], "tw_less(x, 0.0f) ? tw_sqrt(x) : t0 + t0 * 2.0f")
    assert c_lines(x - (x - (x - 1)) - x * (x + 1))[1] == "x - (x - (x - 1.0f)) - x * (x + 1.0f)"


def test_operands_of_two_dtypes_need_a_cast():
    with pytest.raises(TypeError, match="float32, not int8"):
        constant(1, "float32") + variable("x", "int8")
