"""The option ``--state`` of run, check and compile."""

import json

import onnx
import pytest

from tests.cli.test_app import invoke, refused
from tests.support.state_models import state_model

_STATE = ("--state", "h=hn", "--state", "c=cn")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    file = tmp_path_factory.mktemp("state") / "net.onnx"
    onnx.save(state_model(), file)
    return str(file)


def test_a_run_compares_two_calls_and_says_how_much_is_kept(model):
    told = " ".join(invoke("run", model, "--machine", "nano", *_STATE).output.split())
    assert "96 bytes are kept between calls" in told
    assert "second of two calls" in told
    assert "every element is equal" in told


def test_a_check_says_how_much_is_kept_and_how_to_keep_it(model):
    assert "96 bytes are kept" in " ".join(invoke("check", model, "--machine", "nano", *_STATE).output.split())
    assert " ".join(_STATE) in " ".join(invoke("check", model, "--machine", "nano").output.split())


def test_a_compiled_model_knows_its_state(model, tmp_path):
    invoke("compile", model, "--machine", "nano", "-o", str(tmp_path / "out"), *_STATE)
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["state"] == {"h": "hn", "c": "cn"}
    assert "96 bytes are kept" in " ".join(invoke("simulate", str(tmp_path / "out")).output.split())


@pytest.mark.parametrize(("options", "named"), [
    (("--state", "h"), "form h=hn"), (("--state", "h=hn", "--state", "h=cn"), "twice"),
    (("--state", "h=hm"), "'hm'"), (("--state", "hh=hn"), "'hh'"), ((*_STATE, "--batch", "2"), "--batch")])
@pytest.mark.parametrize("command", ["run", "check", "compile"])
def test_a_state_that_is_none_is_refused(model, tmp_path, command, options, named):
    place = ("-o", str(tmp_path / "out")) if command == "compile" else ()
    assert named in refused(2, command, model, "--machine", "nano", *options, *place)


def test_ranges_of_layers_keep_no_state(model):
    assert "--state" in refused(2, "run", model, "--engine", "rtl", "--layers", "0:1", *_STATE)
