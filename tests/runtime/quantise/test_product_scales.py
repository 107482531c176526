"""Normalisations are folded into products, and scales of operands stand behind these; both compute the same."""

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


def attention(model, *, scaled, turned=False, divided=False, read_elsewhere=False):
    """Add a product of two computed tensors, of which some are ``scaled``; return its result."""
    operands = []
    for place, perm in ((0, [0, 1, 2]), (1, [0, 2, 1])):
        each = model.add("MatMul", "x", model.floats(8, 8))
        if place in scaled and not turned:
            each = factored(model, each, divided)
        each = model.add("Transpose", each, perm=perm)
        if place in scaled and turned:
            each = factored(model, each, divided)
        operands.append(each)
    product = model.add("MatMul", *operands)
    return model.add("Concat", product, operands[0], axis=2) if read_elsewhere else product


def factored(model, name, divided):
    """Add a product with a number, or a quotient."""
    number = f"c{len(model.constants)}"
    model.constants.append(numpy_helper.from_array(np.array(2.5 if divided else 0.4, np.float32), number))
    return model.add("Div" if divided else "Mul", name, number)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("scaled", [(0,), (1,), (0, 1)])
def test_what_scales_an_operand_scales_the_result(tmp_path, scaled, divided, turned):
    model = Writer()
    found = model.prepared(tmp_path, (1, 5, 8), attention(model, scaled=scaled, turned=turned, divided=divided),
                           (1, 5, 5))
    assert (found["Mul"], found["Div"], found["MatMul"]) == (1, 0, 3)


def test_a_scaled_operand_that_is_read_elsewhere_keeps_its_scale(tmp_path):
    model = Writer()
    output = attention(model, scaled=(0,), turned=True, read_elsewhere=True)
    assert model.prepared(tmp_path, (1, 5, 8), output, (1, 5, 13))["Mul"] == 1


def test_an_attention_that_scales_its_queries_is_that_which_scales_its_scores(tmp_path):
    """Its queries are not quantised a second time."""
    proto = onnx.load(tmp_path / _attention_file(tmp_path))
    prepared = prepare(read_model(proto.SerializeToString())).proto
    scale = next(node for node in prepared.graph.node if node.op_type == "Mul")
    assert next(node for node in prepared.graph.node if scale.input[0] in node.output).op_type == "MatMul"


def _attention_file(folder):
    model = Writer()
    output = model.add("Softmax", attention(model, scaled=(0,)), axis=-1)
    graph = helper.make_graph(model.nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 5, 8))],
                              [helper.make_tensor_value_info(output, TensorProto.FLOAT, (1, 5, 5))], model.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              folder / "attention.onnx")
    return "attention.onnx"
