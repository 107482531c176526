"""conv23 by channel: its sums are those of conv23 with zeros for all channels but a lane's own; shared parameters."""

import numpy as np
import pytest

from tests.support.coprocessor_state import CLAMP, blocked, engine_of, run, set_conv, tiles_of, weight
from tilewright.isa import numerics
from tilewright.isa.machine import Machine
from tilewright.isa.semantics.command_errors import LaneChannelsError, PatchBlocksError, UnitMissingError
from tilewright.sim.values.executor import CommandFailedError

MACHINES = [Machine(name=f"{array}, {lanes} in {clusters}", array=array, lanes=lanes, clusters=clusters, post_lanes=1,
                    channel_kernels=True)
            for array, lanes, clusters in (("winograd", 4, 1), ("winograd", 4, 2),
                                           ("winograd_inner", 2, 1), ("winograd_inner", 8, 2))]
FOUR = [Machine(name=f"{array}, {lanes} in {clusters}", array=array, lanes=lanes, clusters=clusters, post_lanes=1,
                channel_kernels=True, four_patches=True)
        for array, lanes, clusters in (("winograd", 4, 1), ("winograd", 8, 2), ("winograd_inner", 8, 1),
                                       ("winograd_inner", 32, 4))]
OVER_MACHINES = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)


def settings_of(machine, groups):
    """Return settings of a layer of as many channels as its lane groups have lanes."""
    stored = groups * machine.lanes
    return {"tiles_x": 3, "runs": machine.lanes, "kernel_x": 1, "kernel_y": 1, "x_step": 16 * stored,
            "y_step": 2 * 16 * stored, "group_step": 16 * machine.lanes}


def four_loops(machine):
    """Return what of the settings differs where four patches come at once."""
    return {"runs": 2 if machine.pairs_channels else 1, "kernel_x": machine.clusters,
            "kernel_x_step": 16 * machine.lanes_per_cluster}


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


@pytest.mark.parametrize("machine", FOUR, ids=lambda machine: machine.name)
def test_four_patches_at_once_give_the_same_sums(machine):
    engine, cfg = engine_of(machine), settings_of(machine, 3)
    op = {"base": 2 * machine.input_unit, "tiles_y": 2, "y_half": 1, "groups": 3, "weight_base": 16}
    run(engine, *set_conv(cfg), ("conv23.run_by_channel", op),
        *set_conv(cfg | four_loops(machine)), ("conv23.run_four_patches", op))
    np.testing.assert_array_equal(engine.state.sums[-1].sums, engine.state.sums[-2].sums)
    assert engine.state.sums[-1].sums.any()


def test_lanes_beyond_the_channels_of_the_only_lane_group_have_no_sums():
    machine, cfg = FOUR[1], settings_of(FOUR[1], 1)
    engine, op = engine_of(machine), {"base": 0, "tiles_y": 1, "groups": 1, "weight_base": 0}
    run(engine, *set_conv(cfg), ("conv23.run_by_channel", op),
        *set_conv(cfg | four_loops(machine) | {"kernel_x": 1}), ("conv23.run_four_patches", op))
    every, fewer = (sums.sums for sums in engine.state.sums)
    half = machine.lanes_per_cluster
    np.testing.assert_array_equal(fewer[..., :half], every[..., :half])
    assert not fewer[..., half:].any()


@pytest.mark.parametrize(("change", "error"), [
    ({"runs": 4}, PatchBlocksError), ({"kernel_x_step": 16}, PatchBlocksError), ({"x_step": 16 * 9}, PatchBlocksError),
    ({"base": 16}, PatchBlocksError), ({"kernel_x": 3}, LaneChannelsError),
    ({"groups": 2, "kernel_x": 1}, LaneChannelsError)])
def test_blocks_of_four_patches_begin_at_multiples_of_their_channels(change, error):
    machine = FOUR[1]
    cfg = settings_of(machine, 2) | four_loops(machine)
    op = {"base": 0, "tiles_y": 1, "groups": 1, "weight_base": 0}
    cfg, op = ({name: change.get(name, value) for name, value in given.items()} for given in (cfg, op))
    with pytest.raises(CommandFailedError) as failed:
        run(engine_of(machine), *set_conv(cfg), ("conv23.run_four_patches", op))
    assert isinstance(failed.value.__cause__, error)


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
