"""A Loop or a Scan of a known number of steps computes what ONNX Runtime does; any other is refused."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.onnx.given_shapes import fix_values
from tilewright.compiler.onnx.reader import load, read_model
from tilewright.compiler.onnx.unrolling import unrolled

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
_SHAPE = [2, 3]


def info(name, shape=None, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, constants, inputs=(), outputs=("last", "all")):
    graph = helper.make_graph(nodes, "net", [info("x", _SHAPE), *inputs], [info(name) for name in outputs],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def loop(goes_on="Identity", inner=()):
    """Return a Loop whose state is multiplied by a constant of its body and added to x, with its number."""
    nodes = [helper.make_node("Cast", ["number"], ["step"], to=FLOAT),
             helper.make_node("Mul", ["state", "factor"], ["scaled"]), *inner,
             helper.make_node("Add", ["scaled", "x"], ["sum"]), helper.make_node("Add", ["sum", "step"], ["next"])]
    nodes.append(helper.make_node(goes_on, ["on"], ["still"]) if goes_on != "Less" else
                 helper.make_node("Less", ["number", "end"], ["still"]))
    body = helper.make_graph(nodes, "body", [info("number", [], INT64), info("on", [], BOOL), info("state", _SHAPE)],
                             [info("still", [], BOOL), info("next", _SHAPE), info("sum", _SHAPE)],
                             [numpy_helper.from_array(np.float32(0.5), "factor"),
                              numpy_helper.from_array(np.int64(1), "end")])
    return helper.make_node("Loop", ["count", "", "x"], ["last", "all"], "loop", body=body)


def scan(**attributes):
    """Return a Scan over the columns, or rows, of x, whose state is the sum so far."""
    body = helper.make_graph([helper.make_node("Add", ["so_far", "each"], ["next"]),
                              helper.make_node("Relu", ["next"], ["seen"])], "body",
                             [info("so_far"), info("each")], [info("next"), info("seen")])
    return helper.make_node("Scan", ["first", "x"], ["last", "all"], "scan", body=body, num_scan_inputs=1, **attributes)


def require_same(given):
    made, stay = unrolled(read_model(given.SerializeToString()))
    assert not stay
    assert not {"Loop", "Scan", "If"} & {node.op_type for node in made.graph.node}
    feeds = {"x": np.random.default_rng(0).normal(size=_SHAPE).astype(np.float32)}
    ours, theirs = (onnxruntime.InferenceSession(each.SerializeToString()).run(None, feeds) for each in (made, given))
    for value, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(value, expected)
    load(given.SerializeToString())


def test_a_loop_of_a_constant_number_of_steps():
    require_same(model([loop()], {"count": 4}))


def test_a_loop_whose_number_of_steps_is_folded():
    count = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("ReduceSum", ["shape"], ["count"],
                                                                           keepdims=0)]
    require_same(model([*count, loop()], {}))


def test_a_loop_within_a_loop_and_a_choice_within_it():
    inner = [helper.make_node("If", ["yes"], ["chosen"], "choice", then_branch=helper.make_graph(
        [helper.make_node("Relu", ["scaled"], ["mine"])], "then", [], [info("mine")]), else_branch=helper.make_graph(
            [helper.make_node("Neg", ["scaled"], ["mine"])], "else", [], [info("mine")]))]
    outer = loop(inner=inner)
    outer.attribute[0].g.node[-3].input[0] = "chosen"
    require_same(model([outer], {"count": 3, "yes": True}))


@pytest.mark.parametrize("attributes", [
    {}, {"scan_input_axes": [1]}, {"scan_input_directions": [1]},
    {"scan_output_directions": [1]}, {"scan_output_axes": [1], "scan_input_axes": [1]}])
def test_a_scan(attributes):
    size = _SHAPE[1 - attributes.get("scan_input_axes", [0])[0]]
    require_same(model([scan(**attributes)], {"first": np.ones(size, np.float32)}))


def test_a_loop_that_may_end_before_its_last_step_is_refused():
    with pytest.raises(UnsupportedNodeError, match="'still'") as caught:
        load(model([loop("Less")], {"count": 4}).SerializeToString())
    assert caught.value.node == "loop"


def test_a_loop_without_a_known_number_of_steps_is_refused_and_what_the_message_says_helps():
    given = model([loop()], {}, [info("count", [], INT64)])
    with pytest.raises(UnsupportedNodeError, match="'count'") as caught:
        load(given.SerializeToString())
    assert "--input-value count=N" in str(caught.value)
    fix_values(given, {"count": [3]})
    load(given.SerializeToString())


def test_too_many_steps_are_refused():
    with pytest.raises(UnsupportedNodeError, match="1,000,000 steps"):
        load(model([loop()], {"count": 1_000_000}).SerializeToString())


def test_no_step_leaves_the_state_as_it_is_and_has_no_output_of_steps():
    given = model([loop()], {"count": 0}, outputs=("last",))
    require_same(given)
    with pytest.raises(UnsupportedNodeError, match="no element"):
        load(model([loop()], {"count": 0}).SerializeToString())
