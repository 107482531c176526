"""float16 and bfloat16 are read as float32, value by value, and the model's notes say so."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.onnx.half_floats import has_half_floats, widen
from tilewright.compiler.onnx.reader import load, read_model
from tilewright.compiler.onnx.reading_notes import notes_of

DTYPES = {TensorProto.FLOAT16: np.float16, TensorProto.BFLOAT16: ml_dtypes.bfloat16}


def half(kind: int) -> onnx.ModelProto:
    """Return a model whose input, weights, Constant, output and inner types are of a half float, between two Casts."""
    weights = np.linspace(-1, 1, 8 * 3).reshape(8, 3, 1, 1).astype(DTYPES[kind])
    one = numpy_helper.from_array(np.array([0.5], DTYPES[kind]), "half")
    nodes = [helper.make_node("Cast", ["x"], ["low"], "cast", to=kind),
             helper.make_node("Conv", ["low", "w"], ["y"], "conv"),
             helper.make_node("Constant", [], ["c"], "constant", value=one),
             helper.make_node("Mul", ["y", "c"], ["z"], "mul"),
             helper.make_node("Cast", ["z"], ["out"], "back", to=TensorProto.FLOAT)]
    graph = helper.make_graph(
        nodes, "half", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 8, 4, 4]),
         helper.make_tensor_value_info("z", kind, [1, 8, 4, 4])],
        [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("kind", DTYPES)
def test_every_half_float_becomes_a_float32_of_the_same_value(kind):
    model = half(kind)
    before = numpy_helper.to_array(model.graph.initializer[0]).astype(np.float32)
    assert has_half_floats(model)
    assert len(widen(model)) == 1
    assert not has_half_floats(model)
    after = numpy_helper.to_array(model.graph.initializer[0])
    assert after.dtype == np.float32
    np.testing.assert_array_equal(after, before)
    assert {value.type.tensor_type.elem_type for value in model.graph.output} == {TensorProto.FLOAT}
    assert "Cast" not in {node.op_type for node in model.graph.node if node.name == "cast"}
    assert widen(model) == set()
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize("kind", DTYPES)
def test_the_reader_widens_and_notes_it(kind):
    content = half(kind).SerializeToString()
    assert len(notes_of(read_model(content))) == 1
    graph = load(content)
    assert {tensor.dtype for tensor in graph.tensors.values()} == {"float32"}


def test_a_model_without_half_floats_has_no_note():
    model = half(TensorProto.FLOAT16)
    widen(model)
    assert notes_of(read_model(model.SerializeToString())) == ()


def test_constants_of_inner_graphs_are_widened():
    model = half(TensorProto.FLOAT16)
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["value"], value=numpy_helper.from_array(np.zeros(2, np.float16)))],
        "branch", [], [helper.make_tensor_value_info("value", TensorProto.FLOAT16, [2])])
    model.graph.node.append(helper.make_node("If", ["x"], ["q"], then_branch=inner, else_branch=inner))
    widen(model)
    assert not has_half_floats(model)
