"""RTL by ranges of layers: the same tensors, cycles that add up, and nothing lost when a run is interrupted."""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.core_networks import NETWORKS, inputs_of
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.compile import compile_layers, compile_model
from tilewright.compiler.emit.artefact import ArtefactError, load_artefact
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.errors import InputError, SimulationError
from tilewright.isa.machine import MemoryTiming, preset
from tilewright.models import builtin
from tilewright.runtime.execution.engines import Execution
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.ranges.compared_ranges import RangeRequest, run_artefact_ranges, run_ranges
from tilewright.runtime.ranges.finished_runs import StoredRuns
from tilewright.runtime.ranges.ranges import LayerRange
from tilewright.runtime.ranges.runner import Interrupted, RangeRunner, describe, merge_reports
from tilewright.tools.progress import Cycles, Silence

BASE = preset("base")
RANGES = [LayerRange(0, 2), LayerRange(2, 3), LayerRange(3, 5)]
PREDICTED = [30, 30, 20, 5, 5]


@pytest.fixture(scope="module")
def network():
    return compile_network(builtin("lenet5"))


@pytest.fixture(scope="module")
def values(network):
    (image,) = network.inputs
    return run_network(network, {image.name: np.random.default_rng(0).integers(-128, 128, image.shape, dtype=np.int8)})


@pytest.fixture
def runner(network, values, tmp_path):
    def make(**changes):
        return RangeRunner(**{"network": network, "machine": BASE, "timing": MemoryTiming.default(BASE),
                              "options": BEST, "values": values, "predicted": PREDICTED,
                              "runs": StoredRuns(tmp_path / "runs")} | changes)
    return make


class Breaking(Silence):
    """Interrupts whoever shows cycles for the ``count``-th time."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    @contextmanager
    def simulation(self, text: str, layers: Sequence[tuple[str, int]]) -> Iterator[Cycles]:
        def show(cycles: int, mark: int | None) -> None:
            self.count -= 1
            if not self.count:
                raise Interrupted
        yield show


@pytest.mark.parametrize("jobs", [1, 2])
def test_tensors_are_the_references_and_reports_add_up(runner, network, values, jobs):
    runs = runner().run(RANGES, jobs, Silence())
    assert [run.layers for run in runs] == RANGES
    for run in runs:
        for name, tensor in run.tensors.items():
            np.testing.assert_array_equal(tensor, values[name])
    assert {name for run in runs for name in run.tensors} == set(values) - {network.inputs[0].name}
    # No range shows what it was given: that would hide what the one before it has computed.
    shown = [name for run in runs for name in run.tensors]
    assert len(shown) == len(set(shown))
    report = merge_reports(runs, "lenet5")
    assert [layer.name for layer in report.layers] == [layer.name for layer in network.layers]
    assert report.cycles == sum(run.report.cycles for run in runs)
    assert report.energy.total_uj == pytest.approx(sum(run.report.energy.total_uj for run in runs))
    assert report.instructions["sta"] == sum(run.report.instructions["sta"] for run in runs)


@pytest.mark.parametrize("name", ["between convolutions", "floats alone"])
def test_layers_of_the_host_core_are_cut_and_kept_too(tmp_path, name):
    network = NETWORKS[name]()
    values = run_network(network, inputs_of(network))
    ranges = [LayerRange(0, 1), LayerRange(1, len(network.layers))]
    for stored in (False, True):
        runs = RangeRunner(network=network, machine=BASE, timing=MemoryTiming.default(BASE), options=BEST,
                           values=values, predicted=[1] * len(network.layers),
                           runs=StoredRuns(tmp_path)).run(ranges, 1, Silence())
        assert [run.stored for run in runs] == [stored] * 2
        assert [layer.kind for run in runs for layer in run.report.layers].count("core") >= 2
        found = {tensor: array for run in runs for tensor, array in run.tensors.items()}
        assert set(found) == set(values) - {info.name for info in network.inputs}
        for tensor, array in found.items():
            assert array.dtype == values[tensor].dtype
            np.testing.assert_array_equal(array, values[tensor], err_msg=tensor)


def test_an_interrupted_run_goes_on_where_it_was(runner):
    # Shown are the end of the first simulation, its being stored, and the end of the second: there it breaks.
    with pytest.raises(Interrupted):
        runner().run(RANGES, 1, Breaking(3))
    again = runner().run(RANGES, 1, Silence())
    assert [run.stored for run in again] == [True, False, False]
    assert "1 of 3 in an earlier run" in describe(again)
    third = runner().run(RANGES, 1, Silence())
    assert all(run.stored for run in third)
    assert [run.report for run in third] == [run.report for run in again]
    assert not any(run.stored for run in runner(fresh=True).run(RANGES[1:2], 1, Silence()))


def test_whatever_a_run_depends_on_is_in_its_name(network, values, tmp_path):
    runs, timing, simulator = StoredRuns(tmp_path), MemoryTiming.default(BASE), tmp_path / "one" / "simulator"
    (image,) = network.inputs
    inputs = {image.name: values[image.name]}
    job = job_of_compiled(compile_layers(network, BASE, keep_tensors=True), "lenet5")
    small = job_of_compiled(compile_layers(network, preset("nano"), keep_tensors=True), "lenet5")
    slow = MemoryTiming(latency_cycles=timing.latency_cycles + 1, bytes_per_cycle=timing.bytes_per_cycle)
    keys = [runs.key(job, inputs, timing, simulator), runs.key(small, inputs, timing, simulator),
            runs.key(job, {image.name: values[image.name] ^ 1}, timing, simulator),
            runs.key(job, inputs, slow, simulator), runs.key(job, inputs, timing, tmp_path / "two" / "simulator")]
    assert len(set(keys)) == len(keys)
    assert runs.key(job, inputs, timing, simulator) == keys[0]


def test_a_stored_run_is_read_as_it_was_and_a_damaged_one_is_refused(tmp_path):
    runs = StoredRuns(tmp_path)
    execution = Execution(cycles=7, instructions=3, tensors={"a/b": np.arange(6, dtype=np.int8).reshape(1, 2, 3)},
                          records=({"cycles": 6},), wall_seconds=0.5, cycles_per_second=14.0)
    assert runs.load("key") is None
    runs.save("key", execution)
    found = runs.load("key")
    np.testing.assert_array_equal(found.tensors.pop("a/b"), execution.tensors.pop("a/b"))
    assert found == execution
    (tmp_path / "key" / "tensors.npz").write_bytes(b"PK")
    with pytest.raises(SimulationError, match=r"key cannot be read.*--fresh"):
        runs.load("key")


def test_layers_of_a_model_are_compared_with_onnx_runtime():
    compared = run_ranges(ModelSource.of(builtin("lenet5")), BASE, None, RangeRequest(layers="2:", fresh=True),
                                 steps=Silence())
    assert compared.report.matches_reference
    assert compared.comparison.compared == 3
    assert set(compared.outputs) == {"logits"}
    assert [each.layer for each in compared.statistics] == [layer.name for layer in compared.report.layers]


@pytest.mark.parametrize("jobs", [0, -1])
def test_no_jobs_are_refused(jobs):
    with pytest.raises(InputError, match=rf"Jobs .*not {jobs}$"):
        RangeRequest(jobs=jobs)


# ---- compiled models


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return lenet5 compiled without fused pooling, so that its layers are those of its options."""
    place = tmp_path_factory.mktemp("compiled") / "lenet5"
    compile_model(builtin("lenet5"), BASE, place, options=Options(fuse_pool=False))
    return place


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Let runs be stored in a folder of the test's own."""
    monkeypatch.setattr("tilewright.runtime.ranges.compared_ranges.cache_folder", lambda: tmp_path)


