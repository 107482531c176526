"""The inner product of 1968 gives sums of plain products once xi and eta are taken off, at every width there is."""

import itertools

import numpy as np
import pytest

from tests.support.extreme_values import KINDS, int8_values
from tilewright.isa import numerics
from tilewright.isa.semantics.inner_product import (
    fold_run_eta,
    fold_tile_eta,
    run_eta,
    run_xi,
    tile_eta,
    tile_xi,
)

PAIRS_OF_KINDS = list(itertools.product(KINDS, KINDS))


def wrap(values, bits):
    half = 1 << (bits - 1)
    return (np.asarray(values) + half) % (1 << bits) - half


def run_sums(x, w):
    """Return the sum of products of sums, (pixels, channels), of (pixels, bytes) and (channels, bytes)."""
    x, w = x.astype(np.int64)[:, None], w.astype(np.int64)[None]
    return ((x[..., 0::2] + w[..., 1::2]) * (x[..., 1::2] + w[..., 0::2])).sum(axis=-1)


def tile_sums(patches, kernels):
    """Return the same for F(2x2, 3x3): (tiles, channels, 2, 2) of (tiles, c, 4, 4) and (channels, c, 3, 3)."""
    v = np.array([[numerics.transform_input(d.tolist()) for d in tile] for tile in patches])[:, None]
    u = np.array([[numerics.transform_weight(g.tolist()) for g in channel] for channel in kernels])[None]
    m = ((v[:, :, 0::2] + u[:, :, 1::2]) * (v[:, :, 1::2] + u[:, :, 0::2])).sum(axis=2)
    a = np.array(((1, 1, 1, 0), (0, 1, -1, -1)))
    return a @ m @ a.T


def correlation(patches, kernels):
    windows = np.lib.stride_tricks.sliding_window_view(patches.astype(np.int64), (3, 3), axis=(2, 3))
    return np.einsum("tcyxij,ocij->toyx", windows, kernels.astype(np.int64))


@pytest.mark.parametrize(("kind", "weight_kind"), PAIRS_OF_KINDS)
@pytest.mark.parametrize("length", [1, 16, 27, 4095 * 9])
def test_runs(kind, weight_kind, length):
    even = length + length % 2
    x, w = int8_values(kind, (3, even), 1), int8_values(weight_kind, (4, even), 2)
    w[:, length:] = 0
    bias = np.array([-2**31, 2**31 - 1, 0, 12345], np.int32)
    expected = wrap(x[:, :length].astype(np.int64) @ w[:, :length].astype(np.int64).T + bias, 32)
    sums = wrap(run_sums(x, w), 32) - wrap(run_xi(x), 32)[:, None]
    np.testing.assert_array_equal(wrap(sums + fold_run_eta(bias, w), 32), expected)


@pytest.mark.parametrize(("kind", "weight_kind"), PAIRS_OF_KINDS)
@pytest.mark.parametrize("channels", [1, 2, 5, 8])
def test_tiles(kind, weight_kind, channels):
    even = channels + channels % 2
    patches, kernels = int8_values(kind, (2, even, 4, 4), 1), int8_values(weight_kind, (3, even, 3, 3), 2)
    kernels[:, channels:] = 0
    bias = np.array([-2**31, 2**31 - 1, 7], np.int32)
    expected = wrap(correlation(patches[:, :channels], kernels[:, :channels]) + bias[:, None, None], 32)
    quadrupled = wrap(wrap(tile_sums(patches, kernels), 34) - wrap(tile_xi(patches), 34)[:, None], 34)
    folded = fold_tile_eta(bias, kernels[:, :channels])
    np.testing.assert_array_equal(wrap((quadrupled >> 2) + folded, 32), expected)


def test_sums_of_four_thousand_inputs_wrap_at_34_bits():
    """The bits beyond 34 that were lost come back: 4 S + eta is beyond 2**33 here, and S is an int32."""
    patch, kernel, pairs = np.full((1, 2, 4, 4), -128, np.int8), np.full((1, 2, 3, 3), -128, np.int8), 2047
    tile, xi, eta = (pairs * each for each in (tile_sums(patch, kernel)[0], tile_xi(patch), tile_eta(kernel)))
    assert (tile - xi).max() > 2**33
    quarter = wrap(wrap(tile, 34) - wrap(xi, 34), 34) >> 2
    np.testing.assert_array_equal(wrap(quarter - (eta >> 2), 32), np.full((1, 2, 2), 2 * pairs * 9 * 128 * 128))


def test_split_weights_of_nine_bits():
    """Weights of -255..255 are sums of two or three of int8, each on an input of its own: eta is of all together."""
    weights = np.array([[-255, -129, -128, -1, 0, 1, 127, 128, 254, 255, 255, -255, 3, -200, 200, 255]])
    x = int8_values("extremes", (5, 16), 0)
    first = np.clip(weights, -128, 127)
    second = np.clip(weights - first, -128, 127)
    parts = np.concatenate([first, second, weights - first - second], axis=1).astype(np.int8)
    repeated = np.concatenate([x, x, x], axis=1)
    sums = run_sums(repeated, parts) - run_xi(repeated)[:, None] - run_eta(parts)
    np.testing.assert_array_equal(sums, x.astype(np.int64) @ weights.T)


def test_bounds_of_the_widths():
    """Operands and products of the array reach the bounds that its widths are made for, and none is beyond."""
    patches = np.array([np.full((4, 4), -128), np.full((4, 4), 127), *int8_values("extremes", (500, 4, 4), 1)])
    kernels = np.array([np.full((3, 3), -128), np.full((3, 3), 127), *int8_values("extremes", (500, 3, 3), 2)])
    v = np.array([numerics.transform_input(d.tolist()) for d in patches])
    u = np.array([numerics.transform_weight(g.tolist()) for g in kernels])
    assert (v.min(), np.abs(v).max(), np.abs(u).max()) == (-512, 512, 1152)
    assert np.abs(v[:, None] + u[None]).max() == 512 + 1152
