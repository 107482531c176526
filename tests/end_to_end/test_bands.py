"""Layers that take turns in RTL: every value, fewer cycles and bytes than apart, the cycles of the engine."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import MORE_UNITS
from tests.support.random_branches import random_branches
from tests.support.random_chains import random_inputs
from tests.support.rtl import execute_rtl
from tests.support.separable import inverted_bottlenecks
from tests.support.stacks import Stack
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.options import Options
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.schedule import bands
from tilewright.compiler.schedule.chaining import computed_together
from tilewright.isa.machine import preset
from tilewright.sim.fast_engine import run_fast

BASE = preset("base")


def wide() -> Network:
    """Return three layers of 48x64 pixels: what lies between does not fit the buffers of ``base``."""
    stack = Stack((8, 48, 64))
    stack.conv(40, 1)
    stack.conv(16, 3, pad=1)
    stack.conv(8, 1)
    return stack.network("wide")


@pytest.mark.parametrize(("network", "part"), [(wide(), 0.2), (inverted_bottlenecks(1, narrow=32, wide=192), 0.6)],
                         ids=["bands of rows", "blocks of channels"])
def test_a_group_equals_the_reference(tmp_path, network, part):
    inputs = random_inputs(np.random.default_rng(0), network)
    expected, runs = run_network(network, inputs), []
    for options in (Options(), Options(bands=False)):
        compiled = compile_layers(network, BASE, options=options)
        assert bool(computed_together(compiled.plans)) == options.bands
        tensors, result = execute_rtl(compiled, inputs, tmp_path)
        functional = execute(compiled, inputs)
        for info in network.outputs:
            np.testing.assert_array_equal(functional[info.name], expected[info.name], err_msg=info.name)
            np.testing.assert_array_equal(tensors[info.name], expected[info.name], err_msg=f"{info.name}, RTL")
        fast = run_fast(BASE, compiled.program, compiled.images, compiled.windows, memory_bytes=compiled.memory_bytes)
        assert fast.cycles == pytest.approx(result.cycles, rel=0.02)
        runs.append((result.cycles, fast.words_read + fast.words_written))
    assert runs[0][1] < part * runs[1][1]
    assert runs[0][0] < runs[1][0]


@pytest.mark.parametrize("design", [
    MORE_UNITS, preset("base"),
    *(pytest.param(replace(preset(name), name=f"{name} 8192", activation_bytes=8192), marks=pytest.mark.slow)
      for name in ("nano", "base"))], ids=lambda design: design.name)
def test_branches_equal_the_reference(tmp_path, design, monkeypatch):
    """Several readers of a tensor and several writers of one, by whole tensors and by bands."""
    monkeypatch.setattr(bands, "_LEAST", 0)
    measured = predicted = 0
    for seed in (1, 4, 7):
        network = random_branches(np.random.default_rng(seed), longest=14)
        inputs = random_inputs(np.random.default_rng(seed), network)
        compiled = compile_layers(network, design)
        assert any(plan.chip.input for plan in compiled.plans)
        tensors, result = execute_rtl(compiled, inputs, tmp_path)
        expected = run_network(network, inputs)
        for info in network.outputs:
            np.testing.assert_array_equal(tensors[info.name], expected[info.name], err_msg=f"seed {seed}, {info.name}")
        measured += result.cycles
        predicted += run_fast(design, compiled.program, compiled.images, compiled.windows,
                              memory_bytes=compiled.memory_bytes).cycles
    assert predicted == pytest.approx(measured, rel=0.02)