def test_layers_of_a_compiled_model_are_those_of_its_options(folder, cache):
    compared = run_artefact_ranges(folder, None, RangeRequest(layers="1:4"), steps=Silence())
    manifest = load_artefact(folder).manifest
    assert [layer.name for layer in compared.report.layers] == [layer.name for layer in manifest.layers[1:4]]
    assert "pass" in {layer.kind for layer in compared.report.layers}
    assert (compared.report.model, compared.report.matches_reference) == ("lenet5", True)
    assert compared.comparison.compared == 3
    assert compared.outputs == {}


def test_an_interrupted_simulation_of_a_compiled_model_goes_on(folder, cache):
    with pytest.raises(Interrupted):
        run_artefact_ranges(folder, None, RangeRequest(jobs=1), steps=Breaking(3))
    again = run_artefact_ranges(folder, None, RangeRequest(jobs=1), steps=Silence())
    assert re.search(r"[123] of [34] in an earlier run", str(again.report.notes))
    assert again.report.matches_reference
    assert set(again.outputs) == {"logits"}
    assert again.comparison.compared == len(load_artefact(folder).manifest.layers)


def test_layers_that_the_machine_needs_in_parts_are_ranges_too(tmp_path, cache):
    small = replace(preset("nano"), activation_bytes=4096)
    model = ModelBuilder("qdq", seed=1)
    pixels = model.conv(model.input((1, 3, 12, 12)), 100, kernel=1)
    (tmp_path / "net.onnx").write_bytes(model.finish(model.conv(model.average(pixels), 5, kernel=1)))
    compile_model(tmp_path / "net.onnx", small, tmp_path / "net")
    for compared in (
            run_ranges(ModelSource(tmp_path / "net.onnx"), small, None, RangeRequest(layers="1:"),
                            steps=Silence()),
            run_artefact_ranges(tmp_path / "net", None, RangeRequest(layers="1:"), steps=Silence())):
        assert [layer.kind for layer in compared.report.layers] == [*["average"] * 4, "conv"]
        assert compared.comparison.matches
        assert compared.comparison.compared == 5


def test_a_compiled_model_with_other_layers_is_refused(folder, tmp_path):
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["options"]["fuse_pool"] = True
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ArtefactError, match=r"layers .*model\.onnx"):
        run_artefact_ranges(copy, None, RangeRequest(layers="0:1"), steps=Silence())
