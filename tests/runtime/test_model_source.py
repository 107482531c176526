"""Options that change how a file is read reach every command, and its report says what was changed."""

import json

import numpy as np
import onnx
import pytest

from tests.cli.test_app import invoke, refused
from tests.compiler.onnx.test_half_floats import half
from tests.support.float_models import FloatBuilder
from tilewright.cli.options.input_texts import shape_given
from tilewright.errors import InputError
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Silence


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Return the file of a model of open height and width."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    builder = FloatBuilder()
    onnx.save(builder.finish(builder.node("Relu", builder.conv(builder.input(("n", 3, "h", "w")), 3, 4))),
              tmp_path / "open.onnx")
    return tmp_path / "open.onnx"


@pytest.mark.parametrize("given", [["--shape", "image=1,3,8,12"], ["--shape", "h=8", "--shape", "w=12"]])
@pytest.mark.parametrize("command", ["check", "run"])
def test_a_model_with_open_dimensions_runs_with_shape(opened, command, given):
    done = invoke(command, opened, *given, "--json", opened.with_suffix(".json"))
    assert done.exit_code == 0, done.output
    assert json.loads(opened.with_suffix(".json").read_text())["model"] == "open"


def test_without_the_option_the_refusal_names_it(opened):
    assert "--shape h=320 --shape w=320" in refused(2, "check", opened)


def test_a_built_in_model_has_no_open_dimensions():
    with pytest.raises(InputError, match="needs a file with open dimensions"):
        find_model("lenet5", Silence(), shapes={"image": (1, 1, 32, 32)})


@pytest.mark.parametrize("text", ["image", "image=", "=3", "image=1,,3", "image=0", "image=-1", "image=1x3", "h=1e3"])
def test_other_forms_of_the_option_are_refused(text):
    with pytest.raises(InputError, match="--shape"):
        shape_given(text)


def test_names_may_hold_an_equals_sign():
    assert shape_given("a=b=1,2") == ("a=b", (1, 2))


def test_a_model_in_float16_is_quantised_and_its_report_says_how_it_was_read(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    onnx.save(half(onnx.TensorProto.FLOAT16), tmp_path / "half.onnx")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(4, 3, 4, 4)).astype(np.float32))
    source = find_model(str(tmp_path / "half.onnx"), Silence(), calibrate=tmp_path / "x.npy")
    assert any("float16" in note for note in source.notes)
    done = invoke("run", tmp_path / "half.onnx", "--calibrate", tmp_path / "x.npy")
    assert done.exit_code == 0, done.output
    assert "float16" in done.stdout
