"""``--explain`` and the compile options on the command line."""

import json

import pytest
from typer.testing import CliRunner

from tilewright.cli.app import app

PLAN_KEYS = {"model", "machine", "options", "predicted_cycles", "predicted_bytes", "roofline_cycles", "memory_bytes",
             "layers"}


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_compile_explains_without_writing_an_artefact(tmp_path):
    done = invoke("compile", "lenet5_accel", "--explain", "--json", tmp_path / "plan.json")
    assert done.exit_code == 0, done.output
    for text in ("Plan of lenet5_accel for base", "conv23", "max pool 2x2 / 2", "memory", "compute", "roofline:"):
        assert text in done.stdout
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert set(plan) == PLAN_KEYS
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_compile_without_a_folder_or_a_question_is_refused():
    done = invoke("compile", "lenet5_accel")
    assert done.exit_code == 2
    assert done.stderr == ("tilewright: Give -o DIR to write the compiled model, or --explain to see only its plan.\n")


def test_run_puts_the_plan_into_its_report(tmp_path):
    done = invoke("run", "lenet5_accel", "--explain", "--no-winograd", "--json", tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    plan = json.loads((tmp_path / "report.json").read_text())["plan"]
    assert set(plan) == PLAN_KEYS
    assert plan["options"] == {"fuse_pool": True, "winograd": "never", "reuse": True, "chain": True, "bands": True,
                               "narrow": True, "keep_weights": None, "batch": 1}
    assert {layer["algorithm"] for layer in plan["layers"]} == {"conv"}


@pytest.mark.parametrize("option", ["--no-fuse-pool", "--no-winograd", "--no-reuse", "--no-chaining", "--no-bands"])
def test_run_with_less_equals_onnx_runtime_too(option, tmp_path):
    done = invoke("run", "lenet5_accel", option, "--json", tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["matches_reference"] is True
    assert "plan" not in report


def test_an_artefact_is_compiled_with_the_options(tmp_path):
    done = invoke("compile", "lenet5_accel", "-o", tmp_path / "net", "--no-reuse")
    assert done.exit_code == 0, done.output
    assert "conv23_run_without_reuse(" in (tmp_path / "net" / "model.c").read_text()
