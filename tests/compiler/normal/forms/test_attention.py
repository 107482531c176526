"""An Attention is its products and its softmax, with the same floats, and stays where these do not tell all of it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright.compiler.normal.rules.normal_form import normalise
from tilewright.runtime.oracle.onnx_runtime import session

TOKENS, KEYS = 5, 7
MASK = np.random.default_rng(3).normal(size=(TOKENS, KEYS)).astype(np.float32)
MASK[:, 2] = -np.inf


def model(shapes, attributes, mask=None, outputs=("y",), opset=23):
    """Return a model of one attention, whose operands are behind operators that keep their shapes."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
              for name, shape in zip("qkv", shapes, strict=True)]
    nodes = [helper.make_node("Tanh", [name], [f"{name}1"]) for name in "qkv"]
    given = ["q1", "k1", "v1", *(["m"] if mask is not None else [])]
    nodes.append(helper.make_node("Attention", given, list(outputs), "attention", **attributes))
    constants = [] if mask is None else [numpy_helper.from_array(mask, "m")]
    graph = helper.make_graph(nodes, "one", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


def flat(heads, groups):
    shapes = (1, TOKENS, heads * 4), (1, KEYS, groups * 4), (1, KEYS, groups * 3)
    return shapes, {"q_num_heads": heads, "kv_num_heads": groups}


def by_heads(heads, groups):
    return ((1, heads, TOKENS, 4), (1, groups, KEYS, 4), (1, groups, KEYS, 3)), {}


@pytest.mark.parametrize(("case", "more", "mask"), [
    (flat(2, 2), {}, None), (flat(4, 2), {"scale": 0.3}, MASK), (by_heads(3, 3), {"is_causal": 1}, None),
    (by_heads(4, 2), {}, MASK > 0), (flat(2, 2), {"is_causal": 1}, MASK > 0),
], ids=["flat", "grouped, masked", "causal", "grouped, conditions", "causal, conditions"])
def test_it_computes_the_same_as_one_operator(case, more, mask):
    shapes, attributes = case
    if mask is not None and mask.dtype == bool:
        mask[:, 0] = True       # a row of which nothing counts is 0 / 0
    whole = model(shapes, attributes | more, mask)
    made = normalise(whole)
    assert made.counts == {"attention": 1}
    assert "Attention" not in {node.op_type for node in made.proto.graph.node}
    rng = np.random.default_rng(1)
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in zip("qkv", shapes, strict=True)}
    (wanted,), (found,) = (session(each.SerializeToString()).run(None, feeds) for each in (whole, made.proto))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("attributes", "mask"), [
    ({"left_window_size": 1}, None), ({"left_window_size": 2, "right_window_size": 1}, MASK),
    ({"right_window_size": 3, "is_causal": 1, "scale": 0.0}, None),
], ids=["left", "both, masked", "causal, no scale"])
def test_windows_are_part_of_the_mask(attributes, mask):
    shapes, heads = flat(2, 2)
    made = normalise(model(shapes, heads | attributes, mask, opset=25))
    assert made.counts == {"attention": 1}
    rng = np.random.default_rng(1)
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in zip("qkv", shapes, strict=True)}
    reference = ReferenceEvaluator(model(shapes, heads | attributes, mask, opset=25))
    made.proto.opset_import[0].version = 23     # none of its operators is newer
    (found,) = session(made.proto.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(found, reference.run(None, feeds)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("more", "mask"), [
    ({"softcap": 2.0}, None), ({"softmax_precision": TensorProto.DOUBLE}, None), ({"right_window_size": 0}, MASK < -9),
    ({"left_window_size": 0}, MASK == np.inf), ({}, MASK[:, :4]), ({"q_num_heads": 3}, None),
], ids=["soft cap", "softmax of doubles", "a query without keys", "no query with keys", "a mask of fewer keys",
        "heads that do not divide"])
def test_what_products_and_a_softmax_do_not_tell_stays(more, mask):
    shapes, attributes = flat(3, 2) if "q_num_heads" in more else flat(2, 2)
    whole = model(shapes, attributes | more, mask, opset=25)
    assert normalise(whole).proto is whole


def test_an_attention_whose_keys_are_kept_stays():
    whole = model(*flat(2, 2))
    whole.graph.node[-1].output.append("present")
    whole.graph.output.append(onnx.helper.make_tensor_value_info("present", TensorProto.FLOAT, None))
    assert normalise(whole).proto is whole
