"""Operators that hand on what they read are not there, and bounds and Transposes are as few as they can be."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import normalise

_PAIR = ["QuantizeLinear", "DequantizeLinear"]
_SHAPE = (1, 4, 6, 6)


def _sizes(*values):
    return np.array(values, np.int64)


def _between(nodes, constants=None, opset=21):
    """Return a model of ``nodes`` from ``a`` to ``b``, a pair before them and another behind."""
    pairs = [node("QuantizeLinear", ["x", "s", "z"], "xq"), node("DequantizeLinear", ["xq", "s", "z"], "a"), *nodes,
             node("QuantizeLinear", ["b", "e", "z"], "yq"), node("DequantizeLinear", ["yq", "e", "z"], "y")]
    return model(pairs, {"s": scalar(.02), "e": scalar(.03), "z": zero(3), **(constants or {})}, _SHAPE, opset=opset)


def _left(nodes, constants=None, opset=21):
    """Return the operators that the normal form leaves of ``nodes``, once values are known to be the same."""
    proto = _between(nodes, constants, opset)
    form = normalise(proto)
    assert list(faults(form.proto)) == []
    for before, after in zip(computed(proto), computed(form.proto), strict=True):
        np.testing.assert_array_equal(before, after)
    assert normalise(form.proto).counts == {}
    made = operators(form.proto)
    assert (made[:2], made[-2:]) == (_PAIR, _PAIR)
    return made[2:-2]


def test_a_squeeze_undoes_an_unsqueeze_through_levels_of_the_same_parameters():
    between = [node("QuantizeLinear", ["n", "s", "z"], "nq"), node("DequantizeLinear", ["nq", "s", "z"], "m")]
    views = node("Unsqueeze", ["a", "axis"], "n"), node("Squeeze", ["m", "axis"], "b")
    assert _left([views[0], *between, views[1]], {"axis": _sizes(1)}) == []


def test_levels_of_another_scale_between_moves_stay():
    moves = [node("Transpose", ["a"], "n", perm=[0, 2, 3, 1]), node("QuantizeLinear", ["n", "f", "z"], "nq"),
             node("DequantizeLinear", ["nq", "f", "z"], "m"), node("Transpose", ["m"], "b", perm=[0, 3, 1, 2])]
    assert _PAIR[0] in _left(moves, {"f": scalar(.05)})


def _split(sizes, parts, joined, axis=2):
    cut = helper.make_node("Split", ["a", "sizes"], ["p0", "p1"], "cut", axis=1)
    return [cut, node("Concat", joined, "b", axis=axis)], {"sizes": _sizes(*sizes)}


@pytest.mark.parametrize(("nodes", "constants"), [
    ([node("Neg", ["a"], "n"), node("Neg", ["n"], "b")], {}),
    ([node("Cast", ["a"], "n", to=TensorProto.DOUBLE), node("Cast", ["n"], "b", to=TensorProto.FLOAT)], {}),
    ([node("Where", ["m", "a", "o"], "b")], {"m": np.ones((1, 1, 1, 1), np.bool_), "o": np.float32(7)}),
    ([node("Where", ["m", "o", "a"], "b")], {"m": np.asarray(False), "o": np.zeros((1, 4, 1, 1), np.float32)}),
    ([node("Slice", ["a", "from", "to", "axis"], "b")], {"from": _sizes(0), "to": _sizes(2**31), "axis": _sizes(2)}),
    ([node("Slice", ["a", "from", "to", "axis"], "b")], {"from": _sizes(0), "to": _sizes(6), "axis": _sizes(2)}),
    ([node("Gather", ["a", "all"], "b", axis=2)], {"all": _sizes(*range(6))}),
    ([node("Pad", ["a", "none"], "b")], {"none": np.zeros(8, np.int64)}),
    ([node("Tile", ["a", "once"], "b")], {"once": np.ones(4, np.int64)}),
    ([node("Unsqueeze", ["a", "axis"], "n"), node("Squeeze", ["n", "axis"], "b")], {"axis": _sizes(1)}),
    ([node("Reshape", ["a", "line"], "n"), node("Reshape", ["n", "back"], "b")],
     {"line": _sizes(-1), "back": _sizes(*_SHAPE)}),
    *(([node(op, ["a"], "b")], {}) for op in ("Max", "Mean", "Min", "Sum")),
    ([node("Pow", ["a", "one"], "b")], {"one": np.float32(1)}),
    ([node("Cast", ["wide"], "one", to=TensorProto.FLOAT), node("Pow", ["a", "one"], "b")], {"wide": np.float64(1)}),
    ([node("Concat", ["none", "a", "none"], "b", axis=1)], {"none": np.zeros((1, 0, 6, 6), np.float32)}),
    ([node("BatchNormalization", ["a", "one", "none", "none", "one"], "b", epsilon=0.0)],
     {"one": np.ones(4, np.float32), "none": np.zeros(4, np.float32)}),
    ([node("Pow", ["a", "one"], "b")], {"one": np.asarray(1, np.int64)}),
    _split((1, 3), 2, ["p0", "p1"], 1),
    ([node("MaxPool", ["a"], "b", kernel_shape=[1, 1])], {}),
    ([node("AveragePool", ["a"], "b", kernel_shape=[1, 1], strides=[1, 1], pads=[0] * 4)], {}),
], ids=lambda given: given[0].op_type if isinstance(given, list) else "")
def test_what_hands_on_all_that_it_reads_is_not_there(nodes, constants):
    assert _left(nodes, constants) == []


@pytest.mark.parametrize("axis", [1, -3])
def test_of_concats_in_a_row_there_is_one(axis):
    joined = [node("Relu", ["a"], "r"), node("Concat", ["a", "r"], "j", axis=1),
              node("Concat", ["r", "j", "a"], "b", axis=axis)]
    assert _left(joined).count("Concat") == 1


def test_a_concat_that_something_else_reads_or_of_another_axis_stays():
    others = [node("Relu", ["a"], "r"), node("Concat", ["a", "r"], "j", axis=1), node("Relu", ["j"], "k"),
              node("Concat", ["j", "k"], "b", axis=1)]
    assert _left(others).count("Concat") == 2
    turned = [node("Relu", ["a"], "r"), node("Concat", ["a", "r"], "j", axis=2),
              node("Concat", ["j", "j"], "b", axis=1)]
    assert _left(turned).count("Concat") == 2


def test_a_pooling_of_every_other_element_stays():
    assert _left([node("MaxPool", ["a"], "b", kernel_shape=[1, 1], strides=[2, 2])])[:1] == ["MaxPool"]


@pytest.mark.parametrize(("nodes", "constants", "left"), [
    ([node("Where", ["m", "a", "o"], "b")],
     {"m": np.asarray(True), "o": np.zeros((3, 1, 1, 1), np.float32)}, ["Mul"]),
    ([node("Slice", ["a", "from", "to", "axis"], "b")],
     {"from": _sizes(0), "to": _sizes(5), "axis": _sizes(2)}, ["Slice"]),
    ([node("Gather", ["a", "some"], "b", axis=2)], {"some": _sizes(0, 1, 2)}, ["Gather"]),
    ([node("Unsqueeze", ["a", "axis"], "n"), node("Squeeze", ["n", "other"], "b")],
     {"axis": _sizes(1), "other": _sizes(0)}, ["Unsqueeze", "Squeeze"]),
    (*_split((2, 2), 2, ["p1", "p0"], 1), ["Split", "Concat"]),
    (*_split((2, 2), 2, ["p0", "p1"], 2), ["Split", "Concat"]),
], ids=lambda given: given[0].op_type if isinstance(given, list) and given and not isinstance(given[0], str) else "")
def test_what_chooses_some_of_it_stays(nodes, constants, left):
    assert [each for each in _left(nodes, constants) if each not in _PAIR] == left


_ENDS = {"low": np.float32(-.5), "high": np.float32(1.5), "none": np.float32(0), "near": np.float32(.25)}


@pytest.mark.parametrize(("nodes", "left"), [
    ([node("Max", ["low", "a"], "n"), node("Min", ["n", "high"], "b")], ["Clip"]),
    ([node("Clip", ["a", "low", "high"], "n"), node("Relu", ["n"], "b")], ["Clip"]),
    ([node("Relu", ["a"], "n"), node("Clip", ["n", "", "near"], "b")], ["Clip"]),
    ([node("Clip", ["a", "low"], "n"), node("Max", ["n", "none"], "b")], ["Relu"]),
    ([node("Clip", ["a", "near", "high"], "n"), node("Min", ["n", "low"], "b")], ["Clip"]),
    ([node("LeakyRelu", ["a"], "b", alpha=0.0)], ["Relu"]),
    ([node("LeakyRelu", ["a"], "b", alpha=0.5)], ["LeakyRelu"]),
    ([node("PRelu", ["a", "none"], "b")], ["Relu"]),
    ([node("PRelu", ["a", "near"], "b")], ["PRelu"]),
    *(([node(op, sides, "m"), node("Where", ["m", *taken], "b")], left) for op, sides, taken, left in (
        ("Greater", ["a", "none"], ["a", "none"], ["Relu"]), ("LessOrEqual", ["a", "none"], ["none", "a"], ["Relu"]),
        ("GreaterOrEqual", ["near", "a"], ["near", "a"], ["Clip"]), ("Less", ["near", "a"], ["near", "a"], ["Clip"]),
        ("Less", ["a", "near"], ["near", "a"], ["Clip"]),
        ("Greater", ["a", "near"], ["a", "low"], ["Greater", "Where"]),
        ("Greater", ["low", "near"], ["a", "near"], ["Greater", "Where"]))),
])
def test_bounds_are_one_operator(nodes, left):
    used = {name for each in nodes for name in each.input}
    assert _left(nodes, {key: each for key, each in _ENDS.items() if key in used}) == left


@pytest.mark.parametrize(("nodes", "left"), [
    ([node("Max", ["xq", "none"], "b")], ["Relu"]),
    ([node("Max", ["low", "xq"], "n"), node("Min", ["n", "high"], "b")], ["Clip"]),
    ([node("Greater", ["xq", "none"], "m"), node("Where", ["m", "xq", "none"], "b")], ["Relu"]),
    ([node("Clip", ["xq", "low"], "n"), node("Relu", ["n"], "b")], ["Relu"]),
])
def test_bounds_of_levels_are_one_operator(nodes, left):
    used = {name for each in nodes for name in each.input}
    ends = {name: zero(each) for name, each in (("low", -40), ("none", 0), ("high", 40)) if name in used}
    pair = node("QuantizeLinear", ["x", "s", "z"], "xq"), node("DequantizeLinear", ["b", "s", "z"], "y")
    proto = model([pair[0], *nodes, pair[1]], {"s": scalar(.02), "z": zero(3), **ends})
    form = normalise(proto)
    assert list(faults(form.proto)) == []
    assert operators(form.proto) == [_PAIR[0], *left, _PAIR[1]]
    np.testing.assert_array_equal(computed(form.proto)[0], computed(proto)[0])


@pytest.mark.parametrize(("nodes", "left"), [
    ([node("Div", ["a", "two"], "n"), node("Mul", ["n", "two"], "b")], []),
    ([node("Div", ["a", "two"], "n"), node("Mul", ["eight", "n"], "b")], ["Mul"]),
    ([node("Mul", ["a", "eight"], "n"), node("Div", ["n", "two"], "b")], ["Mul", "Div"]),
    ([node("Div", ["a", "two"], "n"), node("Mul", ["n", "two"], "m"), node("Sub", ["n", "m"], "b")],
     ["Div", "Mul", "Sub"]),
], ids=["there and back", "further", "first larger", "read twice"])
def test_of_two_powers_of_two_in_a_row_there_is_one(nodes, left):
    used = {name for each in nodes for name in each.input}
    assert _left(nodes, {name: np.float32(each) for name, each in (("two", 2), ("eight", 8)) if name in used}) == left


def test_sizes_that_are_computed_tell_the_shape_of_what_is_chosen():
    cut, join = _split((1, 3), 2, ["p1", "p0"], 1)[0]
    join.output[0] = join.name = "j"
    constants = {"one": _sizes(1), "three": _sizes(3), "m": np.ones((1, 1, 1, 1), np.bool_),
                 "o": np.zeros((1, 1, 1, 1), np.float32)}
    made = _left([node("Concat", ["one", "three"], "sizes", axis=0), cut, join, node("Where", ["m", "j", "o"], "b")],
                 constants)
    assert [each for each in made if each not in _PAIR] == ["Split", "Concat"]


@pytest.mark.filterwarnings("error")
def test_a_bound_that_no_scale_divides_is_beyond_all_levels():
    nodes = [node("Clip", ["a", "least"], "c"), node("MaxPool", ["c"], "p", kernel_shape=[1, 1]),
             node("Relu", ["p"], "r"), node("Add", ["r", "c"], "b")]
    assert "Clip" in _left(nodes, {"least": np.finfo(np.float32).min})


def test_bounds_before_opset_11_are_attributes():
    low = {"low": np.float32(-.5)}
    made = normalise(model([node("Max", ["x", "low"], "b"), node("QuantizeLinear", ["b", "s", "z"], "yq"),
                            node("DequantizeLinear", ["yq", "s", "z"], "y")],
                           {"s": scalar(.02), "z": zero(0), **low}, opset=10)).proto
    clip = next(each for each in made.graph.node if each.op_type == "Clip")
    assert {each.name: each.f for each in clip.attribute} == {"min": -.5}


@pytest.mark.parametrize("nodes", [
    [node("Transpose", ["a"], "t", perm=[0, 2, 3, 1]), node("Sigmoid", ["t"], "f"),
     node("Transpose", ["f"], "b", perm=[0, 3, 1, 2])],
    [node("Relu", ["a"], "r"), node("Transpose", ["a"], "t", perm=[0, 2, 3, 1]),
     node("Transpose", ["r"], "u", perm=[0, 2, 3, 1]), node("Mul", ["t", "u"], "m"), node("Sub", ["m", "half"], "f"),
     node("Transpose", ["f"], "b", perm=[0, 3, 1, 2])],
], ids=["of one", "of two"])
def test_transposes_around_functions_and_arithmetic_are_not_there(nodes):
    assert "Transpose" not in _left(nodes, {"half": np.float32(.5)} if len(nodes) > 3 else {})


@pytest.mark.parametrize(("amounts", "value", "left"), [
    ((0, 0, 1, 2, 0, 0, 3, 0), None, ["Conv"]), ((0, 0, 1, 2, 0, 0, 3, 0), 0, ["Conv"]),
    ((0, 0, 1, 2, 0, 0, 3, 0), .06, ["Pad", "Conv"]), ((0, 0, 1, 2, 0, 0, -1, 0), 0, ["Pad", "Conv"])])
def test_a_pad_of_zeros_before_a_conv_is_its_own(amounts, value, left):
    constants = {"amounts": _sizes(*amounts), "w": np.arange(-72, 72).astype(np.int8).reshape(4, 4, 3, 3),
                 "n": zero(0)}
    end = [] if value is None else ["value"]
    if end:
        constants["value"] = np.float32(value)
    nodes = [node("Pad", ["a", "amounts", *end], "p"), node("DequantizeLinear", ["w", "s", "n"], "v"),
             node("Conv", ["p", "v"], "b", pads=[1, 0, 1, 1])]
    made = [each for each in _left(nodes, constants) if each not in _PAIR]
    assert made == left


def test_transposes_around_an_output_of_the_model_are_not_there():
    nodes = [node("Transpose", ["a"], "t", perm=[0, 2, 3, 1]), node("Tanh", ["t"], "f"),
             node("Transpose", ["f"], "y", perm=[0, 3, 1, 2])]
    proto = model([node("QuantizeLinear", ["x", "s", "z"], "xq"), node("DequantizeLinear", ["xq", "s", "z"], "a"),
                   *nodes], {"s": scalar(.02), "z": zero(3)})
    made = normalise(proto).proto
    assert operators(made) == [*_PAIR, "Tanh"]
    assert [each.name for each in made.graph.output] == ["y"]
    np.testing.assert_array_equal(computed(made)[0], computed(proto)[0])


@pytest.mark.parametrize(("numbers", "left"), [((-.5, -.25, -1, -2), ["Add"]), ((-.5, .25, -1, -2), ["Sub"])])
def test_negative_numbers_are_added_not_taken_away(numbers, left):
    constants = {"c": np.float32(numbers).reshape(1, 4, 1, 1)}
    assert _left([node("Sub", ["a", "c"], "b")], constants) == left
