"""A session of a float model quantises it with samples of any form, and warns where the core computes in float."""

import warnings

import numpy as np
import onnx
import pytest

from tests.support.float_models import FloatBuilder
from tilewright import FloatOnCoreWarning, InferenceSession
from tilewright.errors import InputError
from tilewright.models import builtin

SAMPLES = np.random.default_rng(0).normal(size=(6, 3, 8, 8)).astype(np.float32)


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Return the file of a float model of one convolution."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    builder = FloatBuilder()
    onnx.save(builder.finish(builder.node("Relu", builder.conv(builder.input((1, 3, 8, 8)), 3, 4))),
              tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


@pytest.mark.parametrize("form", ["array", "mapping", "file", "text"])
def test_samples_of_any_form_quantise_a_float_model(model, tmp_path, form):
    np.save(tmp_path / "some.npy", SAMPLES)
    given = {"array": SAMPLES, "mapping": {"image": SAMPLES}, "file": tmp_path / "some.npy",
             "text": str(tmp_path / "some.npy")}[form]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session = InferenceSession(model, calibrate=given)
    session.run(None, {"image": SAMPLES[:1]})
    assert session.report.core_share.layers == 0


def test_without_samples_a_float_model_warns_once(model):
    with pytest.warns(FloatOnCoreWarning, match="calibrate=") as caught:
        InferenceSession(model)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_quantised_model_neither_warns_nor_takes_samples():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        InferenceSession(builtin("lenet5"))
    with pytest.raises(InputError, match="already quantised"):
        InferenceSession(builtin("lenet5"), calibrate=SAMPLES)
