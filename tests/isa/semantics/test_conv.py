"""conv against docs/datapath.md, tile by tile and lane by lane."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.coprocessor_state import CONV, MACHINES, engine_of, run, set_conv, tiles_of
from tests.support.machines import WINOGRAD_MACHINES


@MACHINES
@pytest.mark.parametrize(("group_step", "pair_words"), [(0, 0), (48, 0), (0, 3), (48, 25)])
def test_conv(machine, group_step, pair_words):
    engine = engine_of(machine)
    op = {"base": 77, "tiles_y": 3, "groups": 3, "weight_base": 5}
    run(engine, *set_conv(CONV | {"group_step": group_step, "pair_words": pair_words}), ("conv.run", op))
    found = engine.state.sums[-1]
    lanes, per = machine.lanes, machine.lanes_per_cluster
    steps = CONV["kernel_y"] * CONV["kernel_x"] * CONV["runs"]
    for g, _, ty, tx in tiles_of(op, CONV, machine):
        for lane in range(lanes):
            total = 0
            for k in range(steps):
                ky, rest = divmod(k, CONV["kernel_x"] * CONV["runs"])
                kx, r = divmod(rest, CONV["runs"])
                address = (77 + g * group_step + ty * 400 + tx * 19 + ky * 401 + kx * 37 + 16 * r)
                word = 5 + (g * steps + k) * per + lane % per
                places = [address + i + (16 * pair_words if i >= 8 else 0) for i in range(16)]
                total += int(np.dot(engine.state.weight_words[word, lane // per].astype(int),
                                    engine.state.activations[places].astype(int)))
            assert found.sums[ty, tx, g * lanes + lane] == total
    assert not found.winograd


def test_a_run_may_reach_beyond_the_buffer_and_wraps():
    machine = replace(WINOGRAD_MACHINES["base"], activation_bytes=4096)
    engine = engine_of(machine)
    run(engine, *set_conv({"tiles_x": 1, "runs": 1, "kernel_x": 1, "kernel_y": 1}),
        ("conv.run", {"base": 4090, "tiles_y": 1, "groups": 1}))
    data = np.concatenate([engine.state.activations[4090:], engine.state.activations[:10]]).astype(int)
    assert engine.state.sums[0].sums[0, 0, 0] == int(data @ engine.state.weight_words[0, 0].astype(int))
