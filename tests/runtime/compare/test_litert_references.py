"""A .tflite file beside LiteRT, its reference kernels and TensorFlow Lite Micro, where these are installed."""

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.tflite_cases import content_of
from tilewright.compiler.tflite.mark import ENGINES
from tilewright.errors import InputError
from tilewright.models import FOLDER
from tilewright.runtime.compare.other_references import compare_reference
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle import litert_sessions
from tilewright.tools.progress import Silence


@pytest.fixture
def block(tmp_path):
    path = tmp_path / "block.tflite"
    path.write_bytes(content_of("residual block"))
    return find_model(str(path), Silence())


def test_a_model_in_onnx_has_no_such_reference():
    source = find_model("lenet5", Silence())
    with pytest.raises(InputError, match=r"litert-reference.*lenet5"):
        compare_reference(source, "litert-reference", None, steps=Silence())


@pytest.mark.parametrize("name", ENGINES)
def test_a_package_that_is_missing_is_named_with_the_command_that_brings_it(block, name, monkeypatch):
    def missing(module):
        raise ModuleNotFoundError(module)

    monkeypatch.setattr(litert_sessions.importlib, "import_module", missing)
    with pytest.raises(InputError, match=r"pip install 'tilewright\[tflite\]'"):
        compare_reference(block, name, None, steps=Silence())


def test_tensors_that_the_engine_keeps_no_data_of_are_not_compared(block, monkeypatch):
    """As XNNPACK's, of unrolled recurrences; here of all but the output, which is zeros."""
    model = litert_sessions.read_file(content_of("residual block"), "block")

    class Interpreter:
        def __init__(self, **_):
            self.resize_tensor_input = self.set_tensor = lambda *_: None
            self.allocate_tensors = self.invoke = lambda: None

        def get_tensor(self, index):
            if index not in model.outputs:
                raise ValueError("Tensor data is null. Run allocate_tensors() first")
            return np.zeros(model.tensors[index].shape, np.int8)

    engine = SimpleNamespace(Interpreter=Interpreter, OpResolverType=SimpleNamespace(AUTO=0, BUILTIN_REF=1))
    monkeypatch.setattr(litert_sessions.importlib, "import_module", lambda _: engine)
    monkeypatch.setattr(litert_sessions.importlib.metadata, "version", lambda _: "0")
    found = compare_reference(block, "litert", None, steps=Silence())
    assert {each.kind for each in found.verdicts[:-1]} == {"not compared"}
    assert found.output_verdicts[0].kind == "differs"


@pytest.mark.skipif(importlib.util.find_spec("ai_edge_litert") is None, reason="the extra tflite is not installed")
def test_litert_s_default_is_what_we_equal_and_its_reference_kernels_are_not():
    source = find_model(str(FOLDER / "mlperf-kws.tflite"), Silence())
    default = compare_reference(source, "litert", None, steps=Silence())
    assert {each.kind for each in default.verdicts + default.output_verdicts} == {"equal"}
    assert default.start is None
    reference = compare_reference(source, "litert-reference", None, steps=Silence())
    assert reference.start is not None
    assert reference.start.operators == ("CONV_2D",)
    assert "litert" in reference.to_json()
