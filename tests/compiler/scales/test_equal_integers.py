"""Whole numbers in place of a float32 scale give its levels for every sum, and none are given where there are none."""

import numpy as np
import pytest

from tilewright.compiler.network.integer_scale import IntegerScale, LongScale
from tilewright.compiler.network.layers import Requantisation
from tilewright.compiler.network.reference import requantise
from tilewright.compiler.scales.equal_integers import Sums, equal_integers
from tilewright.isa import numerics
from tilewright.isa.integers.half_away import half_away


def sums_between(ends, step=1):
    """Return the sums from the first of ``ends``, (least, greatest) of each channel, in steps."""
    first = np.array([least for least, _ in ends], np.int64)
    steps = np.full(len(ends), step, np.int64)
    return Sums(first, steps, np.array([(most - least) // step for least, most in ends], np.int64))


def levels_of(found, number, sums):
    """Return the levels of one channel's ``sums`` by numbers and what they add to a bias."""
    integers, moved = found
    unbounded = integers.of_channels(slice(1)).levels((sums + moved[0]).astype(np.int32)[None, :, None])[0, :, 0]
    return np.clip(unbounded + number.zero_point, number.low, number.high)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 7, 9, 16, 25, 49, 50, 64, 169, 225, 1000, 1024])
def test_averages_of_all_windows_have_halves_away_from_zero(count):
    """As .tflite files have them: the scale is 1/n (1 + 2**-19), and every sum of n levels is divided."""
    number = Requantisation(scale=np.array([np.float32(1 / count * (1 + 2.0**-19))]), zero_point=0)
    least, most = -128 * count, 127 * count
    found = equal_integers(number, sums_between([(least, most)]))
    assert isinstance(found[0], LongScale)
    sums = np.arange(least, most + 1)
    sizes = (2 * np.abs(sums) + count) // (2 * count)
    assert np.array_equal(levels_of(found, number, sums), np.sign(sums) * sizes)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_found_equals_the_scale_at_every_sum(seed):
    rng = np.random.default_rng(seed)
    scale = np.exp2(rng.uniform(-10, 0, 1)).astype(np.float32)
    zero = int(rng.integers(-128, 128))
    low, high = sorted(rng.choice([(-128, 127), tuple(rng.integers(-128, 128, 2).tolist())]))
    number = Requantisation(scale=scale, zero_point=zero, low=int(low), high=int(high))
    least, most = -int(rng.integers(1, 300_000)), int(rng.integers(1, 300_000))
    found = equal_integers(number, sums_between([(least, most)]))
    sums = np.arange(least, most + 1)
    wanted = requantise(number, sums.astype(np.int32)[None, :, None])[0, :, 0]
    if found is not None:
        assert np.array_equal(levels_of(found, number, sums), wanted)
    mantissa, shift = numerics.pack_scale(float(scale[0]))
    some = rng.choice(sums, 50)
    assert wanted[some - least].tolist() == [numerics.requantise(
        int(each), bias=0, mantissa=mantissa, shift=shift, zero_point=zero, low=int(low), high=int(high))
        for each in some]


def test_most_scales_of_short_sums_have_an_equal():
    rng = np.random.default_rng(5)
    found = [equal_integers(Requantisation(scale=np.exp2(rng.uniform(-9, -2, 1)).astype(np.float32), zero_point=3),
                            sums_between([(-20_000, 20_000)])) for _ in range(30)]
    assert sum(each is not None for each in found) >= 20


def test_halves_to_even_have_no_equal_unless_no_sum_is_halfway():
    number = Requantisation(scale=np.array([0.5], np.float32), zero_point=0)
    assert equal_integers(number, sums_between([(-40, 40)])) is None
    assert equal_integers(number, sums_between([(-40, 40)], step=2)) is not None
    found = equal_integers(number, sums_between([(0, 1)]))      # 0.5 is 0
    assert levels_of(found, number, np.array([0, 1])).tolist() == [0, 0]


def test_one_channel_without_an_equal_is_enough_to_refuse():
    number = Requantisation(scale=np.array([0.25, 0.5], np.float32), zero_point=0)
    assert equal_integers(number, sums_between([(-1, 1), (-40, 40)])) is None
    assert equal_integers(number, sums_between([(-1, 1), (-1, 1)])) is not None


def test_halves_to_even_of_few_sums_are_met_with_an_addend_where_biases_may_move():
    """0.5 is 0 and 1.5 is 2, which no multiplier gives by itself."""
    number, sums = Requantisation(scale=np.array([0.5], np.float32), zero_point=-5), np.arange(-3, 4)
    found = equal_integers(number, sums_between([(0, 3)]))
    assert isinstance(found[0], IntegerScale)
    assert levels_of(found, number, sums[3:]).tolist() == [-5, -5, -4, -3]
    assert equal_integers(number, sums_between([(0, 3)]), moves=False) is None
    found = equal_integers(number, sums_between([(-3, 0)]))
    assert levels_of(found, number, sums[:4]).tolist() == [-7, -6, -5, -5]


@pytest.mark.parametrize("scale", [2.0**-36, 2.0**-31, 1e-20])
def test_scales_of_next_to_nothing_give_zero(scale):
    number = Requantisation(scale=np.array([scale], np.float32), zero_point=7)
    ends = (-(1 << 31), (1 << 31) - 1)
    found = equal_integers(number, sums_between([ends]))
    sums = np.array([*ends, 0, 1, -1])
    wanted = [numerics.clamp(half_away(int(each), 1, 31) + 7, -128, 127) if scale == 2.0**-31 else 7 for each in sums]
    assert found is None or levels_of(found, number, sums).tolist() == wanted
    assert found is not None or scale == 2.0**-31
