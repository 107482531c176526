"""Layers that leave their sums whole, in RTL: the reference's int32, in the predicted cycles."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.random_layers import Shape, build_layer, network_of, with_whole_sums
from tilewright.compiler.compile import compile_layers, emit_elf
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import PRESETS, MemoryTiming
from tilewright.runtime.execution.accounting import account
from tilewright.runtime.execution.engines import execute
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.tools.progress import Silence


@pytest.mark.parametrize("size", ["base", pytest.param("nano", marks=pytest.mark.slow),
                                  pytest.param("large", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("channels", "outputs", "kernel"), [(16, 26, 3), (64, 10, 1)])
def test_whole_sums_in_rtl(size, channels, outputs, kernel, tmp_path):
    machine = PRESETS[size]
    axis = Shape(24, kernel, 1, 1, kernel // 2, kernel // 2)
    layer = with_whole_sums(build_layer(np.random.default_rng(2), "conv", channels, outputs, 1, [axis, axis]))
    network, timing = network_of(layer), MemoryTiming.default(machine)
    compiled = compile_layers(network, machine, keep_tensors=True)
    job = replace(job_of_compiled(compiled, network.name), elf=emit_elf(compiled, network.name, tmp_path))
    inputs = {"x": np.random.default_rng(3).integers(-128, 128, layer.in_shape).astype(np.int8)}
    expected, cycles = run_network(network, inputs)["sums"], {}
    assert np.abs(expected).max() > 1 << 16
    for engine in ("rtl", "fast"):
        execution = execute(job, engine, inputs, job.lasting, timing, steps=Silence())
        np.testing.assert_array_equal(execution.tensors["sums"], expected, err_msg=engine)
        cycles[engine] = account(job, engine, timing, execution).cycles
    assert abs(cycles["fast"] / cycles["rtl"] - 1) <= 0.02, cycles
