"""Tables of floats on the datapath, in RTL: the host core's bits, in the predicted cycles."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.core_networks import CoreStack, inputs_of
from tilewright.compiler.compile import compile_layers, emit_elf
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import PRESETS, MemoryTiming
from tilewright.runtime.execution.accounting import account
from tilewright.runtime.execution.engines import execute
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.tools.progress import Silence

AT_MOST = 15
"""Cycles of an element: issue 12. The host core takes 18."""


@pytest.mark.parametrize(("op", "count"), [("LookUp", 251), ("LookUp", 4096), ("SoftmaxOfLevels", 1024)])
def test_tables_of_floats_in_rtl(op, count, tmp_path):
    stack, size = CoreStack((1, 1, 1), seed=1), PRESETS["base"]
    del stack.tensors["input"]
    dims = (1, count) if op == "LookUp" else (1, count // 2, 2)
    stack.tensor("q", dims, "int8")
    stack.handed_in = ["q"]
    stack.constants |= {"table": stack.rng.normal(size=256).astype(np.float32)}
    inputs, attrs = (("q", "table"), None) if op == "LookUp" else (("q",), {"scale_value": 0.02, "axis": 2})
    stack.handed_out = [stack.core(op, inputs, dims, attrs=attrs)]
    network, timing = stack.network("a table of floats"), MemoryTiming.default(size)
    compiled, inputs = compile_layers(network, size, keep_tensors=True), inputs_of(network)
    job = replace(job_of_compiled(compiled, network.name), elf=emit_elf(compiled, network.name, tmp_path))
    (output,), cycles = network.outputs, {}
    for engine in ("rtl", "fast"):
        execution = execute(job, engine, inputs, job.lasting, timing, steps=Silence())
        found = execution.tensors[output.name]
        assert found.tobytes() == run_network(network, inputs)[output.name].tobytes(), engine
        cycles[engine] = account(job, engine, timing, execution).cycles
    assert cycles["rtl"] <= AT_MOST * count
    assert abs(cycles["fast"] / cycles["rtl"] - 1) <= 0.02, cycles
