"""Chained layers in RTL: every value, fewer cycles and bytes than without chains, and the cycles of the fast engine."""

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.random_chains import random_chain, random_inputs
from tests.support.rtl import execute_rtl
from tilewright.compiler.compile import Compiled, compile_file, compile_layers
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import PRESETS, MemoryTiming
from tilewright.models import builtin
from tilewright.sim.fast_engine import run_fast
from tilewright.sim.run_result import RunResult

APART = Options(chain=False)


def run(compiled: Compiled, seed: int, folder, timing: MemoryTiming | None = None) -> RunResult:
    """Simulate ``compiled`` and compare it with the reference and the functional engine."""
    inputs = random_inputs(np.random.default_rng(seed), compiled.network)
    tensors, result = execute_rtl(compiled, inputs, folder, timing=timing)
    expected, functional = run_network(compiled.network, inputs), execute(compiled, inputs)
    for info in compiled.network.outputs:
        np.testing.assert_array_equal(functional[info.name], expected[info.name], err_msg=f"{info.name}, functional")
        np.testing.assert_array_equal(tensors[info.name], expected[info.name], err_msg=f"{info.name}, RTL")
    return result


def predicted(compiled: Compiled) -> int:
    """Return the cycles of the fast engine."""
    return run_fast(compiled.machine, compiled.program, compiled.images, compiled.windows,
                    memory_bytes=compiled.memory_bytes).cycles


@pytest.mark.parametrize("machine", [PRESETS["nano"], PRESETS["base"]], ids=lambda machine: machine.name)
def test_networks_equal_the_reference(machine, tmp_path):
    cycles = {BEST: 0, APART: 0}
    fast = 0
    for seed in range(12):
        network = random_chain(np.random.default_rng(seed))
        for options in cycles:
            compiled = compile_layers(network, machine, options=options)
            cycles[options] += run(compiled, seed, tmp_path).cycles
            fast += predicted(compiled)
    assert cycles[BEST] < cycles[APART]
    assert fast == pytest.approx(sum(cycles.values()), rel=0.02)


@pytest.mark.parametrize("timing", [MemoryTiming(latency_cycles=1, bytes_per_cycle=16),
                                    MemoryTiming(latency_cycles=200, bytes_per_cycle=4)],
                         ids=["quick memory", "slow memory"])
def test_no_result_hangs_on_when_data_come(timing, tmp_path):
    for seed in (5, 8, 15, 21):
        run(compile_layers(random_chain(np.random.default_rng(seed)), PRESETS["base"]), seed, tmp_path, timing)


def test_lenet_stays_on_chip(tmp_path):
    """All that LeNet-5 moves are its input, its weights and its ten results."""
    chained, apart = (compile_file(builtin("lenet5"), PRESETS["base"], options=options) for options in (BEST, APART))
    assert [plan.chip.output for plan in chained.plans] == [True, True, True, True, False]
    assert chained.memory.peak_bytes == 0
    runs = [run(each, 0, tmp_path) for each in (chained, apart)]
    assert runs[0].cycles <= runs[1].cycles - 250
    assert predicted(chained) == pytest.approx(runs[0].cycles, rel=0.02)
