"""The data of a page agree with the report, and long timelines are joined."""

import json
from dataclasses import replace

import pytest

from tilewright.compiler.network.options import BEST
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.execution.verdict import Judged, TensorVerdict
from tilewright.runtime.model_source import find_model
from tilewright.runtime.predicted_run import predict_model
from tilewright.runtime.run_options import RunOptions
from tilewright.runtime.views import page_data as module
from tilewright.runtime.views.page_data import page_data, roofs
from tilewright.runtime.views.run_page import run_page
from tilewright.tools.progress import Silence


@pytest.fixture(scope="module")
def run():
    return predict_model(find_model("lenet5_accel", Silence()), design_of("base"), BEST, Silence())


def test_cycles_of_causes_and_energy_of_components_are_those_of_the_layers(run):
    found = page_data(run)
    json.dumps(found, allow_nan=False)
    for layer, reported in zip(found["layers"], run.report.layers, strict=True):
        assert sum(layer["busy"].values()) == layer["cycles"] == reported.cycles
        assert sum(layer["components"].values()) == pytest.approx(layer["energy"], rel=1e-3)
        assert layer["low"] < layer["energy"] < layer["high"]
        assert layer["plan"]["name"] == layer["name"]
    assert found["edges"] == [(index - 1, index) for index in range(len(run.report.layers))]


def test_a_run_without_plan_and_times_has_a_page(run):
    found = page_data(replace(run, explanation=None, job=None, times=None))
    assert found["timeline"] is found["memory"] is None
    assert found["edges"] == []


def test_what_was_not_stored_is_not_called_equal():
    run = run_model(find_model("lenet5", Silence()), design_of("base").machine, "fast", None,
                    run=RunOptions(outputs_only=True))
    found = page_data(run)
    results = [layer["exact"] for layer in found["layers"]]
    assert results[-1] == "equal"
    assert len(results) > 1
    assert all(result.startswith("not compared") for result in results[:-1])
    assert [verdict for _, verdict in found["outputs"]] == ["equal"]
    figures = {name: (value, remark) for name, value, remark in found["figures"]}
    assert figures["outputs equal to ONNX Runtime"] == ("yes", "1 output: 1 equal")
    assert figures["layers equal to ONNX Runtime"] == (
        f"1 of {len(results)}", f"{len(results)} layers: 1 equal, {len(results) - 1} not compared")
    content = run.report.to_json()
    assert content["compared"] == {
        "outputs": {"equal": 1, "declared": 0, "differs": 0, "not compared": 0},
        "layers": {"equal": 1, "declared": 0, "differs": 0, "not compared": len(results) - 1}}
    assert [layer["comparison"]["verdict"] for layer in content["layers"]] == [
        *["not compared"] * (len(results) - 1), "equal"]


def test_an_output_that_is_off_is_not_called_equal(run):
    off = TensorVerdict(kind="declared", elements=10, off=3, levels=8, why="ONNX Runtime computes it in float")
    report = replace(run.report, matches_reference=True, judged=(), judged_outputs=(Judged("y", "y", off),))
    found = page_data(replace(run, report=report))
    values = {name: value for name, value, _ in found["figures"]}
    assert values["outputs equal to ONNX Runtime"] == "0 of 1"
    assert values["layers equal to ONNX Runtime"] == "not compared"
    assert found["outputs"] == [["y", str(off)]]
    assert "8 levels" in str(off)
    assert {layer["exact"] for layer in found["layers"]} == {"not compared: there was no comparison"}


def test_roofs_are_those_of_the_design(run):
    assert roofs(run.report, run.job.machine) == {"conv": 128, "conv23": 288, "bus": 8}
    assert roofs(run.report, design_of("base,array=plain").machine) == {"conv": 64, "bus": 8}


def test_a_long_timeline_is_joined_to_the_limit_and_loses_no_work(run, monkeypatch):
    full = page_data(run)["timeline"]["tracks"]
    monkeypatch.setattr(module, "MOST_SLICES", 60)
    short = page_data(run)["timeline"]["tracks"]
    before, after = (sum(len(track["begin"]) for track in tracks.values()) for tracks in (full, short))
    assert after <= 60 < before
    for unit, track in short.items():
        assert sum(track["length"]) >= sum(full[unit]["length"])


def test_no_name_in_a_model_ends_the_data(run):
    layers = (replace(run.report.layers[0], name="</script><b>"), *run.report.layers[1:])
    page = run_page(replace(run, report=replace(run.report, model="<i>&", layers=layers)), "tilewright run '<u>'")
    assert "</script><b>" not in page
    assert "<i>" not in page
    assert "<u>" not in page
