"""Masks of attention are bounded by the scores of the samples, so that scores that count keep their levels."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.quantise.masked_scores import bound_masks

KEYS, TOKENS = 12, 8
RNG = np.random.default_rng(2)
FEEDS = [{"x": RNG.normal(size=(1, TOKENS, 16)).astype(np.float32)} for _ in range(3)]


def model(mask, behind="Softmax"):
    """Return scores, plus ``mask``, through a move to an operator."""
    constants = {"w": RNG.normal(size=(16, KEYS)).astype(np.float32), "m": mask,
                 "s": np.array([TOKENS, KEYS], np.int64)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["scores"]), helper.make_node("Add", ["m", "scores"], ["sum"]),
             helper.make_node("Reshape", ["sum", "s"], ["rows"]), helper.make_node(behind, ["rows"], ["y"])]
    graph = helper.make_graph(
        nodes, "one", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, TOKENS, 16))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("out", [-np.inf, np.finfo(np.float32).min, -1e4])
def test_weights_stay_and_scores_have_levels(out):
    bias = RNG.normal(size=(TOKENS, KEYS)).astype(np.float32)
    proto = model(np.where(np.tril(np.ones((TOKENS, KEYS), bool)), bias, np.float32(out)))
    before = onnx.ModelProto()
    before.CopyFrom(proto)
    ((levels,),) = bound_masks(proto, FEEDS).values()
    for feed in FEEDS:
        (wanted,), (found,) = (session(each.SerializeToString()).run(None, feed) for each in (before, proto))
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    scores = np.stack([feed["x"][0] @ numpy_helper.to_array(proto.graph.initializer[0]) for feed in FEEDS])
    scale, zero = float(levels["scale"]), int(levels["zero_point"])
    assert (-128 - zero) * scale <= scores.min() + bias.min() - 15
    assert (127 - zero) * scale >= scores.max()
    assert scale < (np.ptp(scores) + np.ptp(bias) + 20) / 255


@pytest.mark.parametrize(("mask", "behind"), [(-20.0, "Softmax"), (-1e4, "Sigmoid")])
def test_a_bias_and_what_no_softmax_reads_stay(mask, behind):
    proto = model(np.full((TOKENS, KEYS), mask, np.float32), behind)
    before = proto.SerializeToString()
    assert bound_masks(proto, FEEDS) == {}
    assert proto.SerializeToString() == before


def computed(form, out):
    """Return scores of KEYS tokens, of which an input takes some out, in a form of an exporter."""
    constants = {"w": RNG.normal(size=(16, KEYS)).astype(np.float32), "one": np.float32(1), "zero": np.float32(0),
                 "out": np.float32(out)}
    made = {
        "sum of Where": [("Where", ["m", "zero", "out"], "mask"), ("Add", ["scores", "mask"], "sum")],
        "Where": [("Where", ["m", "scores", "out"], "sum")],
        "product": [("Cast", ["m"], "f"), ("Sub", ["one", "f"], "left"), ("Mul", ["left", "out"], "mask"),
                    ("Add", ["mask", "scores"], "sum")],
        "without NaN": [("Where", ["m", "zero", "out"], "mask"), ("Add", ["scores", "mask"], "sum")]}[form]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["scores"]),
             *(helper.make_node(op, given, [result], **({"to": 1} if op == "Cast" else {}))
               for op, given, result in made), helper.make_node("Softmax", ["sum"], ["p"])]
    nodes += [helper.make_node("IsNaN", ["p"], ["nan"]), helper.make_node("Where", ["nan", "zero", "p"], ["y"])] \
        if form == "without NaN" else [helper.make_node("Identity", ["p"], ["y"])]
    graph = helper.make_graph(
        nodes, "one", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, TOKENS, 16)),
                       helper.make_tensor_value_info("m", TensorProto.BOOL, (1, 1, KEYS))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(("form", "out"), [("sum of Where", -np.inf), ("Where", -1e9), ("product", -1e4),
                                           ("without NaN", -np.inf)])
def test_a_mask_that_an_input_decides_is_bounded(form, out):
    proto = computed(form, out)
    feeds = [{**feed, "m": RNG.random((1, 1, KEYS)) < 0.5} for feed in FEEDS]
    before = onnx.ModelProto()
    before.CopyFrom(proto)
    ((name, (levels,)),) = bound_masks(proto, feeds).items()
    assert name == "sum"
    for feed in feeds:
        (wanted,), (found,) = (session(each.SerializeToString()).run(None, feed) for each in (before, proto))
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    scores = np.stack([feed["x"][0] @ numpy_helper.to_array(proto.graph.initializer[0]) for feed in feeds])
    assert float(levels["scale"]) < (np.ptp(scores) + 20) / 255
    values = {each.name: numpy_helper.to_array(each) for each in proto.graph.initializer}
    read = {name for node in proto.graph.node for name in node.input}
    assert min(values[name].min() for name in read & values.keys()) > -100
