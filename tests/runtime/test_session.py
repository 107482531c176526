"""InferenceSession answers as ONNX Runtime does, and refuses what it cannot answer."""

import re
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright
from tests.support.onnx_models import ModelBuilder
from tilewright.errors import InputError, SimulationError
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.models import builtin, data
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.session import InferenceSession

IMAGES = data.samples().images


@pytest.fixture(scope="module")
def lenet5():
    return InferenceSession(builtin("lenet5"), machine="nano")


@pytest.mark.parametrize("model", ["lenet5", "lenet5_accel", "lenet5_qoperator"])
def test_logits_are_onnx_runtimes(model):
    reference = onnx_session(builtin(model))
    session = tilewright.InferenceSession(builtin(model), machine="base", engine="fast")
    for image in IMAGES[:4, np.newaxis]:
        (ours,), (theirs,) = session.run(None, {"image": image}), reference.run(None, {"image": image})
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_a_model_may_be_bytes_or_a_proto_and_an_input_a_list():
    model = onnx.load(builtin("lenet5"))
    for given in (model, model.SerializeToString()):
        ours = InferenceSession(given, providers=["CPUExecutionProvider"], sess_options=None)
        (logits,) = ours.run(None, {"image": IMAGES[:1].tolist()}, None)
        (expected,) = onnx_session(builtin("lenet5")).run(None, {"image": IMAGES[:1]})
        np.testing.assert_array_equal(logits, expected)


def test_arguments_that_neither_session_has_are_refused():
    with pytest.raises(TypeError, match="provider"):
        InferenceSession(builtin("lenet5"), provider=["CPUExecutionProvider"])


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_inputs_and_outputs_may_be_integers(tmp_path, form, dtype):
    builder = ModelBuilder(form, seed=3, dtype=dtype, zero_point=None)
    x = builder.input((1, 3, 9, 8), integer=True)
    y = builder.conv(x, 5, kernel=3)
    builder.output(y, integer=True)
    (tmp_path / "net.onnx").write_bytes(builder.finish())
    reference, session = onnx_session(tmp_path / "net.onnx"), InferenceSession(tmp_path / "net.onnx", machine="nano")
    assert [(each.name, list(each.shape), each.type) for each in session.get_inputs() + session.get_outputs()] == [
        (each.name, each.shape, each.type) for each in reference.get_inputs() + reference.get_outputs()]
    feed = {x.name: np.random.default_rng(0).integers(0, 128, x.shape).astype(dtype)}
    (ours,), (theirs,) = session.run(None, feed), reference.run(None, feed)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


def test_arguments_are_those_of_onnx_runtime(lenet5):
    reference = onnx_session(builtin("lenet5"))
    for ours, theirs in zip(lenet5.get_inputs() + lenet5.get_outputs(),
                            reference.get_inputs() + reference.get_outputs(), strict=True):
        assert (ours.name, ours.shape, ours.type) == (theirs.name, theirs.shape, theirs.type)


def test_a_batch_is_run_image_after_image_and_stacked(lenet5):
    reference = onnx_session(builtin("lenet5"))
    (logits,) = lenet5.run(None, {"image": IMAGES[:3]})
    expected = [reference.run(None, {"image": image})[0] for image in IMAGES[:3, np.newaxis]]
    np.testing.assert_array_equal(logits, np.concatenate(expected))
    (again,) = lenet5.run(["logits"], {"image": IMAGES[:3].tolist()})
    np.testing.assert_array_equal(again, logits)
    whole = lenet5.report.cycles
    lenet5.run(None, {"image": IMAGES[2:3]})
    assert lenet5.report.cycles == whole


