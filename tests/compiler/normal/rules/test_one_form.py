"""Passes see one form: integer operators are operators on floats between levels, whatever the file has."""

import numpy as np
import pytest

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tests.fuzz.quantised import QuantiserError
from tests.fuzz.run import CORPUS, graph_of
from tests.support.exactness import assert_layers
from tilewright.compiler.errors import CompileError
from tilewright.compiler.graph.onnx_operators import OnnxDequantizeLinear, OnnxQuantizeLinear
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import normalise, without_integer_operators
from tilewright.compiler.onnx.reader import load

_RNG = np.random.default_rng(3)
_BASE = {"xs": scalar(.02), "xz": zero(3), "ys": scalar(.05), "yz": zero(-4), "ws": scalar(.01), "wz": zero(0)}
_FORMS = ("qoperator", "lines qoperator", "qdq", "apart qdq", "mixed qdq", "branches qdq")


def _integer(op, inputs, constants=None, domain="com.microsoft", shape=(1, 4, 6, 6), **attributes):
    """Return a model of one integer operator between a Q and a DQ; ``inputs`` follow its first three."""
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"),
             node(op, ["xq", "xs", "xz", *inputs], "a", domain=domain, **attributes),
             node("DequantizeLinear", ["a", "ys", "yz"], "y")]
    return model(nodes, {**_BASE, **(constants or {})}, shape)


_WEIGHTS = {"w": _RNG.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8), "b": np.arange(8, dtype=np.int32) * 300}
_MATRIX = {"w": _RNG.integers(-127, 128, (24, 5)).astype(np.int8), "b": np.arange(5, dtype=np.int32) * 300}
_W, _Y = ["w", "ws", "wz"], ["ys", "yz"]
_INTEGER = {
    "QLinearConv": _integer("QLinearConv", [*_W, *_Y, "b"], _WEIGHTS, ""),
    "QLinearMatMul": _integer("QLinearMatMul", [*_W, *_Y], _MATRIX, "", (1, 24)),
    "QGemm": _integer("QGemm", [*_W, "b", *_Y], _MATRIX, shape=(1, 24)),
    "QLinearAdd": _integer("QLinearAdd", ["xq", "xs", "xz", *_Y]),
    "QLinearMul": _integer("QLinearMul", ["xq", "xs", "xz", *_Y]),
    "QLinearSigmoid": _integer("QLinearSigmoid", _Y),
    "QLinearLeakyRelu": _integer("QLinearLeakyRelu", _Y, alpha=.1),
    "QLinearGlobalAveragePool": _integer("QLinearGlobalAveragePool", _Y),
    "QLinearAveragePool": _integer("QLinearAveragePool", _Y, kernel_shape=[3, 3]),
    "QLinearSoftmax": _integer("QLinearSoftmax", _Y, axis=3, opset=21),
}


@pytest.mark.parametrize("op", _INTEGER)
def test_an_integer_operator_is_one_on_floats(op):
    proto = _INTEGER[op]
    made = without_integer_operators(proto)
    assert op not in operators(made)
    assert list(faults(made)) == []
    found, expected = computed(made)[0], computed(proto)[0]
    assert np.abs(found - expected).max() <= .0501      # unfused, sums are rounded in float
    assert next(each.name for each in made.graph.node if each.op_type == op.removeprefix("QLinear").removeprefix(
        "Q")) == "a"
    assert_layers(proto.SerializeToString())


def test_a_product_of_floats_may_end_in_one():
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"),
             node("QGemm", ["xq", "xs", "xz", *_W, "b"], "y", domain="com.microsoft")]
    made = without_integer_operators(model(nodes, {**_BASE, **_MATRIX}, (1, 24)))
    assert operators(made) == ["QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "DequantizeLinear", "Gemm"]


def test_products_of_two_computed_tensors_stay():
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"), node("Transpose", ["xq"], "t", perm=[0, 1, 3, 2]),
             node("QLinearMatMul", ["xq", "xs", "xz", "t", "xs", "xz", *_Y], "a"),
             node("DequantizeLinear", ["a", *_Y], "y")]
    assert "QLinearMatMul" in operators(without_integer_operators(model(nodes, _BASE)))


def test_a_softmax_of_another_meaning_stays():
    proto = _integer("QLinearSoftmax", _Y, axis=1, opset=11)
    assert "QLinearSoftmax" in operators(without_integer_operators(proto))


def test_a_constant_beside_levels_is_quantised_once():
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"), node("DequantizeLinear", ["xq", "xs", "xz"], "xd"),
             node("DequantizeLinear", ["k", "ws", "wz"], "kd"), node("Concat", ["xd", "kd"], "c", axis=1),
             node("QuantizeLinear", ["c", *_Y], "cq"), node("DequantizeLinear", ["cq", *_Y], "y")]
    held = {**_BASE, "k": _RNG.integers(-127, 128, (1, 2, 6, 6)).astype(np.int8)}
    form = normalise(model(nodes, held))
    assert sum(form.counts.values()) <= 4
    constants = {tensor.name for tensor in form.proto.graph.initializer}
    assert [each.op_type for each in form.proto.graph.node if each.input[0] in constants] == ["DequantizeLinear"]


_SOURCES = [*sorted(CORPUS.glob("*.onnx")), *(f"{form}/{number}" for form in _FORMS for number in range(6))]


@pytest.mark.parametrize("source", _SOURCES, ids=lambda each: getattr(each, "name", each))
def test_passes_find_no_second_form(source):
    """What FoldQuantize, ExpandQLinear, QuantiseInputs and others looked for before there was a normal form."""
    if isinstance(source, str):
        form, _, number = source.rpartition("/")
        try:
            source = graph_of(90_000_000 + int(number), form).model.SerializeToString()
        except QuantiserError:
            pytest.skip("no graph")
    try:
        graph = load(source)
    except CompileError:
        pytest.skip("refused")
    for each in graph.nodes:
        assert each.op not in _INTEGER.keys() - {"QLinearConv", "QLinearMatMul"}
        if isinstance(each.operator, OnnxQuantizeLinear):
            assert each.inputs[0] not in graph.constants
            maker = graph.producer(each.inputs[0])
            assert maker is None or not isinstance(maker.operator, OnnxDequantizeLinear) \
                or not graph.all_constant(maker.inputs)
