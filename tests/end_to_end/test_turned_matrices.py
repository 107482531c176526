"""Heads whose values the array turns: the definition's bits in the hardware, in the predicted cycles."""

from dataclasses import replace

import numpy as np

from tests.support.matrix_networks import product_of, turned_network
from tilewright.compiler.compile import compile_layers, emit_elf
from tilewright.isa.machine import MemoryTiming, preset
from tilewright.runtime.execution.accounting import account
from tilewright.runtime.execution.engines import execute
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.tools.progress import Silence


def test_values_are_turned_in_rtl(tmp_path):
    machine, heads = preset("base"), 2
    network = turned_network(70, 21, 24, -128, 0, heads)
    timing, compiled = MemoryTiming.default(machine), compile_layers(network, machine, keep_tensors=True)
    assert "copy" not in [layer.name for layer in compiled.network.layers]
    job = replace(job_of_compiled(compiled, network.name), elf=emit_elf(compiled, network.name, tmp_path))
    rng = np.random.default_rng(0)
    inputs = {info.name: rng.integers(-128, 128, info.shape).astype(np.int8) for info in network.inputs}
    expected = np.concatenate([product_of(inputs["x"], part, -128, 0)
                               for part in np.split(inputs["v"].transpose(2, 1, 0), heads, axis=2)])
    cycles = {}
    for engine in ("rtl", "fast"):
        execution = execute(job, engine, inputs, job.lasting, timing, steps=Silence())
        np.testing.assert_array_equal(execution.tensors["y"], expected, err_msg=engine)
        cycles[engine] = account(job, engine, timing, execution).cycles
    assert abs(cycles["fast"] / cycles["rtl"] - 1) <= 0.02, cycles
