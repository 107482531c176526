"""A product of rows and the constant that is added to it are one Gemm before quantisation, and compute the same."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.quantise.biased_products import with_biases

RNG = np.random.default_rng(0)
SHAPES = {"x": (1, 5, 8), "a": (1, 5, 6), "p": (1, 5, 6), "b": (1, 5, 6), "q": (1, 5, 6)}


def products():
    """Return two products of rows: a bias is added to one; the sums of the other are an output, too."""
    constants = {"w": RNG.normal(size=(8, 6)), "v": RNG.normal(size=(8, 6)), "c": RNG.normal(size=(1, 1, 6))}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["c", "a"], ["p"]),
             helper.make_node("MatMul", ["x", "v"], ["b"]), helper.make_node("Add", ["b", "c"], ["q"])]
    graph = helper.make_graph(
        nodes, "products", [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPES["x"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPES[name]) for name in ("p", "q", "b")],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_what_only_its_sum_reads_has_a_bias():
    model, feed = products(), {"x": RNG.normal(size=SHAPES["x"]).astype(np.float32)}
    before = session(model.SerializeToString()).run(None, feed)
    with_biases(model.graph, lambda: SHAPES)
    onnx.checker.check_model(model)
    assert [node.op_type for node in model.graph.node] == ["Reshape", "Gemm", "Reshape", "MatMul", "Add"]
    for ours, theirs in zip(session(model.SerializeToString()).run(None, feed), before, strict=True):
        assert np.allclose(ours, theirs, atol=1e-5)
