"""Constants that are shared or computed, gathers that exporters write otherwise, and extents that are found late."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder, Value
from tilewright.compiler.onnx.cleaning import clean, name_results
from tilewright.compiler.onnx.shapes import infer_shapes


def test_the_bias_of_a_second_convolution_behind_an_identity_has_its_own_scale():
    model = ModelBuilder("qdq", seed=4)
    x = model.input((1, 3, 6, 6))
    scales = np.float32(0.005), np.float32(0.02)
    levels, step = model.constant(np.array([900, -2000], np.int32)), model.constant(np.float32(x.scale * scales[0]))
    bias = model.node("DequantizeLinear", [levels, step], "bias")
    results: list[Value] = []
    for index, scale in enumerate(scales):
        weights = model.constant(model.rng.integers(-127, 128, (2, 3, 1, 1)).astype(np.int8))
        parameters = [weights, model.constant(scale), model.constant(np.int8(0))]
        name = bias if index == 0 else model.node("Identity", [bias], "shared")
        inputs = [model.dequantised(x), model.node("DequantizeLinear", parameters, f"weights {index}"), name]
        results.append(model.value((1, 2, 6, 6), np.float32(x.scale * scale * 300)))
        model.quantised(model.node("Conv", inputs, f"conv {index}"), results[-1])
    network = assert_layers(model.finish(*results))
    assert all(layer.exact for layer in network.layers)


@pytest.mark.filterwarnings("error")
def test_constants_without_bound_are_folded_without_a_word():
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 2)) for name in "xy")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["h", "w"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])], "g", [x], [y],
        [numpy_helper.from_array(np.array([[np.inf, -np.inf]], np.float32), "h"),
         numpy_helper.from_array(np.ones((2, 2), np.float32), "w")])
    cleaned = clean(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    assert [node.op_type for node in cleaned.graph.node] == ["Add"]


def test_a_gather_nd_along_the_first_axis_is_a_gather():
    indices = numpy_helper.from_array(np.array([[2], [0], [2]]), "indices")
    graph = helper.make_graph(
        [helper.make_node("GatherND", ["x", "indices"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 2))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, 2))], [indices])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    cleaned = clean(proto)
    assert [node.op_type for node in cleaned.graph.node] == ["Gather"]
    x = {"x": np.arange(6, dtype=np.float32).reshape(3, 2)}
    np.testing.assert_array_equal(*(onnxruntime.InferenceSession(each.SerializeToString()).run(None, x)[0]
                                    for each in (proto, cleaned)))


def gather_nd(shape, indices):
    """Return a model of one GatherND, and what ONNX Runtime makes of it and of it cleaned."""
    result = (*indices.shape[:-1], *shape[indices.shape[-1]:])
    graph = helper.make_graph(
        [helper.make_node("GatherND", ["x", "indices"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)], [numpy_helper.from_array(indices, "indices")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    cleaned = clean(proto)
    x = {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}
    return cleaned, [onnxruntime.InferenceSession(each.SerializeToString()).run(None, x)[0]
                     for each in (proto, cleaned)]


@pytest.mark.parametrize(("rows", "columns"), [((2, 3), (4, 1)), ((3,), (2, 2)), ((1, 2), (1,)), ((1,), (3,))])
def test_a_gather_nd_of_a_grid_is_a_gather_for_each_axis(rows, columns):
    rng = np.random.default_rng(1)
    down = rng.integers(-5, 5, rows).reshape(*rows, *(1,) * len(columns))
    right = rng.integers(0, 6, columns).reshape(*(1,) * len(rows), *columns)
    cleaned, results = gather_nd((5, 6, 2), np.stack(np.broadcast_arrays(down, right), -1))
    assert [node.op_type for node in cleaned.graph.node] == ["Gather", "Gather"]
    np.testing.assert_array_equal(*results)


def test_a_gather_nd_of_single_elements_stays():
    cleaned, results = gather_nd((5, 6), np.array([[0, 1], [1, 2], [4, 0]]))
    assert [node.op_type for node in cleaned.graph.node] == ["GatherND"]
    np.testing.assert_array_equal(*results)


def test_extents_that_a_symbol_stood_for_are_found_behind_operators_of_com_microsoft():
    model = ModelBuilder("qoperator", seed=1)
    x = model.conv(model.input((1, 3, 6, 6)), 4, kernel=1)
    joined = model.concat([x, x], x.scale)
    proto = onnx.load_model_from_string(model.finish(model.conv(joined, 2, kernel=1)))
    proto.graph.value_info.append(helper.make_tensor_value_info(joined.name, TensorProto.INT8, (1, "c", "h", "w")))
    known = {value.name: [extent.dim_value for extent in value.type.tensor_type.shape.dim]
             for value in infer_shapes(proto).graph.value_info}
    assert known[joined.name] == [1, 8, 6, 6]


def test_weights_that_a_cast_to_four_bits_makes_are_those_of_onnx_runtime():
    nodes = [helper.make_node("Cast", ["c"], ["levels"], to=TensorProto.INT4),
             helper.make_node("DequantizeLinear", ["levels", "scale"], ["r"]),
             helper.make_node("Add", ["x", "r"], ["y"])]
    constants = {"c": np.float32([-2.5, -1.5, 0.6, 1.5, 6.9]), "scale": np.float32(0.5)}
    graph = helper.make_graph(nodes, "weights", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1,))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, (5,))],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    cleaned = clean(infer_shapes(proto))
    assert "Cast" not in {node.op_type for node in cleaned.graph.node}
    np.testing.assert_array_equal(*(onnxruntime.InferenceSession(
        each.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": np.zeros(1, np.float32)})[0]
        for each in (proto, cleaned)))


def test_a_result_without_a_name_counts_among_those_of_a_split():
    nodes = [helper.make_node("Split", ["x"], ["", "y", ""], axis=1)]
    graph = helper.make_graph(nodes, "thirds", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 6))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 2))])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    name_results(proto)
    assert clean(proto).graph.node[0].output == ["y unnamed 0", "y", "y unnamed 2"]


ALIGNED = {"coordinate_transformation_mode": "align_corners"}
OF_CONSTANTS = {
    "Softmax of opset 11": (11, "Softmax", ["c"], {"axis": 1}),
    "Softmax of opset 13": (13, "Softmax", ["c"], {"axis": 1}),
    "LRN of one image": (13, "LRN", ["c"], {"size": 3, "alpha": 0.5}),
    "BatchNormalization of opset 13": (13, "BatchNormalization", ["c", "v", "v", "v", "v"], {}),
    "MaxPool, SAME_LOWER": (13, "MaxPool", ["c"],
                            {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "Resize to a part of a pixel": (13, "Resize", ["c", "", "s"], {"mode": "linear", **ALIGNED}),
    "nearest Resize to a part of a pixel": (13, "Resize", ["c", "", "s"], {"mode": "nearest", **ALIGNED})}
"""Operators that onnx.reference computes otherwise, or did in another opset."""


@pytest.mark.parametrize(("opset", "operator", "inputs", "attributes"), OF_CONSTANTS.values(), ids=OF_CONSTANTS)
def test_what_is_computed_of_constants_is_what_onnx_runtime_computes(opset, operator, inputs, attributes):
    rng = np.random.default_rng(2)
    constants = {"c": rng.normal(0, 2, (1, 4, 6, 6)), "v": rng.uniform(0.5, 2, 4), "s": np.array([1, 1, 1.4, 1.4])}
    nodes = [helper.make_node(operator, inputs, ["r"], **attributes), helper.make_node("Add", ["x", "r"], ["y"])]
    graph = helper.make_graph(
        nodes, "constants", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1,))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.float32(constants[name]), name) for name in dict.fromkeys(inputs) if name])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    cleaned = clean(infer_shapes(proto))
    assert [node.op_type for node in cleaned.graph.node] == ["Add"]
    results = [onnxruntime.InferenceSession(each.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, {"x": np.zeros(1, np.float32)})[0] for each in (proto, cleaned)]
    np.testing.assert_allclose(*results, rtol=1e-6, atol=1e-6)
