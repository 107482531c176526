"""Each rule of the normal form: what it makes of a graph, that ONNX Runtime computes the same of both, what stays."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tilewright.compiler import normal_form_page
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import RULES, normalise

_RNG = np.random.default_rng(7)
_LEVELS = _RNG.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8)
_CHANNELS = _RNG.uniform(.002, .01, 8).astype(np.float32)
_BASE = {"xs": scalar(.02), "xz": zero(3), "ys": scalar(.05), "yz": zero(-4), "ws": _CHANNELS,
         "wz": np.zeros(8, np.int8)}


def _checked(proto, *rules):
    """Return the normal form, which must have been made by ``rules``, be legal, and compute the same."""
    form = normalise(proto)
    assert set(form.counts) == set(rules)
    onnx.checker.check_model(onnx.shape_inference.infer_shapes(form.proto, strict_mode=True))
    assert list(faults(form.proto)) == []
    for before, after in zip(computed(proto), computed(form.proto), strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)
        assert len(np.unique(before)) > 6
    assert [each.name for each in form.proto.graph.output] == [each.name for each in proto.graph.output]
    assert normalise(form.proto).counts == {}
    return form


def _conv(weights, before=(), after=(), constants=None, **kwargs):
    """Return Q -> DQ -> Conv by ``weights`` -> Q -> DQ, with nodes before and behind."""
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"), node("DequantizeLinear", ["xq", "xs", "xz"], "xd"),
             *before, node("Conv", ["xd", weights], "c"), *after,
             node("QuantizeLinear", ["c", "ys", "yz"], "yq"), node("DequantizeLinear", ["yq", "ys", "yz"], "y")]
    return model(nodes, {**_BASE, **(constants or {})}, **kwargs)


_DQ = node("DequantizeLinear", ["w", "ws", "wz"], "wd", axis=0)


def test_a_plain_model_is_itself():
    proto = _conv("wd", [_DQ], constants={"w": _LEVELS})
    form = normalise(proto)
    assert form.proto is proto
    assert form.counts == {}


def test_a_float_model_is_itself():
    proto = model([node("Identity", ["x"], "i"), node("Relu", ["i"], "y")], {})
    assert normalise(proto).proto is proto


def test_the_domain_of_onnx_runtime_is_onnx():
    proto = _conv("wd", [_DQ], constants={"w": _LEVELS})
    for each in proto.graph.node:
        if each.op_type != "Conv":
            each.domain = "com.microsoft"
    form = _checked(proto, "domains")
    assert {each.domain for each in form.proto.graph.node} == {""}


def test_a_scale_of_one_element_is_a_scalar_and_a_zero_point_is_stated():
    proto = _conv("wd", [_DQ], constants={"w": _LEVELS, "xs": np.array([.02], np.float32), "xz": zero(3).reshape(1)})
    _checked(proto, "plain")
    proto = model([node("QuantizeLinear", ["x", "xs"], "q"), node("DequantizeLinear", ["q", "xs"], "y")], _BASE)
    form = _checked(proto, "plain")
    assert all(len(each.input) == 3 for each in form.proto.graph.node)


@pytest.mark.parametrize("turn", [(1, 0, 2, 3), (2, 3, 1, 0)])
def test_transposed_weights_are_weights(turn):
    back = np.argsort(turn).tolist()
    held = {"w": np.ascontiguousarray(_LEVELS.transpose(turn))}
    before = [node("DequantizeLinear", ["w", "ws", "wz"], "wt", axis=turn.index(0)),
              node("Transpose", ["wt"], "wd", perm=back)]
    form = _checked(_conv("wd", before, constants=held), "constants")
    assert operators(form.proto).count("Transpose") == 0


def test_reshaped_weights_keep_their_scales_where_these_still_lie_along_an_axis():
    held = {"w": _LEVELS.reshape(8, 36), "shape": np.array([8, 4, 3, 3], np.int64)}
    before = [node("DequantizeLinear", ["w", "ws", "wz"], "wt", axis=0), node("Reshape", ["wt", "shape"], "wd")]
    form = _checked(_conv("wd", before, constants=held), "constants")
    assert "Reshape" not in operators(form.proto)


def test_weights_quantised_in_the_graph_are_levels():
    held = {"w": (_LEVELS * _CHANNELS.reshape(-1, 1, 1, 1) * np.float32(1.3)), "low": zero(-127), "high": zero(127)}
    before = [node("QuantizeLinear", ["w", "ws", "wz"], "wq", axis=0), node("Clip", ["wq", "low", "high"], "wc"),
              node("DequantizeLinear", ["wc", "ws", "wz"], "wd", axis=0)]
    form = _checked(_conv("wd", before, constants=held), "constants")
    assert operators(form.proto).count("QuantizeLinear") == 2
    assert "Clip" not in operators(form.proto)


def test_weights_times_a_number_that_leaves_the_lattice_are_floats():
    held = {"w": _LEVELS, "m": scalar(1.7)}
    form = normalise(_conv("wm", [_DQ, node("Mul", ["wd", "m"], "wm")], constants=held))
    np.testing.assert_array_equal(computed(form.proto)[0], computed(_conv(
        "wm", [_DQ, node("Mul", ["wd", "m"], "wm")], constants=held))[0])
    assert "Mul" not in operators(form.proto)


@pytest.mark.parametrize(("kind", "point"), [("int4", 0), ("uint4", 7), ("int2", 0)])
def test_weights_of_few_bits_are_int8_levels(kind, point):
    tensor = getattr(onnx.TensorProto, kind.upper())
    low, high = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1)}[kind]
    values = _RNG.integers(low, high + 1, (8, 4, 3, 3))
    proto = _conv("wd", [_DQ], constants={"ws": _CHANNELS * 20}, opset=25 if kind == "int2" else 21)
    del proto.graph.initializer[[each.name for each in proto.graph.initializer].index("wz")]
    proto.graph.initializer.extend([onnx.helper.make_tensor("w", tensor, values.shape, values.ravel().tolist()),
                                    onnx.helper.make_tensor("wz", tensor, (8,), [point] * 8)])
    form = normalise(proto)
    assert set(form.counts) == {"weights"}
    held = {each.name: onnx.numpy_helper.to_array(each) for each in form.proto.graph.initializer}
    (weights,) = [held[each.input[0]] for each in form.proto.graph.node
                  if each.op_type == "DequantizeLinear" and each.input[0] in held]
    np.testing.assert_array_equal(weights, values - point)
    assert weights.dtype == np.int8
    assert list(faults(form.proto)) == []


def test_weights_in_blocks_are_requantised_and_said():
    levels = _RNG.integers(-8, 8, (16, 8)).astype(np.int8)
    scales = _RNG.uniform(.01, .05, (4, 8)).astype(np.float32)
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"), node("DequantizeLinear", ["xq", "xs", "xz"], "xd"),
             node("DequantizeLinear", ["w", "b"], "wd", axis=0, block_size=4), node("MatMul", ["xd", "wd"], "c"),
             node("QuantizeLinear", ["c", "ys", "yz"], "yq"), node("DequantizeLinear", ["yq", "ys", "yz"], "y")]
    proto = model(nodes, {**_BASE, "w": levels, "b": scales}, (1, 5, 16))
    form = normalise(proto)
    assert "blocks" in form.counts
    assert "'c'" in form.notes[0]
    assert np.abs(computed(proto)[0] - computed(form.proto)[0]).max() <= 2 * .05


def test_blocks_of_equal_scales_are_no_blocks():
    levels = _RNG.integers(-8, 8, (16, 8)).astype(np.int8)
    scales = np.repeat(_RNG.uniform(.01, .05, (1, 8)).astype(np.float32), 4, axis=0)
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"), node("DequantizeLinear", ["xq", "xs", "xz"], "xd"),
             node("DequantizeLinear", ["w", "b"], "wd", axis=0, block_size=4), node("MatMul", ["xd", "wd"], "c"),
             node("QuantizeLinear", ["c", "ys", "yz"], "yq"), node("DequantizeLinear", ["yq", "ys", "yz"], "y")]
    _checked(model(nodes, {**_BASE, "w": levels, "b": scales}, (1, 5, 16)), "weights")


def test_float_weights_on_a_lattice_are_levels():
    floats = _LEVELS.astype(np.float32) * _CHANNELS.reshape(-1, 1, 1, 1)
    form = _checked(_conv("w", constants={"w": floats}), "weights")
    held = {each.name: onnx.numpy_helper.to_array(each) for each in form.proto.graph.initializer}
    assert any(each.dtype == np.int8 and each.shape == _LEVELS.shape for each in held.values())
    assert normalise(_conv("w", constants={"w": _RNG.standard_normal((8, 4, 3, 3)).astype(np.float32)})).counts == {}


def test_the_least_level_may_be_the_largest_of_a_lattice():
    levels = _LEVELS.clip(-128, 126)
    levels[:, 0, 0, 0] = -128
    form = _checked(_conv("w", constants={"w": levels.astype(np.float32) * _CHANNELS.reshape(-1, 1, 1, 1)}), "weights")
    held = {each.name: onnx.numpy_helper.to_array(each) for each in form.proto.graph.initializer}
    np.testing.assert_array_equal(next(each for each in held.values() if each.shape == levels.shape), levels)
    form = _checked(_conv("w", constants={"w": -levels.astype(np.float32) * scalar(.01)}), "weights")
    wide = next(each for each in map(onnx.numpy_helper.to_array, form.proto.graph.initializer)
                if each.shape == levels.shape)
    assert wide.dtype == np.uint8
    np.testing.assert_array_equal(wide.astype(np.int32) - wide.min(), levels.max() - levels.astype(np.int32))


def test_weights_in_blocks_are_floats_where_nothing_else_is_quantised():
    levels, scales = _RNG.integers(-8, 8, (32, 24)).astype(np.int8), _RNG.uniform(0.01, 0.1, (2, 24)).astype(np.float32)
    nodes = [node("DequantizeLinear", ["w", "ws"], "wd", axis=0, block_size=16), node("MatMul", ["x", "wd"], "y")]
    proto = model(nodes, {"w": levels, "ws": scales}, (1, 5, 32))
    form = normalise(proto)
    assert set(form.counts) == {"weights"}
    assert operators(form.proto) == ["MatMul"]
    np.testing.assert_array_equal(computed(form.proto)[0], computed(proto)[0])


def test_a_bias_with_a_scale_of_its_own_is_float():
    held = {"w": _LEVELS, "b": _RNG.integers(-900, 900, 8).astype(np.int32), "bs": (2 * scalar(.02) * _CHANNELS),
            "bz": np.zeros(8, np.int32)}
    bias = node("DequantizeLinear", ["b", "bs", "bz"], "bd", axis=0)
    proto = _conv("wd", [_DQ, bias], constants=held)
    next(each for each in proto.graph.node if each.op_type == "Conv").input.append("bd")
    _checked(proto, "biases")
    held["bs"] = scalar(.02) * _CHANNELS
    proto = _conv("wd", [_DQ, bias], constants=held)
    next(each for each in proto.graph.node if each.op_type == "Conv").input.append("bd")
    assert normalise(proto).counts == {}


@pytest.mark.parametrize(("op", "other", "attributes"), [
    ("Identity", None, {}), ("Dropout", None, {}), ("Cast", None, {"to": 1}), ("Mul", 1, {}), ("Div", 1, {}),
    ("Add", 0, {}), ("Sub", 0, {}), ("Transpose", None, {"perm": [0, 1, 2, 3]}), ("Concat", None, {"axis": 1})])
def test_what_changes_nothing_is_not_there(op, other, attributes):
    inputs = ["xd"] if other is None else ["xd", "n"]
    proto = _conv("wd", [_DQ, node(op, inputs, "same", **attributes)],
                  constants={"w": _LEVELS, **({} if other is None else {"n": scalar(other)})})
    next(each for each in proto.graph.node if each.op_type == "Conv").input[0] = "same"
    form = _checked(proto, "idle")
    assert operators(form.proto) == ["QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "Conv", "QuantizeLinear",
                                     "DequantizeLinear"]


@pytest.mark.parametrize(("op", "other"), [("Mul", 1.001), ("Add", 1e-3), ("Div", 2), ("Sub", 1)])
def test_what_changes_something_stays(op, other):
    proto = _conv("wd", [_DQ, node(op, ["xd", "n"], "same")], constants={"w": _LEVELS, "n": scalar(other)})
    next(each for each in proto.graph.node if each.op_type == "Conv").input[0] = "same"
    assert op in operators(normalise(proto).proto)


def test_an_output_of_an_identity_stays():
    proto = _conv("wd", [_DQ], constants={"w": _LEVELS}, outputs=("y", "copy"))
    proto.graph.node.append(node("Identity", ["y"], "copy"))
    assert normalise(proto).counts == {}


@pytest.mark.parametrize(("first", "second"), [(np.int8, np.uint8), (np.uint8, np.int8)])
def test_one_type_of_bytes(first, second):
    held = {"w": _LEVELS, "xz": zero(3 if first is np.int8 else 131, first),
            "yz": zero(-4 if second is np.int8 else 124, second)}
    form = _checked(_conv("wd", [_DQ], constants=held), "storage")
    assert {each.dtype for each in map(onnx.numpy_helper.to_array, form.proto.graph.initializer)} == {
        np.dtype(np.int8), np.dtype(np.float32)}


@pytest.mark.parametrize("move", ["Transpose", "MaxPool", "Reshape", "Resize"])
def test_bytes_are_relabelled_through_what_moves_them(move):
    attributes = {"Transpose": {"perm": [0, 1, 3, 2]},
                  "MaxPool": {"kernel_shape": [2, 2], "strides": [2, 2]}}.get(move, {})
    inputs = {"Reshape": ["xq", "shape"], "Resize": ["xq", "", "sizes"]}.get(move, ["xq"])
    held = {"w": _LEVELS, "xz": zero(131, np.uint8), "shape": np.array([1, 4, 9, 4], np.int64),
            "sizes": np.array([1, 1, 2, 2], np.float32)}
    proto = _conv("wd", [_DQ], constants=held)
    proto.graph.node.insert(1, node(move, inputs, "moved", **attributes))
    proto.graph.node[2].input[0] = "moved"
    _checked(proto, "storage")


def test_what_the_model_takes_and_gives_keeps_its_type():
    nodes = [node("DequantizeLinear", ["x", "xs", "u"], "xd"), _DQ, node("Conv", ["xd", "wd"], "c"),
             node("QuantizeLinear", ["c", "ys", "yz"], "cq"), node("DequantizeLinear", ["cq", "ys", "yz"], "cd"),
             node("Relu", ["cd"], "r"), node("QuantizeLinear", ["r", "ys", "u"], "y")]
    proto = model(nodes, {**_BASE, "w": _LEVELS, "u": zero(128, np.uint8)}, kind="uint8", out="uint8")
    form = _checked(proto, "storage")
    assert form.proto.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.UINT8
    assert form.proto.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.UINT8


def test_equal_pairs_are_one():
    again = [node("QuantizeLinear", ["c", "ys", "yz"], "q2"), node("DequantizeLinear", ["q2", "ys", "yz"], "d2"),
             node("Relu", ["d2"], "y2")]
    proto = _conv("wd", [_DQ], again, constants={"w": _LEVELS}, outputs=("y", "y2"))
    form = _checked(proto, "pairs")
    assert operators(form.proto).count("QuantizeLinear") == 2


def test_no_quantisation_stands_behind_its_own_dequantisation():
    before = [_DQ, node("QuantizeLinear", ["xd", "xs", "xz"], "x2"), node("DequantizeLinear", ["x2", "xs", "xz"], "d2")]
    proto = _conv("wd", before, constants={"w": _LEVELS})
    next(each for each in proto.graph.node if each.op_type == "Conv").input[0] = "d2"
    form = _checked(proto, "round trips")
    assert operators(form.proto).count("QuantizeLinear") == 2
    other = {"x2s": scalar(.03), "w": _LEVELS}
    before[1].input[1] = before[2].input[1] = "x2s"
    proto = _conv("wd", before, constants=other)
    next(each for each in proto.graph.node if each.op_type == "Conv").input[0] = "d2"
    assert normalise(proto).counts == {}


def test_a_quantisation_behind_moves_and_choices_stands_before_them():
    behind = [node("MaxPool", ["c"], "m", kernel_shape=[2, 2], strides=[2, 2]),
              node("Transpose", ["m"], "t", perm=[0, 2, 3, 1])]
    proto = _conv("wd", [_DQ], behind, constants={"w": _LEVELS})
    proto.graph.node[-2].input[0] = "t"
    form = _checked(proto, "earlier")
    kinds = operators(form.proto)
    assert kinds[kinds.index("Conv") + 1] == "QuantizeLinear"


def test_moves_and_clamps_of_levels_that_floats_read_are_levels():
    before = [_DQ, node("Relu", ["xd"], "r"), node("Transpose", ["r"], "t", perm=[0, 1, 3, 2]),
              node("Exp", ["r"], "y2")]
    proto = _conv("wd", before, constants={"w": _LEVELS}, outputs=("y", "y2"))
    next(each for each in proto.graph.node if each.op_type == "Conv").input[0] = "t"
    form = _checked(proto, "inside")
    assert operators(form.proto).count("QuantizeLinear") == 4


def test_a_clip_to_no_level_stays_in_float():
    held = {"w": _LEVELS, "low": scalar(-.013), "high": scalar(1.0)}
    before = [_DQ, node("Clip", ["xd", "low", "high"], "r"), node("Exp", ["r"], "y2")]
    proto = _conv("wd", before, constants=held, outputs=("y", "y2"))
    next(each for each in proto.graph.node if each.op_type == "Conv").input[0] = "r"
    assert normalise(proto).counts == {}


@pytest.mark.parametrize("first", [np.int8, np.uint8])
def test_a_sum_with_a_constant_in_qoperator_form_is_one_between_floats(first):
    shift = 0 if first is np.int8 else 128
    nodes = [node("QuantizeLinear", ["x", "xs", "z"], "xq"),
             node("QLinearAdd", ["xq", "xs", "z", "k", "ks", "z", "ys", "z"], "a", domain="com.microsoft"),
             node("DequantizeLinear", ["a", "ys", "z"], "y")]
    held = {**_BASE, "k": (_RNG.integers(-90, 90, (1, 4, 1, 1)) + shift).astype(first), "ks": scalar(.03),
            "z": zero(shift, first)}
    form = _checked(model(nodes, held), "expand")
    assert "Add" in operators(form.proto)


def test_qlinear_operators_of_two_types_are_floats_between_levels_of_one():
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"),
             node("QLinearConv", ["xq", "xs", "xz", "w", "ws", "wz", "ys", "u", "b"], "a"),
             node("DequantizeLinear", ["a", "ys", "u"], "y")]
    held = {**_BASE, "w": _LEVELS, "u": zero(124, np.uint8), "b": _RNG.integers(-900, 900, 8).astype(np.int32)}
    proto = model(nodes, held)
    form = normalise(proto)
    assert set(form.counts) == {"expand", "storage"}
    assert list(faults(form.proto)) == []
    # ONNX's reference sums the one in integers, and ONNX Runtime the other, unfused, in float.
    given = (np.random.default_rng(0).standard_normal((1, 4, 6, 6)) * 2).astype(np.float32)
    (expected,) = ReferenceEvaluator(proto).run(None, {"x": given})
    assert np.abs(expected - computed(form.proto)[0]).max() <= .0501


def test_the_page_is_that_of_the_rules():
    page = Path(__file__).parents[4] / "docs" / "normal-form.md"
    assert page.read_text(encoding="utf-8") == normal_form_page.page(), "run: make docs"


def test_every_rule_says_what_holds_and_why():
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.says
        assert rule.because
        assert rule.exact == (not rule.because.startswith("NOT exact"))


@pytest.mark.parametrize("move", [("Transpose", {"perm": [0, 1, 3, 2]}), ("Reshape", {})])
def test_levels_that_are_moved_and_joined_are_requantised_where_they_are_joined(move):
    op, given = move
    constants = {"s": scalar(.02), "z": zero(), "t": scalar(.05), "shape": np.int64([1, 4, 6, 6])}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "d"),
             node(op, ["d", *(["shape"] if op == "Reshape" else [])], "m", **given),
             node("Concat", ["m", "d"], "c", axis=2),
             node("QuantizeLinear", ["c", "t", "z"], "cq"), node("DequantizeLinear", ["cq", "t", "z"], "y")]
    proto = model(nodes, constants)
    made = normalise(proto).proto
    np.testing.assert_array_equal(computed(made)[0], computed(proto)[0])
    joined = next(each for each in made.graph.node if each.op_type == "Concat")
    scales = {each.output[0]: each.input[1] for each in made.graph.node if each.op_type == "DequantizeLinear"}
    assert {scales[name] for name in joined.input} == {"s"}


@pytest.mark.parametrize("order", [("wd", "one"), ("one", "wd")])
def test_levels_times_one_are_levels_in_either_order(order):
    nodes = [node("QuantizeLinear", ["x", "s", "z"], "xq"), node("DequantizeLinear", ["xq", "s", "z"], "xd"),
             node("DequantizeLinear", ["w", "s", "z"], "wd"), node("Mul", order, "w1"), node("Conv", ["xd", "w1"], "c"),
             node("QuantizeLinear", ["c", "s", "z"], "yq"), node("DequantizeLinear", ["yq", "s", "z"], "y")]
    levels = np.arange(-54, 54, dtype=np.int8).reshape(3, 4, 3, 3)
    form = normalise(model(nodes, {"s": scalar(.02), "z": zero(), "w": levels, "one": scalar(1)}))
    assert operators(form.proto).count("DequantizeLinear") == 3


@pytest.mark.parametrize("shape", [(5,), (1, 5)])
def test_a_bias_of_another_scale_is_a_float_one_in_either_shape(shape):
    nodes = [node("QuantizeLinear", ["x", "s", "z"], "xq"), node("DequantizeLinear", ["xq", "s", "z"], "xd"),
             node("DequantizeLinear", ["w", "s", "z"], "wd"), node("DequantizeLinear", ["b", "bs", "bz"], "bd"),
             node("Gemm", ["xd", "wd", "bd"], "c"),
             node("QuantizeLinear", ["c", "s", "z"], "yq"), node("DequantizeLinear", ["yq", "s", "z"], "y")]
    held = {"s": scalar(.02), "bs": scalar(.0307), "z": zero(), "w": np.arange(40, dtype=np.int8).reshape(8, 5),
            "b": np.arange(5, dtype=np.int32).reshape(shape), "bz": np.int32(0)}
    assert normalise(model(nodes, held, (2, 8))).counts == {"biases": 1}


def test_a_dq_without_a_zero_point_waits_for_that_which_is_computed_for_its_q():
    """Levels are uint8 only where their Q states no zero point either."""
    nodes = [node("ConstantOfShape", ["none"], "z", value=helper.make_tensor("value", TensorProto.INT8, [1], [0])),
             node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s"], "d"),
             node("Relu", ["d"], "r"), node("QuantizeLinear", ["r", "s", "zu"], "rq"),
             node("DequantizeLinear", ["rq", "s", "zu"], "y")]
    proto = model(nodes, {"s": scalar(.03), "none": np.zeros(0, np.int64), "zu": zero(7, np.uint8)})
    form = normalise(proto)
    assert list(faults(form.proto)) == []
    assert np.array_equal(computed(form.proto)[0], computed(proto)[0])


@pytest.mark.parametrize("axis", [0, -1])
def test_a_scalar_scale_has_no_axis(axis):
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "q", axis=axis),
             node("DequantizeLinear", ["q", "xs", "xz"], "y", axis=axis)]
    form = _checked(model(nodes, {key: _BASE[key] for key in ("xs", "xz")}), "plain")
    assert all(not each.attribute for each in form.proto.graph.node)
