"""Operators of ONNX are classes; attributes stay as the model has them, and have types and defaults."""

import pytest

from tilewright.compiler.graph.integer_operators import ExactWindow, QAverage, QConv, WindowAsRead
from tilewright.compiler.graph.onnx_names import COMPUTED_IN_TABLES, RECOGNISED, onnx_operator
from tilewright.compiler.graph.onnx_operators import (
    OnnxBinary,
    OnnxClip,
    OnnxConv,
    OnnxGather,
    OnnxGelu,
    OnnxOperator,
    OnnxPow,
    OnnxReduction,
    OnnxUnary,
)


@pytest.mark.parametrize(("name", "kind"), [
    ("Conv", OnnxConv), ("Clip", OnnxClip), ("Sigmoid", OnnxUnary), ("Min", OnnxBinary), ("Pow", OnnxPow),
    ("ReduceMin", OnnxReduction), ("Gather", OnnxGather), ("LSTM", OnnxOperator), ("Unary", OnnxOperator)])
def test_every_operator_has_a_class_and_keeps_its_name(name, kind):
    operator = onnx_operator(name, {"a": 1})
    assert (type(operator), operator.name, operator.attributes) == (kind, name, {"a": 1})


def test_those_that_passes_recognise_have_classes():
    general = {name for name in RECOGNISED if type(onnx_operator(name, {})) is OnnxOperator}
    assert general == {"Split"}     # which the reader replaces
    assert all(isinstance(onnx_operator(name, {}), OnnxUnary | OnnxBinary) for name in COMPUTED_IN_TABLES)


def test_absent_attributes_have_the_defaults_of_onnx():
    conv = OnnxConv({"strides": (2, 2), "group": 4})
    assert (conv.group, conv.auto_pad, conv.kernel_shape) == (4, "NOTSET", None)
    assert conv.window == WindowAsRead(strides=(2, 2))
    assert conv.with_attributes(group=1).attributes == {"strides": (2, 2), "group": 1}
    assert conv.group == 4


def test_gelu_is_of_another_operator_set_in_older_models():
    assert [OnnxGelu().domain(opset) for opset in (17, 20)] == ["com.microsoft", ""]


def test_a_window_must_be_exact_before_it_is_built():
    assert QConv(window=ExactWindow(kernel=(3, 3))).exact_window.kernel == (3, 3)
    with pytest.raises(TypeError, match="QAverage"):
        _ = QAverage().exact_window
