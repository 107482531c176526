"""Registers of an array that takes channels in pairs hold what its products are, for both channels of a lane."""

import numpy as np

from tilewright.isa import numerics
from tilewright.isa.semantics.inner_product import run_eta, run_xi, tile_eta, tile_xi
from tilewright.sim.values.pair_samples import held_pairs, pair_registers

STEPS, TILES, LANES = 4, 3, 4


def drawn(*shape):
    return np.random.default_rng(len(shape)).integers(-128, 128, shape)


def test_of_conv23_the_last_registers_are_four_pixels_of_two_channels_and_what_comes_off():
    patches, kernels = drawn(STEPS, TILES, 4, 4), drawn(STEPS, LANES, 3, 3)
    v = np.array([[np.ravel(numerics.transform_input(tile.tolist())) for tile in step] for step in patches])
    u = np.array([[np.ravel(numerics.transform_weight(each.tolist())) for each in step] for step in kernels])
    held = held_pairs(v, dot=False)
    *lane, (xi_sums, _) = pair_registers(held, u.transpose(0, 2, 1), TILES, dot=False)
    sums = lane[4][0].reshape(STEPS // 2, 2, TILES, 4, LANES // 2)
    for pair in range(STEPS // 2):
        channels = patches[2 * pair:2 * pair + 2].transpose(1, 0, 2, 3)       # (tiles, 2, 4, 4)
        xi = tile_xi(channels.astype(np.int8)).reshape(TILES, 4)
        np.testing.assert_array_equal(xi_sums.reshape(-1, TILES, 4)[pair], xi)
        for output in range(LANES):
            g = kernels[2 * pair:2 * pair + 2, output]
            eta = tile_eta(g[None].astype(np.int8)).reshape(4)
            windows = np.lib.stride_tricks.sliding_window_view(channels, (3, 3), axis=(2, 3))
            pixels = np.einsum("tcyxij,cij->tyx", windows, g).reshape(TILES, 4)
            np.testing.assert_array_equal(sums[pair, output % 2, :, :, output // 2], 4 * pixels + xi + eta)


def test_of_runs_the_last_registers_are_dot_products_of_two_channels_and_what_comes_off():
    runs, weights = drawn(STEPS, TILES, 16), drawn(STEPS, 16, LANES)
    *lane, (xi_sums, _) = pair_registers(held_pairs(runs, dot=True), weights, TILES, dot=True)
    sums, xi = lane[4][0].reshape(STEPS, TILES, 4, LANES // 2), xi_sums.reshape(STEPS, TILES, 4)
    of_runs = run_xi(runs.astype(np.int8))
    np.testing.assert_array_equal(xi[..., 0] - xi[..., 1], of_runs)
    np.testing.assert_array_equal(xi[..., 3] - xi[..., 2], of_runs)
    for output in range(LANES):
        first, second = (3, 2) if output % 2 else (0, 1)
        eta = run_eta(weights[:, :, output].astype(np.int8))
        expected = np.einsum("stb,sb->st", runs, weights[:, :, output]) + of_runs + eta[:, None]
        np.testing.assert_array_equal(sums[..., first, output // 2] - sums[..., second, output // 2], expected)


def test_registers_fit_their_widths():
    for dot in (False, True):
        patches = np.where(drawn(STEPS, TILES, 4, 4) > 0, 127, -128)
        kernels = np.where(drawn(STEPS, LANES, 3, 3) > 0, 127, -128)
        data = patches.reshape(STEPS, TILES, 16) if dot else np.array(
            [[np.ravel(numerics.transform_input(tile.tolist())) for tile in step] for step in patches])
        weights = np.full((STEPS, 16, LANES), -128) if dot else np.array(
            [[np.ravel(numerics.transform_weight(each.tolist())) for each in step]
             for step in kernels]).transpose(0, 2, 1)
        for values, bits in pair_registers(held_pairs(data, dot=dot), weights, TILES, dot=dot):
            assert np.abs(values).max() <= 1 << bits - 1
