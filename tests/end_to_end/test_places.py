"""Networks of tensors inside tensors in RTL: what their steps mean, on every machine.

Places are the compiler's: a machine only sees other addresses. So each of the further networks runs on one machine, on
each preset by turns.
"""

from itertools import cycle

import numpy as np
import pytest

from tests.support.random_places import random_sketch
from tests.support.rtl import execute_rtl
from tilewright.compiler.compile import compile_layers
from tilewright.isa.machine import PRESETS, MemoryTiming

FEW, MORE = 3, 12


def assert_means(machine, seed, folder, timing=None):
    rng = np.random.default_rng(seed)
    sketch, outputs = random_sketch(rng, length=14)
    network = sketch.network(outputs)
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    compiled = compile_layers(network, machine, keep_tensors=bool(seed % 2))
    found, _ = execute_rtl(compiled, inputs, folder, timing=timing)
    expected = sketch.evaluate(inputs)
    for name in expected if seed % 2 else outputs:
        if name in found:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=f"{name}, RTL")


@pytest.mark.parametrize("seed", range(FEW))
@pytest.mark.parametrize("machine", [PRESETS["nano"], PRESETS["base"]], ids=lambda machine: machine.name)
def test_networks_mean_what_their_steps_say(machine, seed, tmp_path):
    assert_means(machine, seed, tmp_path)


@pytest.mark.parametrize(("seed", "name"), [
    pytest.param(seed, name, marks=[pytest.mark.slow] * (name == "large"))
    for seed, name in zip(range(FEW, FEW + MORE), cycle(PRESETS), strict=False)])
def test_more_networks_mean_what_their_steps_say(seed, name, tmp_path):
    assert_means(PRESETS[name], seed, tmp_path, MemoryTiming(latency_cycles=1 if seed % 4 else 150, bytes_per_cycle=4))
