"""conv23 against isa.numerics.conv23_tile, patch by patch and kernel by kernel."""

import numpy as np
import pytest

from tests.support.coprocessor_state import MACHINES, blocked, engine_of, run, set_conv, tiles_of, weight
from tests.support.machines import WINOGRAD_MACHINES
from tilewright.isa import numerics


@MACHINES
@pytest.mark.parametrize(("group_step", "y_half"), [(0, 0), (0, 1), (16 * 6, 0)])
def test_conv23(machine, group_step, y_half):
    engine = engine_of(machine)
    channels, tiles_x, op = 6, 3, {"base": 32, "tiles_y": 2, "y_half": y_half, "groups": 2, "weight_base": 16}
    stored = channels * (2 if group_step else 1)       # of both lane groups' inputs
    cfg = {"tiles_x": tiles_x, "runs": channels, "kernel_x": 1, "kernel_y": 1, "x_step": 16 * stored,
           "y_step": 16 * stored * 2, "group_step": group_step}
    run(engine, *set_conv(cfg), ("conv23.run", op))
    found = engine.state.sums[-1]
    per = machine.lanes_per_cluster
    for g, _, ty, tx in tiles_of(op, cfg, machine):
        for lane in range(machine.lanes):
            total = np.zeros((2, 2), int)
            for ch in range(channels):
                patch = [[int(engine.state.activations[blocked(32, 2 * tx + j, 2 * ty + 2 * y_half + i,
                                                         ch + g * group_step // 16, 16 * stored, cfg["y_step"])])
                          for j in range(4)] for i in range(4)]
                q = (g * channels + ch) * per + lane % per
                word, cluster = 16 + q // 2, lane // per
                weights = [weight(engine, cluster, word, 8 * (q % 2) + i) for i in range(8)]
                weights.append(weight(engine, cluster, 16 // 8 + q // 16, q % 16, ninth=True))
                total += np.array(numerics.conv23_tile(patch, np.reshape(weights, (3, 3)).tolist()))
            np.testing.assert_array_equal(
                found.sums[2 * ty:2 * ty + 2, 2 * tx:2 * tx + 2, g * machine.lanes + lane], total)
    assert found.winograd


def test_conv23_without_reuse_gives_the_same():
    engine = engine_of(WINOGRAD_MACHINES["base"])
    cfg = {"tiles_x": 3, "runs": 4, "kernel_x": 1, "kernel_y": 1, "x_step": 64, "y_step": 128}
    op = {"base": 0, "tiles_y": 2, "groups": 1, "weight_base": 0}
    run(engine, *set_conv(cfg), ("conv23.run", op), ("conv23.run_without_reuse", op))
    np.testing.assert_array_equal(engine.state.sums[0].sums, engine.state.sums[1].sums)


def test_conv23_steps_back_to_a_block_row_above():
    engine = engine_of(WINOGRAD_MACHINES["base"])
    x_step, y_step = 16 * 4, 16 * 4 * 4
    cfg = {"tiles_x": 3, "runs": 4, "kernel_x": 1, "kernel_y": 1, "x_step": x_step}
    op = {"tiles_y": 1, "y_half": 1, "groups": 1, "weight_base": 0}
    back = (*set_conv(cfg | {"y_step": (1 << 20) - y_step}), ("conv23.run", op | {"base": 512 + y_step}))
    # The same rows, of which the second two lie below.
    engine.state.activations[1024:1024 + y_step] = engine.state.activations[512 + y_step:512 + 2 * y_step]
    engine.state.activations[1024 + y_step:1024 + 2 * y_step] = engine.state.activations[512:512 + y_step]
    run(engine, *back, *set_conv(cfg | {"y_step": y_step}), ("conv23.run", op | {"base": 1024}))
    np.testing.assert_array_equal(engine.state.sums[0].sums, engine.state.sums[1].sums)
