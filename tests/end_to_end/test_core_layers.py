"""Layers of the host core in RTL: the C computes what NumPy does bit for bit, in about the cycles that it should."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.core_cases import CASES, library_network
from tests.support.core_networks import NETWORKS, inputs_of
from tilewright.compiler.compile import compile_layers, emit_elf
from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import PRESETS, MemoryTiming
from tilewright.isa.program import Call
from tilewright.runtime.baseline.core_alone import run_baseline
from tilewright.runtime.execution.accounting import account
from tilewright.runtime.execution.engines import execute
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.tools.progress import Silence

TOLERANCE = 0.6
"""Of the cycles that the host core is predicted to take: floats take longer or shorter by their values."""


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("machine", "staged"), [("nano", True), ("base", True), ("base", False)])
def test_rtl_and_fast_engine_compute_what_the_reference_does(name, machine, staged, tmp_path, monkeypatch):
    network, size = NETWORKS[name](), PRESETS[machine]
    monkeypatch.setattr("tilewright.compiler.kernels.staging.STAGE_BYTES", (1 << 19) * staged)
    compiled = compile_layers(network, size, keep_tensors=True)
    assert any(each.staged for _, each in compiled.program.actions() if isinstance(each, Call)) == staged
    inputs, timing = inputs_of(network), MemoryTiming.default(size)
    job = replace(job_of_compiled(compiled, name), elf=emit_elf(compiled, name, tmp_path))
    expected = run_network(network, inputs)
    reports = {}
    for engine in ("rtl", "fast"):
        execution = execute(job, engine, inputs, job.lasting, timing, steps=Silence())
        for tensor, values in expected.items():
            assert execution.tensors[tensor].tobytes() == np.ascontiguousarray(values).tobytes(), (engine, tensor)
        reports[engine] = account(job, engine, timing, execution)
        assert reports[engine].cycles == sum(layer.cycles for layer in reports[engine].layers) + (
            reports[engine].tail_cycles)
    real, predicted = reports["rtl"].core_cycles, reports["fast"].core_cycles
    assert abs(predicted - real) <= TOLERANCE * real


@pytest.mark.parametrize("name", NETWORKS)
def test_the_plain_c_baseline_runs_the_same_kernels(name):
    network = NETWORKS[name]()
    result = run_baseline(network, inputs_of(network))
    assert result.matches
    assert all(layer.cycles > 0 for layer in result.layers)


def test_the_baseline_in_parts_has_the_layers_of_the_core_too(tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.runtime.baseline.core_alone.cache_folder", lambda: tmp_path)
    network = NETWORKS["core first and last"]()
    whole = run_baseline(network, inputs_of(network), slices=False)
    parts = run_baseline(network, inputs_of(network), slices=True)
    assert parts.matches
    assert [layer.name for layer in parts.layers] == [layer.name for layer in whole.layers]
    core = [(one.cycles, two.cycles) for one, two in zip(parts.layers, whole.layers, strict=True)
            if one.name in ("neg0", "abs3")]
    assert len(core) == 2
    assert all(abs(one - two) <= 0.02 * two for one, two in core)


def test_every_kernel_computes_in_rtl_what_it_does_in_numpy(tmp_path):
    """All kernels side by side in one program."""
    assert {case.op for case in CASES} == set(CORE_KERNELS)
    network, size = library_network(), PRESETS["base"]
    compiled = compile_layers(network, size, keep_tensors=True)
    inputs, timing = inputs_of(network), MemoryTiming.default(size)
    job = replace(job_of_compiled(compiled, "library"), elf=emit_elf(compiled, "library", tmp_path))
    expected = run_network(network, inputs)
    reports = {}
    for engine in ("rtl", "fast"):
        execution = execute(job, engine, inputs, job.lasting, timing, steps=Silence())
        wrong = [name for name, values in expected.items()
                 if execution.tensors[name].tobytes() != np.ascontiguousarray(values).tobytes()]
        assert not wrong, engine
        reports[engine] = account(job, engine, timing, execution)
    real, predicted = reports["rtl"], reports["fast"]
    assert abs(predicted.cycles - real.cycles) <= 0.15 * real.cycles
    far = [(one.name, one.cycles, two.cycles) for one, two in zip(predicted.layers, real.layers, strict=True)
           if not two.cycles / 2 <= one.cycles <= two.cycles * 2]
    assert not far
