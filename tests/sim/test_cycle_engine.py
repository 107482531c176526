"""Cycles without values are those of the fast engine, record by record."""

import json

import numpy as np
import pytest

from tests.cli.test_app import invoke, refused
from tilewright.compiler.compile import compile_file
from tilewright.isa.machine import PRESETS, MemoryTiming
from tilewright.models import builtin
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.prediction import predict_report
from tilewright.runtime.session import InferenceSession


@pytest.mark.parametrize("latency", [1, 20, 150])
@pytest.mark.parametrize("machine", ["nano", "base", "large"])
@pytest.mark.parametrize("name", ["lenet5", "lenet5_accel"])
def test_every_layer_takes_the_cycles_that_the_fast_engine_says(name, machine, latency):
    timing = MemoryTiming(latency_cycles=latency, bytes_per_cycle=PRESETS[machine].bus_bytes)
    compiled = compile_file(builtin(name), PRESETS[machine])
    predicted = predict_report(job_of_compiled(compiled, name), timing)
    session = InferenceSession(builtin(name), machine, memory=timing)
    session.run(None, {"image": np.zeros(session.get_inputs()[0].shape, np.float32)})
    assert predicted.cycles == session.report.cycles
    assert [layer.counts for layer in predicted.layers] == [layer.counts for layer in session.report.layers]
    assert predicted.instructions == session.report.instructions


def test_energy_is_near_that_of_real_data(tmp_path):
    compiled = compile_file(builtin("lenet5"), PRESETS["base"])
    predicted = predict_report(job_of_compiled(compiled, "lenet5")).energy.total_uj
    path = tmp_path / "report.json"
    assert invoke("run", "lenet5", "--json", path).exit_code == 0
    assert predicted == pytest.approx(json.loads(path.read_text())["energy"]["total_uj"], rel=0.1)


def test_the_command_line_predicts(tmp_path):
    path, other = tmp_path / "cycles.json", tmp_path / "fast.json"
    done = invoke("run", "lenet5", "--engine", "cycles", "--json", path)
    assert done.exit_code == 0, done.output
    content = json.loads(path.read_text())
    assert (content["engine"], content["matches_reference"]) == ("cycles", None)
    assert invoke("run", "lenet5", "--json", other).exit_code == 0
    assert content["cycles"] == json.loads(other.read_text())["cycles"]


@pytest.mark.parametrize("words", [["compare", "lenet5"], ["simulate", "."], ["run", "lenet5", "--statistics"],
                                   ["run", "lenet5", "--activity"], ["run", "lenet5", "--jobs", "2"]])
def test_commands_that_need_values_refuse_it(words):
    assert "cycles" in refused(2, *words, "--engine", "cycles") or "rtl" in refused(2, *words, "--engine", "cycles")
