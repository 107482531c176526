"""An If whose condition is a constant, or becomes one, is its branch; any other is refused."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.border_models import BorderModel, X
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.onnx.reader import load
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.session import InferenceSession

FLOAT = TensorProto.FLOAT


def branch(source, *ops, axis=False):
    """Return a graph of ``ops`` one behind the other; its values are called alike in every branch."""
    nodes, constants = [], []
    for index, op in enumerate(ops):
        extra = ["axis"] if op == "Squeeze" else []
        nodes.append(helper.make_node(op, [source, *extra], [f"inner{index}{axis}"]))
        constants += [numpy_helper.from_array(np.array([0]), "axis")] if extra else []
        source = nodes[-1].output[0]
    return helper.make_graph(nodes, "branch", [], [helper.make_tensor_value_info(source, FLOAT, None)], constants)


def choice(model, condition, source, output, then, other):
    """Add an If of two branches."""
    branches = {"then_branch": branch(source, *then), "else_branch": branch(source, *other, axis=True)}
    model.nodes.append(helper.make_node("If", [condition], [output], f"If_{output}", **branches))


def folded(model):
    """Return a condition that the shape of y decides."""
    model.node("Shape", ["y"], "shape")
    model.node("Gather", ["shape", model.constant(np.array(1))], "channels")
    return model.node("Equal", ["channels", model.constant(np.array(4))], "condition")


def negated(model):
    return model.node("Not", [model.constant(np.array(False))], "condition")


CONDITIONS = {"true": lambda model: model.constant(np.array(True)), "false": lambda model: model.constant(
    np.array([False])), "of a shape": folded, "negated": negated}


def require_same(model):
    content = model.finish()
    feed = {"x": np.random.default_rng(0).normal(size=X).astype(np.float32)}
    ours, theirs = InferenceSession(content, "nano"), onnx_session(content)
    assert [each.name for each in ours.get_outputs()] == [each.name for each in theirs.get_outputs()]
    for value, expected in zip(ours.run(None, feed), theirs.run(None, feed), strict=True):
        np.testing.assert_array_equal(value, expected)
        assert value.shape == expected.shape
    return ours


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_branch_of_a_constant_condition_is_taken(condition):
    model = BorderModel()
    choice(model, CONDITIONS[condition](model), "y", "chosen", ("Relu", "Squeeze"), ("Abs",))
    model.outputs = [("chosen", FLOAT, None)]
    require_same(model)


def test_branches_whose_values_are_called_alike_stay_apart():
    model = BorderModel()
    no = model.constant(np.array(False))
    choice(model, no, "y", "first", ("Relu", "Relu"), ("Relu", "Abs"))
    choice(model, no, "first", "second", ("Relu",), ("Relu", "Abs"))
    model.outputs = [("second", FLOAT, None), ("first", FLOAT, None)]
    require_same(model)


def test_a_branch_inside_the_network_costs_nothing():
    plain, model = BorderModel(), BorderModel()
    plain.nodes[4].input[0] = model.nodes[4].input[0] = "rectified"
    plain.nodes.insert(4, helper.make_node("Relu", ["conv"], ["rectified"]))
    choice(model, model.constant(np.array(True)), "conv", "rectified", ("Relu",), ("Abs",))
    model.nodes.insert(4, model.nodes.pop())
    assert require_same(model).report.cycles == require_same(plain).report.cycles


def test_a_branch_that_hands_on_a_value_from_around_it_is_no_fault():
    """In a branch of the branch an Identity makes a value from around it an output, as torch writes recurrent cells."""
    model = BorderModel()
    inner = {f"{side}_branch": helper.make_graph(
        [helper.make_node("Identity", ["rectified"], [f"{side}_out"])], side, [],
        [helper.make_tensor_value_info(f"{side}_out", FLOAT, None)]) for side in ("then", "else")}
    unknown = model.node("Greater", [model.node("ReduceMax", ["y"], "most", keepdims=0),
                                     model.constant(np.float32(0))], "positive")
    nodes = [helper.make_node("Relu", ["y"], ["rectified"]),
             helper.make_node("If", [unknown], ["inner"], "If_in", **inner)]
    outer = {f"{side}_branch": helper.make_graph(nodes, side, [], [
        helper.make_tensor_value_info(name, FLOAT, None) for name in ("rectified", "inner")])
        for side in ("then", "else")}
    model.nodes.append(helper.make_node("If", [unknown], ["first", "second"], "If_out", **outer))
    model.outputs = [("first", FLOAT, None), ("second", FLOAT, None)]
    with pytest.raises(UnsupportedNodeError, match="If_out"):
        load(model.finish())


def test_a_computed_condition_is_refused_by_what_is_wrong():
    model = BorderModel()
    model.node("ReduceMax", ["y"], "most", keepdims=0)
    condition = model.node("Greater", ["most", model.constant(np.float32(0))], "condition")
    choice(model, condition, "y", "chosen", ("Relu",), ("Abs",))
    model.outputs = [("chosen", FLOAT, None)]
    with pytest.raises(UnsupportedNodeError, match="If_chosen") as caught:
        load(model.finish())
    assert "condition" in str(caught.value)
