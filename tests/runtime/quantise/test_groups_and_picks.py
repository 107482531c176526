"""Normalisations of groups of channels are quantised as one operator, and what is picked keeps its levels."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.onnx.reader import read_model
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.quantise.float_graph import prepare
from tilewright.runtime.quantise.normalisations import inside_groups


def prepared(folder, nodes, constants, shapes, opset=21):
    """Return the prepared model of nodes from x to y, which must compute what these do."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in zip(
        "xy", shapes, strict=True))
    graph = helper.make_graph(nodes, "small", [x], [y], [numpy_helper.from_array(np.asarray(value), name)
                                                         for name, value in constants.items()])
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)
    found = prepare(read_model(path)).proto
    values = np.random.default_rng(1).normal(size=shapes[0]).astype(np.float32)
    before, after = (session(each.SerializeToString()).run(None, {"x": values})[0] for each in (onnx.load(path), found))
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)
    return found


@pytest.mark.parametrize("apart", [False, True])
def test_all_of_a_normalisation_of_groups_is_one(tmp_path, apart):
    rng = np.random.default_rng(2)
    shape = (1, 12, 5, 4)
    gain, shift = (rng.uniform(0.5, 1.5, 12).astype(np.float32) for _ in range(2))
    constants = {"gain": gain, "shift": shift}
    nodes = [helper.make_node("GroupNormalization", ["x", "gain", "shift"], ["y"], num_groups=3)]
    if apart:
        constants = {"split": [1, 3, -1], "shape": list(shape), "ones": np.ones(3, np.float32),
                     "zeros": np.zeros(3, np.float32), "gain": gain.reshape(12, 1, 1), "shift": shift.reshape(12, 1, 1)}
        nodes = [helper.make_node("Reshape", ["x", "split"], ["a"]),
                 helper.make_node("InstanceNormalization", ["a", "ones", "zeros"], ["b"]),
                 helper.make_node("Reshape", ["b", "shape"], ["c"]), helper.make_node("Mul", ["c", "gain"], ["d"]),
                 helper.make_node("Add", ["d", "shift"], ["y"])]
    found = prepared(tmp_path, nodes, constants, (shape, shape))
    assert [node.op_type for node in found.graph.node] == ["Reshape", "InstanceNormalization", "Reshape", "Mul", "Add"]
    assert {node.name for node in inside_groups(found)} == {node.name for node in found.graph.node}


@pytest.mark.parametrize(("places", "shape", "kinds"), [
    (np.array(1), (4, 5), ["Slice", "Squeeze"]), (np.array(-1), (4, 5), ["Slice", "Squeeze"]),
    (np.array([1, 2]), (2, 4, 5), ["Slice"]), (np.array([2, 0]), (2, 4, 5), ["Gather"])])
def test_what_is_picked_in_a_row_is_a_slice(tmp_path, places, shape, kinds):
    found = prepared(tmp_path, [helper.make_node("Gather", ["x", "places"], ["y"], axis=0)], {"places": places},
                     ((3, 4, 5), shape), 17)
    assert [node.op_type for node in found.graph.node] == kinds
