"""conv23 by channel: its sums are those of conv23 with zeros for all channels but a lane's own; shared parameters."""

import numpy as np
import pytest

from tests.support.coprocessor_state import CLAMP, blocked, engine_of, run, set_conv, tiles_of, weight
from tilewright.isa import numerics
from tilewright.isa.machine import Machine
from tilewright.isa.semantics.command_errors import LaneChannelsError, UnitMissingError
from tilewright.sim.values.executor import CommandFailedError

MACHINES = [Machine(name=f"{array}, {lanes} in {clusters}", array=array, lanes=lanes, clusters=clusters, post_lanes=1,
                    channel_kernels=True)
            for array, lanes, clusters in (("winograd", 4, 1), ("winograd", 4, 2),
                                           ("winograd_inner", 2, 1), ("winograd_inner", 8, 2))]
OVER_MACHINES = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)


def settings_of(machine, groups):
    """Return settings of a layer of as many channels as its lane groups have lanes."""
    stored = groups * machine.lanes
    return {"tiles_x": 3, "runs": machine.lanes, "kernel_x": 1, "kernel_y": 1, "x_step": 16 * stored,
            "y_step": 2 * 16 * stored, "group_step": 16 * machine.lanes}


@OVER_MACHINES
def test_a_lane_has_the_kernel_of_its_channel_alone(machine):
    engine, cfg = engine_of(machine), settings_of(machine, 3)
    op = {"base": 32, "tiles_y": 2, "y_half": 1, "groups": 3, "weight_base": 16}
    run(engine, *set_conv(cfg), ("conv23.run_by_channel", op))
    found = engine.state.sums[-1].sums
    for group, _, ty, tx in tiles_of(op, cfg, machine):
        for lane in range(machine.lanes):
            cluster, own = divmod(lane, machine.lanes_per_cluster)
            q = group * machine.lanes_per_cluster + own
            kernel = [weight(engine, cluster, 16 + q // 2, 8 * (q % 2) + i) for i in range(8)]
            kernel.append(weight(engine, cluster, 2 + q // 16, q % 16, ninth=True))
            patch = [[int(engine.state.activations[blocked(
                op["base"], 2 * tx + j, 2 * ty + 2 + i, group * machine.lanes + lane, cfg["x_step"], cfg["y_step"])])
                for j in range(4)] for i in range(4)]
            np.testing.assert_array_equal(found[2 * ty:2 * ty + 2, 2 * tx:2 * tx + 2, group * machine.lanes + lane],
                                          numerics.conv23_tile(patch, np.reshape(kernel, (3, 3)).tolist()))


@OVER_MACHINES
def test_pixels_share_the_parameters_of_their_channel(machine):
    engine, rng, channels, first = engine_of(machine), np.random.default_rng(4), 2 * machine.lanes - 1, machine.lanes
    words = np.stack([rng.integers(-9000, 9000, 3 * first), rng.integers(1 << 23, 1 << 24, 3 * first) | 34 << 24], 1)
    engine.state.parameters[:24 * first] = words.astype("<i8").astype("<u4").view(np.int8).ravel()
    run(engine, *set_conv(settings_of(machine, 2)),
        ("conv23.run_by_channel", {"base": 0, "tiles_y": 2, "groups": 2, "weight_base": 0}))
    sums = engine.state.sums[-1].sums
    run(engine, ("act.set_output", {"width": 5, "pixel_step": 20, "row_step": 100}), ("act.set_clamp", CLAMP),
        ("act.run", {"base": 8, "rows": 3, "winograd": 1, "shared": 1, "parameter_base": first, "channels": channels}))
    for y, x, n in np.ndindex(3, 5, channels):
        bias, scale = words[first + n].tolist()
        assert engine.state.results[8 + 100 * y + 20 * x + n] == numerics.requantise(
            int(sums[y, x, n]), bias=bias, mantissa=scale & 0xFFFFFF, shift=scale >> 24, **CLAMP)


def test_there_is_a_channel_for_each_lane_and_a_unit_for_both():
    machine = MACHINES[1]
    cfg, op = settings_of(machine, 1), {"base": 0, "tiles_y": 1, "groups": 1, "weight_base": 0}
    with pytest.raises(CommandFailedError, match="4 lanes, not 3") as failed:
        run(engine_of(machine), *set_conv(cfg | {"runs": 3}), ("conv23.run_by_channel", op))
    assert isinstance(failed.value.__cause__, LaneChannelsError)
    with pytest.raises(CommandFailedError) as failed:
        run(engine_of(Machine(lanes=4, clusters=2)), *set_conv(cfg), ("conv23.run_by_channel", op))
    assert isinstance(failed.value.__cause__, UnitMissingError)
