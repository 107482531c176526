"""Tilewright as an ONNX backend: models and nodes, inputs in every form, and what it says to wrong ones."""

import re

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.support.onnx_models import ModelBuilder
from tilewright import backend
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.errors import InputError
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session

RNG = np.random.default_rng(8)
X = RNG.standard_normal((1, 3, 6, 6)).astype(np.float32)


def value(name, dtype=TensorProto.FLOAT, shape=(1, 3, 6, 6)):
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(node, inputs, output, constants=None):
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    return helper.make_model(helper.make_graph([node], "net", inputs, [output], tensors), ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


RELU = model_of(helper.make_node("Relu", ["x"], ["y"]), [value("x")], value("y"))


@pytest.mark.parametrize("inputs", [[X], (X,), {"x": X}, X])
def test_a_model_takes_inputs_in_every_form(inputs):
    (result,) = backend.run_model(RELU, inputs)
    np.testing.assert_array_equal(result, np.maximum(X, 0))


def quantised() -> ModelProto:
    builder = ModelBuilder("qdq", seed=1)
    return ModelProto.FromString(builder.finish(builder.conv(builder.input((1, 3, 8, 8)), 4)))


def test_a_quantised_model_runs_on_the_datapath():
    model = quantised()
    session = onnx_session(model.SerializeToString())
    (argument,) = session.get_inputs()
    x = RNG.standard_normal(argument.shape).astype(np.float32)
    prepared = backend.prepare(model, machine="nano")
    for ours, theirs in zip(prepared.run([x]), session.run(None, {argument.name: x}), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert [layer.kind for layer in prepared.report.layers] == ["conv"]
    assert (prepared.report.machine, prepared.report.engine) == ("nano", "fast")


def test_a_node_runs():
    node = helper.make_node("Add", ["a", "b"], ["c"])
    a, b = X, RNG.standard_normal((3, 1, 1)).astype(np.float32)
    np.testing.assert_array_equal(backend.run_node(node, [a, b])[0], a + b)
    np.testing.assert_array_equal(backend.run_node(node, [a, b], opset_version=13)[0], a + b)
    twice = helper.make_node("Mul", ["a", "a"], ["c"])
    np.testing.assert_array_equal(backend.run_node(twice, [a])[0], a * a)


def test_inputs_that_fix_shapes_may_change():
    node = helper.make_node("Slice", ["x", "starts", "ends", "axes"], ["y"])
    ints = [value(name, TensorProto.INT64, (1,)) for name in ("starts", "ends", "axes")]
    prepared = backend.prepare(model_of(node, [value("x"), *ints], value("y", shape=(1, 3, None, 6))))
    for start, end in ((0, 2), (0, 2), (1, 6)):
        (result,) = prepared.run([X, np.array([start]), np.array([end]), np.array([2])])
        np.testing.assert_array_equal(result, X[:, :, start:end])


def test_inputs_with_a_default_need_not_be_given():
    add = model_of(helper.make_node("Add", ["x", "b"], ["y"]), [value("x"), value("b")], value("y"), {"b": X})
    np.testing.assert_array_equal(backend.run_model(add, [X])[0], X + X)


def test_what_cannot_be_compiled_is_refused():
    det = model_of(helper.make_node("Det", ["x"], ["y"], "first"), [value("x")], value("y", shape=(1, 3)))
    assert backend.is_compatible(RELU)
    assert not backend.is_compatible(det)
    assert not backend.is_compatible(RELU, "CUDA")
    assert not backend.is_compatible(ModelProto())
    with pytest.raises(UnsupportedNodeError, match=r"^Node 'first' \(Det\) is not supported: "):
        backend.prepare(det)


def test_devices():
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda: backend.prepare(RELU, "CUDA"), "Device must be CPU, not 'CUDA'"),
    (lambda: backend.prepare(RELU, colour=1), "Options must be of machine, engine, not colour"),
    (lambda: backend.prepare(RELU, machine="huge"), ("Machine must be one of nano, base, large, "
     "base_depthwise, large_depthwise, base_integer, a design file (.toml), or one of these with changes, such as "
     "base,lanes=8, not 'huge'")),
    (lambda: backend.run_model(RELU, []), "Inputs must be 1 (x), not 0"),
    (lambda: backend.run_model(RELU, {"y": X}), "Inputs must be x, not y"),
    (lambda: backend.run_model(RELU, [X.astype(np.float64)]),
     "Input 'x' must be float32 of shape (1, 3, 6, 6), not float64 of shape (1, 3, 6, 6)"),
    (lambda: backend.prepare(RELU).run([X], fast=True), "Run must have no options, not fast"),
    (lambda: backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [X, X]), "Inputs must be 1 (x), not 2"),
])
def test_wrong_use_is_told_in_a_sentence(call, sentence):
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        call()
