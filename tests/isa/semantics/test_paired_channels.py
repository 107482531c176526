"""conv23 of an array that takes channels in pairs, and the parameters of its pixels, one value at a time."""

import numpy as np
import pytest

from tests.support.coprocessor_state import blocked, engine_of, run, set_conv, tiles_of, weight
from tilewright.isa import numerics
from tilewright.isa.machine import Machine

MACHINES = [Machine(name="two", array="winograd_inner", lanes=2, post_lanes=1),
            Machine(name="eight in two", array="winograd_inner", lanes=8, clusters=2)]
OVER_MACHINES = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
CLAMP = {"zero_point": 3, "low": -100, "high": 90}


def kernel_of(engine, base, lanes, place):
    """Return a 3x3 kernel by docs/datapath.md: pairs of channels, even lanes and then odd ones, channel by channel."""
    group, channel, lane, channels = place
    machine = engine.state.machine
    cluster, own = divmod(lane, machine.lanes_per_cluster)
    pair, inner = divmod(channel, 2)
    q = (group * channels // 2 + pair) * 2 * lanes + (own % 2) * lanes + own // 2 * 2 + inner
    weights = [weight(engine, cluster, base + q // 2, 8 * (q % 2) + i) for i in range(8)]
    weights.append(weight(engine, cluster, base // 8 + q // 16, q % 16, ninth=True))
    return np.reshape(weights, (3, 3)).tolist()


def expected_sums(engine, cfg, op, group, lane, place):
    """Return four times the 2x2 sums of a tile, and eta."""
    machine, (ty, tx) = engine.state.machine, place
    channels = cfg["runs"] + cfg["runs"] % 2
    total, u = np.zeros((2, 2), int), []
    for ch in range(channels):
        patch = [[int(engine.state.activations[blocked(
            op["base"], 2 * tx + j, 2 * ty + 2 * op["y_half"] + i, ch + group * cfg["group_step"] // 16, cfg["x_step"],
            cfg["y_step"])]) for j in range(4)] for i in range(4)]
        kernel = kernel_of(engine, op["weight_base"], machine.lanes_per_cluster, (group, ch, lane, channels))
        total += 4 * np.array(numerics.conv23_tile(patch, kernel))
        u.append(np.array(numerics.transform_weight(kernel)))
    a = np.array(((1, 1, 1, 0), (0, 1, -1, -1)))
    return total + a @ sum(x * y for x, y in zip(u[0::2], u[1::2], strict=True)) @ a.T


@OVER_MACHINES
@pytest.mark.parametrize(("runs", "group_step", "y_half"), [(6, 0, 0), (5, 0, 1), (6, 16 * 6, 0)])
def test_sums_are_those_of_conv23_and_a_quarter_of_eta(machine, runs, group_step, y_half):
    engine = engine_of(machine)
    stored = 6 * (2 if group_step else 1)
    cfg = {"tiles_x": 3, "runs": runs, "kernel_x": 1, "kernel_y": 1, "x_step": 16 * stored, "y_step": 16 * stored * 2,
           "group_step": group_step}
    op = {"base": 32, "tiles_y": 2, "y_half": y_half, "groups": 2, "weight_base": 16}
    run(engine, *set_conv(cfg), ("conv23.run", op))
    found = engine.state.sums[-1].sums
    for group, _, ty, tx in tiles_of(op, cfg, machine):
        for lane in range(machine.lanes):
            np.testing.assert_array_equal(
                found[2 * ty:2 * ty + 2, 2 * tx:2 * tx + 2, group * machine.lanes + lane],
                expected_sums(engine, cfg, op, group, lane, (ty, tx)) >> 2)


@OVER_MACHINES
def test_held_sums_add_up(machine):
    engine = engine_of(machine)
    cfg = {"tiles_x": 2, "runs": 2, "kernel_x": 1, "kernel_y": 1, "x_step": 32, "y_step": 64, "group_step": 0}
    op = {"base": 0, "tiles_y": 1, "y_half": 0, "groups": 1, "weight_base": 0}
    second = op | {"base": 1024, "weight_base": 64}
    run(engine, *set_conv(cfg), ("conv23.run", op | {"hold": 1}), ("conv23.run", second | {"accumulate": 1}))
    found = engine.state.sums[-1].sums
    for _, _, ty, tx in tiles_of(op, cfg, machine):
        for lane in range(machine.lanes):
            parts = [expected_sums(engine, cfg, each, 0, lane, (ty, tx)) for each in (op, second)]
            np.testing.assert_array_equal(found[2 * ty:2 * ty + 2, 2 * tx:2 * tx + 2, lane], sum(parts) >> 2)


@OVER_MACHINES
def test_each_pixel_of_a_tile_has_parameters_of_its_own(machine):
    engine, rng = engine_of(machine), np.random.default_rng(4)
    cfg = {"tiles_x": 2, "runs": 2, "kernel_x": 1, "kernel_y": 1, "x_step": 32, "y_step": 64, "group_step": 0}
    op = {"base": 0, "tiles_y": 2, "y_half": 0, "groups": 2, "weight_base": 0}
    lanes, first = machine.lanes, 4 * machine.lanes
    words = np.stack([rng.integers(-9000, 9000, 12 * lanes),
                      rng.integers(1 << 23, 1 << 24, 12 * lanes) | 34 << 24], axis=1)
    engine.state.parameters[:96 * lanes] = words.astype("<i8").astype("<u4").view(np.int8).ravel()
    run(engine, *set_conv(cfg), ("conv23.run", op))
    sums, rows, width, channels = engine.state.sums[-1].sums, 3, 3, 2 * lanes - 1
    run(engine, ("act.set_output", {"width": width, "pixel_step": 20, "row_step": 100}), ("act.set_clamp", CLAMP),
        ("act.run", {"base": 8, "rows": rows, "winograd": 1, "parameter_base": first, "channels": channels}))
    for y in range(rows):
        for x in range(width):
            for n in range(channels):
                pixel = y % 2 * 2 + x % 2
                bias, scale = words[first + n // lanes * 4 * lanes + pixel * lanes + n % lanes].tolist()
                assert engine.state.results[8 + 100 * y + 20 * x + n] == numerics.requantise(
                    int(sums[y, x, n]), bias=bias, mantissa=scale & 0xFFFFFF, shift=scale >> 24, **CLAMP)
