"""A session takes and gives what the model's file says: all outputs, in order, by name and type; inputs likewise."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.border_models import ALIASES, BorderModel, X, Y
from tilewright.compiler.compile import compile_model
from tilewright.errors import InputError
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.session import InferenceSession
from tilewright.tools.progress import Silence

FLOAT, INT8 = TensorProto.FLOAT, TensorProto.INT8
NOT_IN_FLOAT = "ignore::tilewright.errors.FloatOnCoreWarning"


def draw(session, seed=0):
    rng = np.random.default_rng(seed)
    return {each.name: np.asarray(rng.normal(size=each.shape), {"tensor(float)": np.float32, "tensor(float16)":
                                                                np.float16}[each.type])
            for each in session.get_inputs()}


def require_same(model, engine="fast", machine="base", *, near=0.0):
    """Run the model in both sessions; return ours."""
    theirs, ours = onnx_session(model), InferenceSession(model, machine, engine)
    for mine, other in ((ours.get_inputs(), theirs.get_inputs()), (ours.get_outputs(), theirs.get_outputs())):
        assert [(each.name, each.type) for each in mine] == [(each.name, each.type) for each in other]
    feed = draw(theirs)
    for value, expected, argument in zip(ours.run(None, feed), theirs.run(None, feed), ours.get_outputs(), strict=True):
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape) == (value.dtype, tuple(argument.shape))
        if near:
            np.testing.assert_allclose(value, expected, atol=near)
        else:
            np.testing.assert_array_equal(value, expected)
    return ours


@pytest.mark.parametrize("kind", ALIASES)
@pytest.mark.parametrize("only", [False, True])
def test_an_output_under_another_name_is_an_output(kind, only):
    model = BorderModel()
    model.alias(kind, "y", "again")
    model.outputs = [("again", FLOAT, Y), *([] if only else model.outputs)]
    ours = require_same(model.finish())
    plain = InferenceSession(BorderModel().finish(), "base")
    plain.run(None, draw(plain))
    assert ours.report.cycles <= 1.05 * plain.report.cycles


def test_several_names_may_be_one_value_in_any_order():
    model = BorderModel()
    model.alias("identity", "y", "b")
    model.alias("identity", "b", "a")
    model.alias("identity", "q", "r")
    model.alias("identity", "xq", "s")
    model.outputs = [("r", INT8, Y), ("b", FLOAT, Y), ("q", INT8, Y), ("a", FLOAT, Y), ("y", FLOAT, Y), ("s", INT8, X)]
    require_same(model.finish())


@pytest.mark.parametrize("engine", ["fast", "rtl"])
def test_inputs_and_constants_may_be_outputs(engine):
    model = BorderModel()
    model.alias("identity", "x", "copy")
    model.constants["k"] = np.arange(5, dtype=np.int64)
    model.outputs += [("x", FLOAT, X), ("copy", FLOAT, X), ("k", TensorProto.INT64, (5,)), ("wd", FLOAT, (4, 3, 3, 3)),
                      ("w", INT8, (4, 3, 3, 3))]
    require_same(model.finish(), engine, "nano")


@pytest.mark.parametrize("known", ["type", "nothing"])
def test_outputs_need_not_state_their_shapes(known):
    model = BorderModel()
    model.node("Flatten", ["y"], "flat")
    model.outputs = [("flat", FLOAT, None), *model.outputs]
    proto = onnx.load_from_string(model.finish())
    if known == "nothing":
        proto.graph.output[0].ClearField("type")
    require_same(proto.SerializeToString())


def test_a_compiled_model_has_the_same_border(tmp_path):
    model = BorderModel()
    model.inputs = [("unread", FLOAT, (1, 5)), *model.inputs]
    model.alias("identity", "y", "again")
    model.outputs = [("again", FLOAT, Y), ("q", INT8, Y), *model.outputs]
    (tmp_path / "net.onnx").write_bytes(content := model.finish())
    compile_model(tmp_path / "net.onnx", PRESETS["nano"], tmp_path / "out")
    compiled, fresh = InferenceSession(tmp_path / "out"), InferenceSession(content, "nano")
    assert compiled.get_inputs() == fresh.get_inputs()
    assert compiled.get_outputs() == fresh.get_outputs()
    assert [each.name for each in fresh.get_inputs()] == ["unread", "x"]
    for ours, theirs in zip(compiled.run(None, draw(fresh)), fresh.run(None, draw(fresh)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_an_input_that_nothing_reads_may_be_fed():
    model = BorderModel()
    model.inputs = [("first", FLOAT, ()), *model.inputs, ("last", FLOAT, (1, 5))]
    ours = require_same(model.finish())
    feed = draw(ours)
    (whole,) = ours.run(None, feed)
    (without,) = ours.run(None, {"x": feed["x"]})
    np.testing.assert_array_equal(whole, without)
    batch = {"first": feed["first"], "x": np.repeat(feed["x"], 3, 0), "last": np.repeat(feed["last"], 3, 0)}
    np.testing.assert_array_equal(ours.run(None, batch)[0], np.repeat(whole, 3, 0))
    with pytest.raises(InputError, match=r"'last'.*6"):
        ours.run(None, feed | {"last": np.zeros((1, 6), np.float32)})
    with pytest.raises(InputError, match="first, x, last"):
        ours.run(None, {"first": feed["first"]})


def test_an_input_with_a_default_is_a_constant_and_deleting_the_default_makes_it_an_input():
    weights = np.random.default_rng(3).normal(size=(4, 3, 3, 3)).astype(np.float32)
    model = BorderModel()
    model.nodes = [node for node in model.nodes if node.output[0] != "wd"]
    model.node("QuantizeLinear", ["v", *model.nodes[0].input[1:]], "vq")
    model.node("DequantizeLinear", ["vq", *model.nodes[0].input[1:]], "wd")
    model.nodes = model.nodes[:2] + model.nodes[-2:] + model.nodes[2:-2]
    del model.constants["w"]
    model.inputs.append(("v", FLOAT, weights.shape))
    fed = model.finish()
    model.constants["v"] = weights
    ours = require_same(model.finish())
    with pytest.raises(InputError, match=r"'v'.*initializer"):
        ours.run(None, draw(ours) | {"v": weights})
    model = InferenceSession(fed, "base")
    feed = draw(ours) | {"v": weights}
    np.testing.assert_array_equal(model.run(None, feed)[0], onnx_session(fed).run(None, feed)[0])


def half_model(quantised):
    """Return x * w of float16, or its quantised form: scales of float16 as of opset 19."""
    rng = np.random.default_rng(2)
    constants = {"w": rng.normal(size=(4, 3, 3, 3)).astype(np.float16)}
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    if quantised:
        constants |= {"s": np.float16(0.03), "t": np.float16(0.25), "z": np.int8(0),
                      "w": rng.integers(-40, 41, (4, 3, 3, 3)).astype(np.int8)}
        nodes = [helper.make_node(*each) for each in (
            ("QuantizeLinear", ["x", "s", "z"], ["xq"]), ("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
            ("DequantizeLinear", ["w", "s", "z"], ["wd"]), ("Conv", ["xd", "wd"], ["conv"]),
            ("QuantizeLinear", ["conv", "t", "z"], ["q"]), ("DequantizeLinear", ["q", "t", "z"], ["y"]))]
    graph = helper.make_graph(nodes, "half", [helper.make_tensor_value_info("x", TensorProto.FLOAT16, X)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT16, Y)],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9).SerializeToString()


@pytest.mark.filterwarnings(NOT_IN_FLOAT)
@pytest.mark.parametrize("quantised", [False, True])
def test_half_floats_stay_half_floats(quantised):
    ours = require_same(half_model(quantised), near=0.02 if not quantised else 0.25)
    assert [each.type for each in ours.get_inputs() + ours.get_outputs()] == ["tensor(float16)"] * 2
    with pytest.raises(InputError, match=r"'x'.*float16.*float32"):
        ours.run(None, {"x": np.zeros(X, np.float32)})


@pytest.mark.filterwarnings(NOT_IN_FLOAT)
def test_an_input_may_be_a_number(tmp_path):
    graph = helper.make_graph([helper.make_node("Mul", ["x", "two"], ["y"])], "number",
                              [helper.make_tensor_value_info("x", FLOAT, ())],
                              [helper.make_tensor_value_info("y", FLOAT, ())],
                              [numpy_helper.from_array(np.float32(2), "two")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    ours = require_same(model.SerializeToString())
    assert ours.run(None, {"x": 1.5}) == [3.0]
    onnx.save(model, tmp_path / "number.onnx")
    source = find_model(str(tmp_path / "number.onnx"), Silence())
    assert run_model(source, PRESETS["nano"], "fast", None).comparison.compared


def test_half_floats_are_compared_and_quantised(tmp_path):
    (tmp_path / "half.onnx").write_bytes(half_model(quantised=False))
    source = find_model(str(tmp_path / "half.onnx"), Silence())
    compared = run_model(source, PRESETS["nano"], "fast", None)
    assert compared.comparison.matches
    assert [value.dtype for value in compared.outputs.values()] == [np.float16]
    assert compared.report.core_cycles == 0
