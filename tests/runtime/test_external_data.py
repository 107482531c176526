"""A model whose data lie in a file beside it runs, is compared and is compiled as if they were in it."""

import numpy as np
import onnx
import pytest

from tests.support.border_models import BorderModel
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.compile import compile_model
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compare.layer_report import compare_layers
from tilewright.runtime.compared_run import run_artefact, run_model
from tilewright.runtime.model_source import ModelSource, find_model
from tilewright.runtime.session import InferenceSession
from tilewright.tools.progress import Silence


@pytest.fixture
def split(tmp_path):
    def save(content):
        """Write the model's constants to a file beside it; return the model's."""
        (tmp_path / "apart").mkdir()
        onnx.save(onnx.load_from_string(content), tmp_path / "apart" / "net.onnx", save_as_external_data=True,
                  size_threshold=0, location="net.bin")
        return tmp_path / "apart" / "net.onnx"
    return save


@pytest.mark.parametrize("source", [ModelSource.of, lambda file: find_model(str(file), Silence())])
def test_it_runs_and_is_compared(split, source):
    found = source(split(BorderModel().finish()))
    assert run_model(found, PRESETS["nano"], "fast", None).comparison.matches
    assert compare_layers(found, PRESETS["nano"], "fast", None, steps=Silence()).found.divergence is None


def test_the_note_names_the_file(split):
    assert any("net.bin" in note for note in find_model(str(split(BorderModel().finish())), Silence()).reading)


def test_an_artefact_holds_the_data(split, tmp_path):
    model = ModelBuilder("qdq", seed=6)
    model.output(model.conv(model.input((1, 3, 8, 8)), 4))
    file = split(model.finish())
    compile_model(file, PRESETS["nano"], tmp_path / "artefact")
    feed = {"input0": np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)}
    (expected,) = InferenceSession(file, "nano").run(None, feed)
    (file.parent / "net.bin").unlink()
    file.unlink()
    compared = run_artefact(tmp_path / "artefact", "fast", None)
    assert compared.comparison.matches
    np.testing.assert_array_equal(InferenceSession(tmp_path / "artefact").run(None, feed)[0], expected)
