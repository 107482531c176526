"""Weights rounded to few bits: the least squared error, of the weights or of what their layer computes."""

import numpy as np
import pytest

from tilewright.runtime.precision.weight_rounding import ends, rounded_weights

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("bits", [2, 4])
def test_weights_that_are_levels_of_few_bits_stay_as_they_are(bits):
    low, high = ends(bits)
    levels = RNG.integers(low, high + 1, (6, 40)).astype(np.int8)
    levels[:, :2] = low, high
    scales = RNG.uniform(0.01, 2, 6)
    found, steps = rounded_weights(levels * scales[:, np.newaxis], bits)
    assert np.array_equal(found, levels)
    assert np.allclose(steps, scales)


@pytest.mark.parametrize("bits", [2, 4])
def test_no_scale_of_a_fine_search_has_a_much_smaller_error(bits):
    weights = RNG.normal(0, 1, (8, 64))
    found, scales = rounded_weights(weights, bits)
    error = ((found * scales[:, np.newaxis] - weights)**2).sum(axis=1)
    fine = np.linspace(0.01, 4, 4000)
    least = np.min([((np.clip(np.rint(weights / scale), *ends(bits)) * scale - weights)**2).sum(axis=1)
                    for scale in fine], axis=0)
    assert (error <= 1.02 * least).all()


@pytest.mark.parametrize("bits", [2, 4])
def test_results_are_nearer_if_the_inputs_are_known(bits):
    inputs = RNG.normal(0, 1, (500, 8)) @ RNG.normal(0, 1, (8, 32)) + 0.1 * RNG.normal(0, 1, (500, 32))
    weights = RNG.normal(0, 1, (5, 32))

    def error(moments: np.ndarray | None) -> float:
        levels, scales = rounded_weights(weights, bits, moments)
        return float(((inputs @ (levels * scales[:, np.newaxis] - weights).T)**2).mean())

    assert error(inputs.T @ inputs / len(inputs)) < 0.5 * error(None)


def test_a_channel_of_zeros_has_no_scale():
    levels, scales = rounded_weights(np.array([[0.0, 0.0], [1.0, -1.0]]), 4, np.eye(2))
    assert levels[0].tolist() == [0, 0]
    assert scales[0] == 0 < scales[1]