def two_inputs(output):
    """Return a model of two inputs whose output has this shape."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 4, 4]) for name in "ab"]
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Reshape", ["sum", "shape"], ["y"])]
    graph = helper.make_graph(nodes, "two", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, output)],
                              [numpy_helper.from_array(np.array(output, np.int64), "shape")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.filterwarnings("ignore::tilewright.errors.FloatOnCoreWarning")
def test_every_input_of_a_batch_has_its_images():
    session = InferenceSession(two_inputs([1, 32]), "nano")
    feed = {name: np.random.default_rng(ord(name)).normal(size=(3, 2, 4, 4)).astype(np.float32) for name in "ab"}
    (sums,) = session.run(None, feed)
    np.testing.assert_array_equal(sums, (feed["a"] + feed["b"]).reshape(3, 32))
    with pytest.raises(InputError, match=r"'a' .*\(1, 2, 4, 4\).*\(3, 2, 4, 4\)"):
        session.run(None, feed | {"b": feed["b"][:2]})
    with pytest.raises(InputError, match=r"'a' .*\(0, 2, 4, 4\)"):
        session.run(None, {name: array[:0] for name, array in feed.items()})


@pytest.mark.filterwarnings("ignore::tilewright.errors.FloatOnCoreWarning")
def test_answers_without_a_leading_one_are_not_stacked():
    session = InferenceSession(two_inputs([32, 1]), "nano")
    with pytest.raises(InputError, match=r"'y' .*\(32, 1\)"):
        session.run(None, {name: np.zeros((2, 2, 4, 4), np.float32) for name in "ab"})


def test_a_built_in_model_may_be_named():
    assert InferenceSession("lenet5", "nano").get_outputs() == InferenceSession(builtin("lenet5")).get_outputs()


def test_a_notebook_shows_a_session_and_its_report():
    session = InferenceSession("lenet5", "nano")
    assert "not run yet" in session._repr_html_()
    session.run(None, {"image": IMAGES[:1]})
    page, report = session._repr_html_(), session.report._repr_html_()
    assert report in page
    assert "1 × 1 × 32 × 32" in page
    assert f"{session.report.cycles:,} cycles" in report
    assert all(layer.name in report and f"{layer.cycles:,}" in report for layer in session.report.layers)


def test_names_of_a_model_are_text_in_a_page():
    session = InferenceSession("lenet5", "nano")
    session.run(None, {"image": IMAGES[:1]})
    (first, *rest) = session.report.layers
    report = replace(session.report, layers=(replace(first, name="<script>"), *rest), model="<b>")
    assert "<script>" not in report._repr_html_()
    assert "&lt;script&gt;" in report._repr_html_()
    assert "<b><b>" not in report._repr_html_()


def test_outputs_can_be_chosen_by_name(lenet5):
    feed = {"image": IMAGES[:1]}
    assert lenet5.run([], feed) == []
    np.testing.assert_array_equal(lenet5.run(["logits"], feed)[0], lenet5.run(None, feed)[0])
    with pytest.raises(InputError, match=r"Outputs.*not 'scores'"):
        lenet5.run(["scores"], feed)


def test_a_report_needs_a_run():
    session = InferenceSession(builtin("lenet5"), machine="nano")
    with pytest.raises(SimulationError, match="only after a run"):
        session.report  # noqa: B018 -- the property raises
    session.run(None, {"image": IMAGES[:1]})
    assert session.report.machine == "nano"
    assert [layer.name for layer in session.report.layers] == [name for name, _ in session.layers]
    assert session.report.matches_reference is None


def test_tensors_of_all_layers_are_kept_on_demand():
    kept = InferenceSession(builtin("lenet5"), machine="base", keep_tensors=True)
    kept.run(None, {"image": IMAGES[:1]})
    assert {output for _, output in kept.layers} <= set(kept.tensors)


def test_slower_memory_takes_longer_and_changes_no_value():
    fast, slow = (InferenceSession(builtin("lenet5"), machine="base",
                                   memory=MemoryTiming(latency_cycles=latency)) for latency in (20, 200))
    feed = {"image": IMAGES[:1]}
    np.testing.assert_array_equal(fast.run(None, feed)[0], slow.run(None, feed)[0])
    assert slow.report.cycles > fast.report.cycles
    assert slow.report.memory.latency_cycles == 200


def test_any_machine_will_do():
    machine = Machine(name="mine", lanes=2, clusters=2, post_lanes=2, bus_bytes=4)
    session = InferenceSession(builtin("lenet5"), machine=machine)
    session.run(None, {"image": IMAGES[:1]})
    assert (session.report.machine, session.report.multipliers) == ("mine", 32)


@pytest.mark.parametrize(("options", "sentence"), [
    ({"machine": "huge"}, ("Machine must be one of nano, base, large, base_depthwise, large_depthwise, base_integer, "
                           "a design file (.toml), or one of these with changes, such as base,lanes=8, not 'huge'")),
    ({"engine": "slow"}, "Engine must be one of rtl, fast, not 'slow'"),
])
def test_unknown_options_are_refused(options, sentence):
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        InferenceSession(builtin("lenet5"), **options)


def test_waveforms_need_the_hardware(lenet5, tmp_path):
    with pytest.raises(InputError, match=r"Engine.*not 'fast'"):
        lenet5.run(None, {"image": IMAGES[:1]}, wave=tmp_path / "run.vcd")
    hardware = InferenceSession("lenet5", "nano", engine="rtl")
    with pytest.raises(InputError, match="waveforms, not of 2"):
        hardware.run(None, {"image": IMAGES[:2]}, wave=tmp_path / "run.vcd")


def test_wrong_inputs_are_refused(lenet5):
    with pytest.raises(InputError, match=r"'image' .*not float64"):
        lenet5.run(None, {"image": IMAGES[:1].astype(np.float64)})
    with pytest.raises(InputError, match=r"^Inputs must be image, not none$"):
        lenet5.run(None, {})
