"""A run compares what the model puts out, under every name, and not only the tensors behind it."""

import numpy as np
import pytest
from onnx import TensorProto

from tests.support.border_models import BorderModel, Y
from tilewright.runtime.compared_run import run_session
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.session import InferenceSession
from tilewright.tools.progress import Silence


class Spoilt(InferenceSession):
    """Computes all tensors rightly, and changes one of the outputs on the way out."""

    spoilt = ""

    def run(self, *arguments, **named):
        """Return the outputs of a run, one of them changed."""
        outputs = super().run(*arguments, **named)
        names = [each.name for each in self.get_outputs()]
        return [value + np.asarray(name == self.spoilt, value.dtype)
                for name, value in zip(names, outputs, strict=True)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    model = BorderModel()
    model.alias("identity", "y", "again")
    model.alias("concat", "q", "levels")
    model.outputs = [("again", TensorProto.FLOAT, Y), ("levels", TensorProto.INT8, Y), *model.outputs]
    file = tmp_path_factory.mktemp("outputs") / "net.onnx"
    file.write_bytes(model.finish())
    return file


def compared(model, spoilt):
    session = Spoilt(model, "nano", keep_tensors=True)
    session.spoilt = spoilt
    return run_session(session, ModelSource.of(model), None, Silence()).comparison


def test_right_outputs_match(model):
    assert compared(model, "").matches


@pytest.mark.parametrize("name", ["again", "levels", "y"])
def test_a_wrong_output_is_the_difference(model, name):
    found = compared(model, name)
    assert not found.matches
    assert found.difference.tensor == name
