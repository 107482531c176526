"""Layers get whole numbers for all sums that they can have, and layers that copy keep their scale of 1."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.random_layers import fitting_layers
from tests.support.side_by_side import side_by_side
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.network.layers import Requantisation
from tilewright.compiler.network.reference import accumulate
from tilewright.compiler.scales.integers_alone import sums_of, with_integers_alone
from tilewright.isa.machine import preset

NANO = preset("nano")


def layers_of(seed, count=40):
    return [each for each in fitting_layers(np.random.default_rng(seed), NANO, count) if each.factor is None]


@pytest.mark.parametrize("seed", range(3))
def test_no_sum_lies_outside_those_that_are_proved(seed):
    """All inputs at their ends, by the signs of the weights, and random ones."""
    rng = np.random.default_rng(seed)
    for layer in layers_of(seed):
        sums = sums_of(layer)
        for low, high in ((-128, 128), (-128, -127), (127, 128)):
            found = accumulate(layer, rng.integers(low, high, layer.in_shape).astype(np.int8)).astype(np.int64)
            places, rest = np.divmod(found - sums.first[:, None, None], sums.step[:, None, None])
            assert not rest.any()
            assert (places >= 0).all()
            assert (places <= sums.last[:, None, None]).all()


def test_the_ends_of_a_window_s_sums_are_reached():
    layer = next(each for each in layers_of(1) if each.weights is not None)
    sums, weights = sums_of(layer), layer.weights[0].astype(np.int64)
    for sign, end in ((1, sums.first + sums.step * sums.last), (-1, sums.first)):
        window = np.where(sign * weights > 0, 127, -128)
        assert (window * weights).sum() + layer.bias[0] == end[0]


def test_scales_of_one_stay_and_others_become_whole_numbers():
    layers = [each for each in layers_of(2) if each.kind == "pass"][:3]
    copies = [replace(each, requantisation=Requantisation(scale=np.ones_like(each.requantisation.scale), zero_point=0))
              for each in layers]
    made = with_integers_alone(side_by_side(copies)).layers
    assert all(each.requantisation.integers is None for each in made)
    thirds = [replace(each, bias=np.zeros_like(each.bias), requantisation=Requantisation(
        scale=np.full_like(each.requantisation.scale, 1 / 3), zero_point=4)) for each in layers]
    made = with_integers_alone(side_by_side(thirds)).layers
    assert all(each.requantisation.integers is not None for each in made)


def test_layers_without_an_equal_are_refused_together():
    layers = [each for each in layers_of(2) if each.kind == "pass"][:3]
    halves = [replace(each, bias=np.zeros_like(each.bias), requantisation=Requantisation(
        scale=np.full_like(each.requantisation.scale, 0.5), zero_point=0)) for each in layers]
    with pytest.raises(UnsupportedNodeError, match="integer_requantise=true") as caught:
        with_integers_alone(side_by_side(halves))
    assert len(caught.value.others) == 2
    assert "tflm" in caught.value.way_out
