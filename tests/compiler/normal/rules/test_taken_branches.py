"""An If of a known condition is its branch before other rules look at what stands around it."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tests.support.exactness import assert_layers
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.normal.rules.normal_form import normalise
from tilewright.isa.machine import preset
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.prediction import predict_report

_THERE, _BACK = [0, 2, 3, 1], [0, 3, 1, 2]
_CONSTANTS = {"s": scalar(.04), "z": zero(3), "m": scalar(.09), "yes": np.array([True]), "four": np.array(4)}


def _chosen(condition, source, output, taken="Identity", other="Neg"):
    """Return an If that takes ``taken`` of ``source``; what both branches make is called alike in every If."""
    value = helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)
    branches = {}
    for key, op in (("then_branch", taken), ("else_branch", other)):
        constants = [numpy_helper.from_array(np.float32(.5), "offset")] if op in ("Add", "Sub") else []
        made = helper.make_node(op, [source, *(each.name for each in constants)], ["inner"])
        branches[key] = helper.make_graph([made], key, [], [value], constants)
    return node("If", [condition], output, **branches)


def _square(*chosen, product="product"):
    """Return the square of levels, computed with the channels last, and the Ifs ``chosen`` in it."""
    return model([
        node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "d"),
        node("Transpose", ["d"], "first", perm=_THERE), node("Transpose", ["d"], "second", perm=_THERE),
        node("Mul", ["first", "second"], "product"), *chosen,
        node("Transpose", [product], "back", perm=_BACK),
        node("QuantizeLinear", ["back", "m", "z"], "l"), node("DequantizeLinear", ["l", "m", "z"], "y")], _CONSTANTS)


_OF_A_SHAPE = [node("Shape", ["product"], "shape"), node("Gather", ["shape", "z64"], "channels"),
               node("Equal", ["channels", "four"], "is four"), node("Not", ["is four"], "condition")]


@pytest.mark.parametrize("branches", [[_chosen("yes", "product", "chosen")], [
    _chosen("yes", "product", "once"), _chosen("yes", "once", "chosen")], [
        *_OF_A_SHAPE, _chosen("condition", "product", "chosen", "Neg", "Identity")]])
def test_a_branch_is_taken_before_what_stands_around_it_is_rewritten(branches):
    plain, chosen = _square(), _square(*branches, product="chosen")
    chosen.graph.initializer.append(numpy_helper.from_array(np.array(3), "z64"))
    assert np.array_equal(computed(plain)[0], computed(chosen)[0])
    made = normalise(chosen).proto
    assert operators(made) == operators(normalise(plain).proto)
    assert np.array_equal(computed(made)[0], computed(plain)[0])
    assert _cycles(chosen) == _cycles(plain)


def _cycles(proto):
    compiled = compile_layers(assert_layers(proto.SerializeToString()), preset("base"))
    return predict_report(job_of_compiled(compiled, "branches")).cycles


def test_constants_of_branches_keep_apart():
    nodes = [_chosen("yes", "x", "once", "Add", "Sub"), _chosen("yes", "once", "chosen", "Add", "Sub"),
             node("QuantizeLinear", ["chosen", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "y")]
    proto = model(nodes, _CONSTANTS)
    made = normalise(proto).proto
    assert operators(made) == ["Add", "Add", "QuantizeLinear", "DequantizeLinear"]
    assert np.array_equal(computed(made)[0], computed(proto)[0])


def test_a_computed_condition_stays():
    nodes = [node("ReduceMax", ["x"], "most", keepdims=0), node("Greater", ["most", "s"], "condition"),
             _chosen("condition", "x", "chosen"),
             node("QuantizeLinear", ["chosen", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "y")]
    assert "If" in operators(normalise(model(nodes, _CONSTANTS)).proto)


def test_levels_within_a_branch_alone_are_a_quantised_model():
    value = helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)
    inside = helper.make_graph([node("QuantizeLinear", ["x", "s", "z"], "q"), node("Identity", ["q"], "copied"),
                                node("DequantizeLinear", ["copied", "s", "z"], "inner")], "then", [], [value])
    outside = helper.make_graph([node("Neg", ["x"], "inner")], "else", [], [value])
    proto = model([node("If", ["yes"], "y", then_branch=inside, else_branch=outside)], _CONSTANTS)
    assert operators(normalise(proto).proto) == ["QuantizeLinear", "DequantizeLinear"]
