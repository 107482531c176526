"""Main memory of DRAM and with random stalls, in RTL: the same bits, cycles as predicted, whatever the seed.

Random layers run on every kind of memory with few, some and many stalls, on `nano` and on `base`; each time the network
is another one. More networks on the default memory are in test_chaining.py and test_random_layers.py.
"""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from tests.support.random_chains import random_chain, random_inputs
from tests.support.rtl import execute_rtl
from tilewright.compiler.compile import compile_file, compile_layers
from tilewright.compiler.network.reference import run_network
from tilewright.isa.dram.dram import DramTiming, dram_named
from tilewright.isa.dram.parts import PARTS
from tilewright.isa.machine import PRESETS, MemoryTiming
from tilewright.models import builtin
from tilewright.sim.fast_engine import run_fast

ERROR = 0.05
"""Of predicted cycles with DRAM; with random stalls twice that, as the model takes their mean."""

STALLED = {"fixed": MemoryTiming(bytes_per_cycle=4, stall_percent=30),
           "dram": DramTiming.of(dram_named("ddr3l-1600x16", 200), stall_percent=30)}


@cache
def lenet(machine: str):
    return compile_file(builtin("lenet5"), PRESETS[machine], keep_tensors=True)


def run(machine: str, timing: MemoryTiming | None, folder) -> int:
    """Simulate LeNet-5, hold every tensor to the reference and its cycles to the prediction; return these."""
    compiled = lenet(machine)
    inputs = random_inputs(np.random.default_rng(3), compiled.network)
    tensors, result = execute_rtl(compiled, inputs, folder, timing=timing)
    expected = run_network(compiled.network, inputs)
    assert tensors.keys() == expected.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor, expected[name], err_msg=name)
    predicted = run_fast(compiled.machine, compiled.program, compiled.images, compiled.windows, timing=timing,
                         memory_bytes=compiled.memory_bytes).cycles
    error = ERROR if timing is None or not timing.stall_percent else 2 * ERROR
    assert predicted == pytest.approx(result.cycles, rel=error)
    return result.cycles


@pytest.mark.parametrize("mhz", [80, 400])
@pytest.mark.parametrize("part", PARTS)
def test_dram_leaves_values_and_takes_the_predicted_cycles(part, mhz, tmp_path):
    run("nano", DramTiming.of(dram_named(part, mhz)), tmp_path)


def test_dram_takes_more_cycles_at_a_higher_clock_and_than_a_quicker_part(tmp_path):
    slow, quick = (run("nano", DramTiming.of(dram_named(part, 400)), tmp_path)
                   for part in ("sdr-133x16", "ddr3l-1600x16"))
    assert slow > 1.5 * quick
    assert slow > 1.5 * run("nano", DramTiming.of(dram_named("sdr-133x16", 100)), tmp_path)


@pytest.mark.parametrize("memory", STALLED)
@pytest.mark.parametrize("seed", range(4))
def test_stalls_change_cycles_but_no_value(memory, seed, tmp_path):
    stalled = replace(STALLED[memory], seed=seed)
    assert run("nano", stalled, tmp_path) > run("nano", replace(stalled, stall_percent=0), tmp_path)


def test_one_seed_gives_one_run(tmp_path):
    cycles = [run("nano", replace(STALLED["dram"], seed=seed), tmp_path) for seed in (5, 5, 6)]
    assert cycles[0] == cycles[1] != cycles[2]


MEMORIES = list(product([*PARTS, "fixed"], (10, 40, 80), ("nano", "base")))


@pytest.mark.parametrize(("memory", "stall_percent", "machine"), MEMORIES)
def test_random_layers_on_random_memories(memory, stall_percent, machine, tmp_path):
    """Random layers, chained on chip or through memory; network, clock and latency are another each time."""
    seed = MEMORIES.index((memory, stall_percent, machine))
    rng = np.random.default_rng(seed)
    network = random_chain(rng)
    stalls = {"stall_percent": stall_percent, "seed": seed}
    timing = MemoryTiming(latency_cycles=int(rng.integers(1, 100)), **stalls) if memory == "fixed" else \
        DramTiming.of(dram_named(memory, float(rng.choice([80, 200, 500]))), **stalls)
    inputs = random_inputs(rng, network)
    tensors, _ = execute_rtl(compile_layers(network, PRESETS[machine]), inputs, tmp_path, timing=timing)
    expected = run_network(network, inputs)
    for info in network.outputs:
        np.testing.assert_array_equal(tensors[info.name], expected[info.name], err_msg=f"{info.name}, {timing}")
