"""What a plain session of ONNX Runtime computes is shown beside ours: how far it is off, and what starts it."""

import json
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from typer.testing import CliRunner

from tests.support.onnx_models import ModelBuilder
from tilewright.cli.app import app
from tilewright.runtime.compare.other_references import compare_reference
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.tools.progress import Silence

UNFUSED = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL

SCALE = 0.25


@pytest.fixture(scope="module")
def average(tmp_path_factory):
    """Return a file of two averages over halves, to an odd zero point; unfused, that is added behind the rounding."""
    model = ModelBuilder("qdq", zero_point=5)
    x = replace(model.input((1, 8, 16, 16), integer=True), scale=np.float32(0.0625))
    y = model.average(x, 2, 0.125, strides=(2, 2))
    z = model.average(y, 2, SCALE, strides=(2, 2))
    path = tmp_path_factory.mktemp("models") / "average.onnx"
    path.write_bytes(model.finish(z))
    return path


def plain(path, array, level=None):
    options = onnxruntime.SessionOptions()
    if level is not None:
        options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: array})[0]


@pytest.mark.parametrize(("name", "level"), [("default", None), ("unfused", UNFUSED)])
def test_differences_are_counted_and_the_operator_that_starts_them_is_named(average, tmp_path, name, level):
    x = np.random.default_rng(1).integers(-128, 128, (1, 8, 16, 16)).astype(np.int8)
    np.save(tmp_path / "x.npy", x)
    found = compare_reference(find_model(str(average), Silence()), name, tmp_path / "x.npy", steps=Silence())
    (integer,) = session(average).run(None, {"tensor1": x})
    off = np.rint((plain(average, x, level).astype(float) - integer) / SCALE)
    (output,) = found.outputs
    assert np.count_nonzero(off) > 0
    assert (output.verdict.kind, output.verdict.off, output.verdict.levels) == (
        "differs", np.count_nonzero(off), np.abs(off).max())
    assert found.start.operators == ("AveragePool",)
    if name == "unfused":
        assert found.start.layer == 0


def test_the_user_s_own_file_is_run(average):
    source = find_model(str(average), Silence())
    assert source.own_file == average
    assert find_model("lenet5", Silence()).own_file == find_model("lenet5", Silence()).path


def test_the_command_shows_it_and_writes_it(average, tmp_path):
    done = CliRunner().invoke(app, ["compare", str(average), "--reference", "unfused", "--json",
                                    str(tmp_path / "found.json"), "--html", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    assert "AveragePool" in done.stdout
    assert "1 level" in done.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["reference"] == "unfused"
    assert found["compared"]["outputs"]["differs"] == 1
    assert found["start"]["operators"] == ["AveragePool"]
    assert "equal to ONNX Runtime" in (tmp_path / "page.html").read_text()
