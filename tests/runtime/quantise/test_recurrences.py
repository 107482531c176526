"""A float recurrence that is quantised here: every step has the same scales and weights, and equals ONNX Runtime's."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.support.recurrent_models import recurrent_model
from tilewright.compiler.control.step_names import kind_of
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.session import InferenceSession
from tilewright.tools.progress import Silence

_SIZES = (4, 1, 8, 16)


def quantised(tmp_path, monkeypatch, op, **form):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    model, rng = recurrent_model(op, sizes=_SIZES, states="none", **form), np.random.default_rng(0)
    onnx.save(model, tmp_path / "net.onnx")
    samples = rng.normal(size=(3, *_SIZES[:1], 1, _SIZES[2])).astype(np.float32)
    np.savez(tmp_path / "samples.npz", x=samples)
    return find_model(str(tmp_path / "net.onnx"), Silence(), calibrate=tmp_path / "samples.npz"), samples


@pytest.mark.parametrize(("op", "attributes"), [
    ("RNN", {}), ("GRU", {"linear_before_reset": 1}), ("GRU", {"direction": "bidirectional"}), ("LSTM", {})])
def test_it_runs_on_the_datapath_and_equals_onnx_runtime(tmp_path, monkeypatch, op, attributes):
    source, samples = quantised(tmp_path, monkeypatch, op, attributes=attributes)
    session = InferenceSession(source.path, "base")
    for value, expected in zip(session.run(None, {"x": samples[0]}),
                               onnx_session(source.path.read_bytes()).run(None, {"x": samples[0]}), strict=True):
        np.testing.assert_array_equal(value, expected)
    assert all(layer.kind != "core" for layer in session.report.layers)


def test_all_tensors_of_a_kind_have_one_scale(tmp_path, monkeypatch):
    source, _ = quantised(tmp_path, monkeypatch, "LSTM")
    graph = onnx.load(source.path).graph
    constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    scales: dict[str, set[float]] = {}
    for node in graph.node:
        if node.op_type == "QuantizeLinear" and (kind := kind_of(node.input[0])) is not None:
            scales.setdefault(kind, set()).add(float(constants[node.input[1]]))
    assert len(scales) > 8
    assert {kind for kind, found in scales.items() if len(found) > 1} == set()


def test_the_levels_of_weights_are_in_the_file_once(tmp_path, monkeypatch):
    source, _ = quantised(tmp_path, monkeypatch, "GRU", attributes={"linear_before_reset": 1})
    graph = onnx.load(source.path).graph
    matrices = [each for each in graph.initializer if len(each.dims) == 2 and each.dims[0] > 1]
    assert sorted(int(np.prod(each.dims)) for each in matrices) == [16 * 16, 8 * 48, 16 * 32]
