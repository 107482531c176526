"""Sizes of open dimensions are those that a model's constants and windows take, its first axis included."""

import re
import shlex

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.test_app import invoke, refused
from tests.support.float_models import FloatBuilder
from tilewright.compiler.errors import BadModelError
from tilewright.compiler.onnx.open_shapes import open_shapes
from tilewright.compiler.onnx.reader import load


def weights(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def recurrence(shape):
    """Return an RNN of 13 features."""
    builder = FloatBuilder()
    x = builder.node("Unsqueeze", builder.input(shape), builder.constant(np.array([1])))
    return builder.finish(builder.node("RNN", x, builder.constant(weights(1, 5, 13)),
                                       builder.constant(weights(1, 5, 5)), hidden_size=5))


def rows(shape, *, turned=False):
    """Return a window of 7 rows and 3 columns over (rows, columns), whose 4 columns behind a pooling are multiplied."""
    builder = FloatBuilder()
    axes = builder.constant(np.array([0, 1]))
    y = builder.node("Unsqueeze", builder.input(shape), axes)
    y = builder.node("Conv", y, builder.constant(weights(2, 1, 7, 3)))
    if turned:
        bounds = [builder.constant(np.array([each])) for each in (-1, -2**63, 3, -1)]
        y = builder.node("Slice", y, *bounds)
    y = builder.node("MaxPool", y, kernel_shape=[1, 3], strides=[1, 3])
    return builder.finish(builder.node("MatMul", y, builder.constant(weights(4, 5))))


@pytest.mark.parametrize(("model", "options"), [
    (recurrence(("frames", "features")), ["features=13"]),
    (rows(("rows", "columns")), ["rows=128", "columns=14"]),
    (rows(("rows", "columns"), turned=True), ["rows=128", "columns=14"]),
], ids=["weights of a recurrence", "rows, no batch", "a Slice behind a window"])
def test_sizes_that_a_model_takes_are_found(model, options, tmp_path):
    assert list(open_shapes(model).options[1::2]) == options
    onnx.save(model, tmp_path / "net.onnx")
    command = re.search(r"tilewright (check .*)$", refused(2, "check", tmp_path / "net.onnx", "--float"))[1]
    done = invoke(*shlex.split(command))
    assert done.exit_code == 0, done.output


def fixed(model, *shape):
    for extent, size in zip(model.graph.input[0].type.tensor_type.shape.dim, shape, strict=True):
        extent.dim_value = size
    return model.SerializeToString()


@pytest.mark.parametrize("turned", [False, True])
def test_a_window_larger_than_its_input_is_named(turned):
    """Behind one, ONNX's inference ended the process at a Slice."""
    with pytest.raises(BadModelError, match=r"Window of node 'conv.*padded input"):
        load(fixed(rows(("rows", "columns"), turned=turned), 3, 14))


def test_trees_are_called_that_before_their_types(tmp_path):
    """Their inputs are often float64, which no other export would mend."""
    graph = helper.make_graph([helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], "trees", domain="ai.onnx.ml")],
                              "net", [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [1, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "net.onnx")
    told = refused(2, "check", tmp_path / "net.onnx")
    assert "'trees' (TreeEnsembleRegressor)" in told
    assert "float64" not in told
