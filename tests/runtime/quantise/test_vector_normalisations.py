"""Batch normalisation of vectors and of one dimension is folded into products, and computes the same."""

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.onnx.reader import read_model
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.quantise.float_graph import prepare


class Writer:
    """Nodes and constants of a small float model."""

    def __init__(self):
        self.nodes, self.constants, self.rng = [], [], np.random.default_rng(1)

    def floats(self, *shape, low=None):
        name = f"c{len(self.constants)}"
        values = self.rng.normal(size=shape) if low is None else self.rng.uniform(low, 2, shape)
        self.constants.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def normalised(self, x, count):
        parameters = [self.floats(count), self.floats(count), self.floats(count), self.floats(count, low=0.5)]
        return self.add("BatchNormalization", x, *parameters, epsilon=1e-3)

    def prepared(self, folder, shape, output, outputs):
        """Return the operators of the prepared model, which must compute what this one does."""
        graph = helper.make_graph(
            self.nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, outputs)], self.constants)
        path = folder / "model.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
        found = prepare(read_model(path)).proto
        x = self.rng.normal(size=shape).astype(np.float32)
        before, after = (session(each.SerializeToString()).run(None, {"x": x})[0] for each in (onnx.load(path), found))
        np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)
        return Counter(node.op_type for node in found.graph.node)


@pytest.mark.parametrize("product", [
    lambda to, x: to.add("Gemm", x, to.floats(6, 5), to.floats(6), transB=1),
    lambda to, x: to.add("Gemm", x, to.floats(5, 6), to.floats(1, 6), alpha=0.5, beta=2.0),
    lambda to, x: to.add("Gemm", x, to.floats(5, 6)),
    lambda to, x: to.add("MatMul", x, to.floats(5, 6))])
def test_behind_a_product_it_is_part_of_its_weights(tmp_path, product):
    to = Writer()
    assert to.prepared(tmp_path, (1, 5), to.normalised(product(to, "x"), 6), (1, 6)) == {"Gemm": 1}


def test_a_product_that_is_read_elsewhere_stays(tmp_path):
    to = Writer()
    y = to.add("Gemm", "x", to.floats(6, 5), transB=1)
    found = to.prepared(tmp_path, (1, 5), to.add("Add", to.normalised(y, 6), y), (1, 6))
    assert (found["Gemm"], found["Conv"], found["BatchNormalization"]) == (1, 1, 0)


@pytest.mark.parametrize("shape", [(1, 6), (1, 6, 9), (1, 6, 3, 4)])
def test_behind_anything_else_it_is_a_convolution_of_one_element(tmp_path, shape):
    to = Writer()
    found = to.prepared(tmp_path, shape, to.add("Relu", to.normalised(to.add("Relu", "x"), 6)), shape)
    assert (found["Conv"], found["BatchNormalization"]) == (1, 0)
