"""F(2x2, 3x3) with the inner product gives correlations and dot products, at 4.5 and 2 MACs a multiplier and cycle."""

import itertools
from functools import cache

import numpy as np
import pytest

from tests.support.extreme_values import KINDS, int8_values
from tests.support.inner_arrays import MULTIPLIERS, TileArray, groups_that_fit, issue, read, slots_of
from tests.support.streams import simulate
from tilewright.isa.semantics.inner_product import fold_run_eta, fold_tile_eta
from tilewright.rtl.array.winograd_inner_lane import ETA_BOUND, XI_BOUND

BT = np.array(((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)))
G2 = np.array(((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2)))
INT32 = 2**31

tile_array = cache(TileArray)


def run(shape, data, weights, *, winograd):
    """Return sums (groups, tiles, channels, pixels) and the cycles of ``complete``; ``shape`` as of `TileArray`."""
    lanes, tiles, post_lanes = shape
    array = tile_array(*shape)
    pixels, channels = 4 if winograd else 1, 2 * lanes
    sums, seen = np.zeros((len(data), tiles, channels, pixels), np.int64), []

    async def bench(ctx):
        ctx.set(array.u_dot, not winograd)
        slots = slots_of(data, tiles, dot=not winograd, channels=2 if winograd else 1)
        seen.extend(await issue(ctx, array, slots, weights))
        for group, tile, part, pixel in itertools.product(
                range(len(data)), range(tiles), range(channels // post_lanes), range(pixels)):
            sums[group, tile, part * post_lanes:(part + 1) * post_lanes, pixel] = await read(
                ctx, array, tile + group * tiles, winograd=winograd, pixel=pixel, slice=part)

    simulate(array, bench, deadline=40_000)
    return sums, seen


def tiles_of(shape, d, g):
    """Run patches (groups, pairs, tiles, 2, 4, 4) and kernels (pairs, channels, 2, 3, 3), two to a lane."""
    data = [[[{"even": tile[0].ravel().tolist(), "odd": tile[1].ravel().tolist()} for tile in step] for step in group]
            for group in d]
    weights = [[{name: kernels[half].ravel().tolist() + [99] * 7 for half, name in enumerate(("even", "odd"))}
                for kernels in step[second::2]] for step in g for second in range(2)]
    return run(shape, data, weights, winograd=True)


def runs_of(shape, x, w):
    """Run bytes (groups, steps, tiles, 16) and weights (steps, lanes, 2, 16), laid out as the lanes want them."""
    data = [[[{"even": [*tile[0::2].tolist()] * 2, "odd": [*tile[1::2].tolist()] * 2} for tile in step]
             for step in group] for group in x]
    weights = [[{"even": lane[:, 0::2].ravel().tolist(), "odd": lane[:, 1::2].ravel().tolist()} for lane in step]
               for step in w]
    return run(shape, data, weights, winograd=False)


def check_tiles(sums, d, g, bias):
    windows = np.lib.stride_tricks.sliding_window_view(d.astype(np.int64), (3, 3), axis=(4, 5))
    expected = np.einsum("gptcyxij,plcij->gtlyx", windows, g.astype(np.int64)).reshape(sums.shape) + bias[:, None]
    pairs, lanes = g.shape[:2]
    folded = fold_tile_eta(bias, g.transpose(1, 0, 2, 3, 4).reshape(lanes, 2 * pairs, 3, 3)).reshape(lanes, 4)
    np.testing.assert_array_equal((sums + folded).astype(np.int32), expected.astype(np.int32))


def check_runs(sums, x, w, bias):
    steps, lanes = w.shape[:2]
    weights = w.reshape(steps, 2 * lanes, 16).transpose(1, 0, 2).reshape(2 * lanes, -1)
    expected = np.einsum("gstb,sncb->gtnc", x.astype(np.int64), w.astype(np.int64)).reshape(sums.shape)
    folded = fold_run_eta(bias, weights)
    expected = (expected + bias[:, None]).astype(np.int32)
    np.testing.assert_array_equal((sums + folded[:, None]).astype(np.int32), expected)


SHAPES = [(1, 1, 1), (1, 4, 1), (2, 2, 2), (4, 4, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_tiles_of_every_group_in_the_ring(shape):
    lanes, tiles, _ = shape
    d = int8_values("random", (groups_that_fit(tiles), 3, tiles, 2, 4, 4), 1)
    g = int8_values("random", (3, 2 * lanes, 2, 3, 3), 2)
    sums, _ = tiles_of(shape, d, g)
    check_tiles(sums, d, g, np.random.default_rng(3).integers(-INT32, INT32, 2 * lanes).astype(np.int32))


@pytest.mark.parametrize("shape", SHAPES)
def test_runs_of_every_group_in_the_ring(shape):
    lanes, tiles, _ = shape
    x = int8_values("random", (groups_that_fit(tiles), 3, tiles, 16), 1)
    w = int8_values("random", (3, lanes, 2, 16), 2)
    sums, _ = runs_of(shape, x, w)
    check_runs(sums, x, w, np.random.default_rng(3).integers(-INT32, INT32, 2 * lanes).astype(np.int32))


@pytest.mark.parametrize(("kind", "weight_kind"), list(itertools.product(KINDS, KINDS)))
def test_extremes(kind, weight_kind):
    """All of -128 is where an operand is 1664 and a product 23 bits wide."""
    bias = np.array([-INT32, INT32 - 1], np.int32)
    d, g = int8_values(kind, (2, 2, 2, 2, 4, 4), 4), int8_values(weight_kind, (2, 4, 2, 3, 3), 5)
    check_tiles(tiles_of((2, 2, 2), d, g)[0], d, g, np.tile(bias, 2))
    x, w = int8_values(kind, (2, 2, 2, 16), 6), int8_values(weight_kind, (2, 2, 2, 16), 7)
    check_runs(runs_of((2, 2, 2), x, w)[0], x, w, np.tile(bias, 2))


def test_patterns_that_make_each_transformed_value_the_widest():
    """Patches and kernels whose signs are those of one coefficient reach that coefficient's bound, and its negative."""
    places = list(itertools.product(range(4), range(4), (1, -1)))
    patches = np.array([np.where(sign * np.outer(BT[y], BT[x]) > 0, 127, -128) for y, x, sign in places])
    kernels = np.array([np.where(sign * np.outer(G2[y], G2[x]) > 0, 127, -128) for y, x, sign in places])
    for shift in (0, 1):    # of both channels the same sign, and of each the other
        d = np.stack([patches, np.roll(patches, shift, 0)], axis=1).reshape(8, 1, 4, 2, 4, 4).astype(np.int8)
        g = np.stack([kernels, np.roll(kernels, shift, 0)], axis=1).astype(np.int8)
        for first in range(0, len(places), 8):
            both = np.stack([g[first], g[first - 1]])[None]
            check_tiles(tiles_of((1, 4, 1), d[:4], both)[0], d[:4], both, np.zeros(2, np.int32))


def test_bounds_of_what_a_slot_adds():
    """The largest sums of squares over the nine places of a pixel, of every patch and kernel of -128 and 127."""
    def corners(side):
        ones = np.arange(2 ** side**2)[:, None] >> np.arange(side**2) & 1
        return np.where(ones, 127, -128).reshape(-1, side, side)

    def largest(transformed):
        return max((transformed[:, y:y + 3, x:x + 3] ** 2).sum(axis=(1, 2)).max() for y in (0, 1) for x in (0, 1))

    assert largest(BT @ corners(4) @ BT.T) == XI_BOUND
    assert largest(G2 @ corners(3) @ G2.T) == ETA_BOUND


def test_odd_channels_take_a_zero_kernel_and_any_patch():
    d, g = int8_values("extremes", (1, 3, 2, 2, 4, 4), 8), int8_values("extremes", (3, 4, 2, 3, 3), 9)
    g[-1, :, 1] = 0
    sums, _ = tiles_of((2, 2, 1), d, g)
    check_tiles(sums, d, g, np.zeros(4, np.int32))
    d[:, -1, :, 1] = -128
    np.testing.assert_array_equal(tiles_of((2, 2, 1), d, g)[0], sums)


def test_sums_wrap_to_34_bits_and_pixels_are_exact():
    """2047 pairs of channels at the lowest values: 4 S + eta is beyond 2**33, S is an int32."""
    pairs = 2047
    d, g = np.full((1, pairs, 1, 2, 4, 4), -128, np.int8), np.full((pairs, 2, 2, 3, 3), -128, np.int8)
    check_tiles(tiles_of((1, 1, 1), d, g)[0], d, g, np.array([12345, -12345], np.int32))


@pytest.mark.parametrize(("winograd", "rate"), [(True, 4.5), (False, 2)])
@pytest.mark.parametrize("shape", [(1, 4, 1), (4, 4, 2)])
def test_rate(shape, winograd, rate):
    """MACs for each multiplier of the lanes and cycle, while tile groups follow each other."""
    lanes, tiles, _ = shape
    groups, steps = groups_that_fit(tiles), 5
    if winograd:
        d = int8_values("random", (groups, steps, tiles, 2, 4, 4), 1)
        g = int8_values("random", (steps, 2 * lanes, 2, 3, 3), 2)
        sums, seen = tiles_of(shape, d, g)
        check_tiles(sums, d, g, np.zeros(2 * lanes, np.int32))
        macs = tiles * 2 * lanes * 4 * 2 * 9
    else:
        x, w = int8_values("random", (groups, steps, tiles, 16), 1), int8_values("random", (steps, lanes, 2, 16), 2)
        sums, seen = runs_of(shape, x, w)
        check_runs(sums, x, w, np.zeros(2 * lanes, np.int32))
        macs = tiles * 2 * lanes * 16
    assert (groups - 1) * steps * macs / (MULTIPLIERS * lanes * (seen[-1] - seen[0])) == rate
