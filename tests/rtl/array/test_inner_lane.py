"""Lanes of the inner product give plain sums of products once xi is off and eta in the bias, two MACs a multiplier."""

import itertools
from functools import cache

import numpy as np
import pytest

from tests.support.extreme_values import KINDS, int8_values
from tests.support.inner_arrays import MULTIPLIERS, RunArray, groups_that_fit, issue, read, slots_of
from tests.support.streams import simulate
from tilewright.isa.semantics.inner_product import fold_run_eta
from tilewright.rtl.array.inner_lane import CHANNELS

INT32 = 2**31

run_array = cache(RunArray)


def run(lanes, tiles, post_lanes, x, w):
    """Return sums (groups, tiles, channels) and the cycles of ``complete``.

    ``x`` is (groups, steps, tiles, 16), ``w`` (steps, lanes, 2, 16).
    """
    array = run_array(lanes, tiles, post_lanes)
    data = [[[{"v": tile.tolist()} for tile in step] for step in group] for group in x]
    sums, seen = np.zeros((len(x), tiles, CHANNELS * lanes), np.int64), []

    async def bench(ctx):
        seen.extend(await issue(ctx, array, slots_of(data, tiles, dot=1), w.tolist()))
        for group, tile, part in itertools.product(range(len(x)), range(tiles), range(CHANNELS * lanes // post_lanes)):
            sums[group, tile, part * post_lanes:(part + 1) * post_lanes] = await read(
                ctx, array, tile + group * tiles, slice=part)

    simulate(array, bench)
    return sums, seen


def check(sums, x, w, bias):
    """Hold sums and folded bias to the dot products and the bias, wrapped to int32."""
    steps, lanes = w.shape[:2]
    weights = w.reshape(steps, lanes * CHANNELS, 16).transpose(1, 0, 2).reshape(lanes * CHANNELS, -1)
    expected = np.einsum("gstb,sncb->gtnc", x.astype(np.int64), w.astype(np.int64)).reshape(sums.shape) + bias
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal((sums + fold_run_eta(bias, weights)).astype(np.int32), expected.astype(np.int32))


@pytest.mark.parametrize(("lanes", "tiles", "post_lanes"), [(1, 1, 1), (1, 4, 2), (2, 2, 1), (4, 4, 2), (2, 4, 4)])
def test_sums_of_every_group_in_the_ring(lanes, tiles, post_lanes):
    x = int8_values("random", (groups_that_fit(tiles), 3, tiles, 16), 1)
    w = int8_values("random", (3, lanes, CHANNELS, 16), 2)
    sums, _ = run(lanes, tiles, post_lanes, x, w)
    bias = np.random.default_rng(3).integers(-INT32, INT32, CHANNELS * lanes).astype(np.int32)
    check(sums, x, w, bias)


@pytest.mark.parametrize(("kind", "weight_kind"), list(itertools.product(KINDS, KINDS)))
def test_extremes(kind, weight_kind):
    x, w = int8_values(kind, (2, 5, 2, 16), 4), int8_values(weight_kind, (5, 2, CHANNELS, 16), 5)
    sums, _ = run(2, 2, 2, x, w)
    check(sums, x, w, np.array([-INT32, INT32 - 1, 0, -1], np.int32))


@pytest.mark.parametrize("used", [1, 9, 15])
def test_zero_weights_make_bytes_of_any_value_count_for_nothing(used):
    x, w = int8_values("extremes", (1, 2, 2, 16), 6), int8_values("extremes", (2, 1, CHANNELS, 16), 7)
    w[:, :, :, used:] = 0
    sums, _ = run(1, 2, 2, x, w)
    check(sums, x, w, np.zeros(CHANNELS, np.int32))
    others = x.copy()
    others[..., used:] = -128
    others_sums, _ = run(1, 2, 2, others, w)
    np.testing.assert_array_equal(others_sums, sums)


def test_a_one_for_one_byte_takes_that_byte():
    """The factors of pool.sum have no eta, so sums need no bias."""
    x, w = int8_values("extremes", (1, 3, 4, 16), 8), np.zeros((3, 4, CHANNELS, 16), np.int8)
    for lane, channel in itertools.product(range(4), range(CHANNELS)):
        w[:, lane, channel, CHANNELS * lane + channel] = 1
    sums, _ = run(4, 4, 4, x, w)
    np.testing.assert_array_equal(sums, x.astype(np.int64).sum(axis=1)[..., :8])


def test_sums_wrap_to_32_bits():
    """A run's 2**19 and more, 9000 times over one tile, is beyond 2**32."""
    steps = 9000
    x, w = np.full((1, steps, 1, 16), -128, np.int8), np.full((steps, 1, CHANNELS, 16), -128, np.int8)
    sums, _ = run(1, 1, 2, x, w)
    assert steps * 8 * 2**16 > 2**32
    check(sums, x, w, np.array([5, -5], np.int32))


@pytest.mark.parametrize(("lanes", "tiles"), [(1, 1), (2, 2), (4, 4)])
def test_rate_is_two_macs_for_each_multiplier_and_cycle(lanes, tiles):
    steps, groups = 6, groups_that_fit(tiles)
    x, w = int8_values("random", (groups, steps, tiles, 16), 9), int8_values("random", (steps, lanes, CHANNELS, 16), 10)
    sums, seen = run(lanes, tiles, 1, x, w)
    check(sums, x, w, np.zeros(CHANNELS * lanes, np.int32))
    macs = (groups - 1) * steps * tiles * 16 * CHANNELS * lanes
    assert macs / (MULTIPLIERS * lanes * (seen[-1] - seen[0])) == 2
