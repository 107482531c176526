"""Coded weights: decoded they are what they were, and what would not be shorter or would be slower stays as it is."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.compiler.weights.weight_coding import coded_blocks, encode_weights
from tilewright.isa.coded.weight_code import WeightCode, decode_weights
from tilewright.isa.machine import Machine, preset

MACHINES = {name: replace(preset(name), coded_weights=True) for name in ("nano", "base", "large")}
NARROW = Machine(array="winograd_inner", lanes=8, bus_bytes=16, coded_weights=True)     # a bus word a cycle either way


def weights(spread, size, *, zeros=0.0, seed=0):
    rng = np.random.default_rng(seed)
    values = np.clip(np.rint(rng.normal(0, spread, size)), -128, 127).astype(np.int8)
    return np.where(rng.random(size) < zeros, 0, values).astype(np.int8).tobytes()


@pytest.mark.parametrize("machine", [*MACHINES.values(), NARROW], ids=[*MACHINES, "narrow"])
@pytest.mark.parametrize(("spread", "zeros"), [(0, 0), (2, 0.5), (20, 0), (500, 0)])
def test_what_is_coded_decodes_to_the_same(machine, spread, zeros):
    code = WeightCode.of(machine)
    data = weights(spread, 30 * code.step_bytes + 3, zeros=zeros)
    assert decode_weights(code, encode_weights(code, data), 31).data.tobytes()[:len(data)] == data


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_blocks_are_shorter_and_no_slower(machine):
    data = weights(12, 16384)
    blocks = coded_blocks(data, machine)
    assert sum(block.decoded for block in blocks) == len(data)
    assert sum(len(block.stream) for block in blocks) < 0.85 * len(data)
    assert sum(block.cycles for block in blocks) <= len(data) // machine.bus_bytes
    code, found = WeightCode.of(machine), b""
    for block in blocks:
        found += decode_weights(code, block.stream, block.decoded // code.step_bytes).data.tobytes()
    assert found == data


def test_weights_stay_raw_where_nothing_is_gained():
    rng = np.random.default_rng(1)
    assert coded_blocks(rng.integers(-128, 128, 8192).astype(np.int8).tobytes(), MACHINES["base"]) == ()
    assert coded_blocks(weights(12, 8192), NARROW) == ()            # shorter, but a word a cycle as it is
    assert coded_blocks(weights(12, 8192), preset("base")) == ()    # no decoder
