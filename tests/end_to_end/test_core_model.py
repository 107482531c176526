"""A model whose tail is float, from ONNX through an artefact to both engines: held to ONNX Runtime, bytes to bytes."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper, save_model

from tilewright.cli.tables.report_tables import report_text
from tilewright.compiler.compile import compile_model
from tilewright.compiler.emit.artefact import FILES, load_artefact
from tilewright.isa.machine import PRESETS
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.session import InferenceSession


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A quantised convolution, handed out, and behind it product, Tanh and Transpose in float, handed out too."""
    rng = np.random.default_rng(0)
    constants = {
        "s": np.float32(0.02), "z": np.int8(0), "w": rng.integers(-127, 128, (8, 3, 3, 3)).astype(np.int8),
        "ws": np.full(8, 0.01, np.float32), "wz": np.zeros(8, np.int8),
        "b": rng.integers(-500, 500, 8).astype(np.int32), "bs": np.full(8, 0.0002, np.float32),
        "bz": np.zeros(8, np.int32), "ys": np.float32(0.05), "k": rng.normal(size=(8, 1, 1)).astype(np.float32)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bd"], axis=0),
        helper.make_node("Conv", ["xd", "wd", "bd"], ["c"], pads=[1, 1, 1, 1], name="conv"),
        helper.make_node("QuantizeLinear", ["c", "ys", "z"], ["cq"]),
        helper.make_node("DequantizeLinear", ["cq", "ys", "z"], ["cd"]),
        helper.make_node("Mul", ["cd", "k"], ["m"], name="product"),
        helper.make_node("Tanh", ["m"], ["t"], name="tanh"),
        helper.make_node("Transpose", ["t"], ["y"], perm=[0, 2, 3, 1], name="turn")]
    graph = helper.make_graph(
        nodes, "float tail", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 6, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6, 5, 8]),
         helper.make_tensor_value_info("cq", TensorProto.INT8, [1, 8, 6, 5])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(proto)
    path = tmp_path_factory.mktemp("model") / "tail.onnx"
    save_model(proto, path)
    return path


@pytest.fixture(scope="module")
def artefact(model):
    return compile_model(model, PRESETS["base"], model.with_name("compiled"))


def test_both_engines_hand_out_what_onnx_runtime_does(model, artefact):
    x = np.random.default_rng(1).normal(size=(1, 3, 6, 5)).astype(np.float32)
    reference = onnx_session(model)
    expected = dict(zip(("y", "cq"), reference.run(["y", "cq"], {"x": x}), strict=True))
    found = {}
    for engine in ("fast", "rtl"):
        session = InferenceSession(artefact.folder, engine=engine)
        assert [(each.name, each.type, each.shape) for each in session.get_outputs()] == [
            ("y", "tensor(float)", [1, 6, 5, 8]), ("cq", "tensor(int8)", [1, 8, 6, 5])]
        y, cq = session.run(["y", "cq"], {"x": x})
        np.testing.assert_array_equal(cq, expected["cq"], strict=True)
        np.testing.assert_allclose(y, expected["y"], rtol=0, atol=1e-6)
        assert y.dtype == np.float32
        found[engine] = y.tobytes()
        report = session.report
        assert report.layers[-1].kind == "core"
        assert 0 < report.core_cycles < report.cycles
        assert "Core: " in report_text(report)
        assert report.to_json()["layers"][-1].keys() == report.to_json()["layers"][0].keys()
    assert found["fast"] == found["rtl"]


def test_the_artefact_is_the_same_each_time_and_read_back_as_it_was(model, artefact, tmp_path):
    again = compile_model(model, PRESETS["base"], tmp_path / "again")
    for name in ("manifest.json", *FILES):
        assert (again.folder / name).read_bytes() == (artefact.folder / name).read_bytes(), name
    read = load_artefact(artefact.folder)
    assert read.program == artefact.program
    assert read.manifest.layers == artefact.manifest.layers
