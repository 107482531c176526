"""Forms of whole models at the front end: batches on the core, constants as outputs, shapes that tell others."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.errors import BadModelError, UnsupportedNodeError
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.onnx.reader import load
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.session import InferenceSession

FLOAT, UINT8, INT8, INT64 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT64


def model_of(nodes, inputs, outputs, constants=None, opset=18):
    """Return a checked model; inputs and outputs are name → (type, shape)."""
    values = [[helper.make_tensor_value_info(name, *each) for name, each in border.items()]
              for border in (inputs, outputs)]
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    model = helper.make_model(helper.make_graph(nodes, "net", *values, tensors), ir_version=8,
                              opset_imports=[helper.make_opsetid("", opset)])
    onnx.checker.check_model(model)
    return model


def assert_as_onnx_runtime(model, feed, folder, rtol=0.0):
    """Compare all outputs with ONNX Runtime's."""
    path = folder / "net.onnx"
    onnx.save(model, path)
    wanted = onnx_session(path).run(None, feed)
    session = InferenceSession(path)
    for ours, theirs in zip(session.run(None, feed), wanted, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)
    return session


RNG = np.random.default_rng(3)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_the_core_takes_batches(tmp_path):
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])]
    model = model_of(nodes, {"x": (FLOAT, [3, 2, 5, 4])}, {"y": (FLOAT, [3, 4, 5, 4])}, {"w": floats(4, 2, 3, 3)})
    assert_as_onnx_runtime(model, {"x": floats(3, 2, 5, 4)}, tmp_path, 1e-5)


def test_an_output_that_is_an_input_is_a_copy_of_it(tmp_path):
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, [2, 3])},
                     {"y": (FLOAT, [2, 3]), "x": (FLOAT, [2, 3])})
    assert_as_onnx_runtime(model, {"x": floats(2, 3)}, tmp_path, 0)


@pytest.mark.parametrize("opset", [17, 22])
def test_a_product_behind_ceil_mode_fits_the_windows_that_are_computed(opset, tmp_path):
    """By ONNX's rule of opset 17 there are 3 columns, the last of them of a window that begins behind the image."""
    window = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 1, 0, 1], "ceil_mode": 1}
    nodes = [helper.make_node("MaxPool", ["x"], ["p"], **window),
             helper.make_node("Flatten", ["p"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"])]
    image, weights = floats(1, 3, 4, 3), floats(12, 5)
    model, same = (model_of(nodes, {"x": (FLOAT, [1, 3, 4, 3])}, {"y": (FLOAT, [1, 5])}, {"w": weights}, opset=each)
                   for each in (opset, 22))
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    wanted = onnx_session(same.SerializeToString()).run(None, {"x": image})
    np.testing.assert_allclose(InferenceSession(path).run(None, {"x": image}), wanted, rtol=1e-5, atol=1e-5)


def test_a_contradiction_beside_ceil_mode_is_named():
    nodes = [helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
             helper.make_node("Flatten", ["p"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"], "dense")]
    model = model_of(nodes, {"x": (FLOAT, [1, 3, 4, 3])}, {"y": (FLOAT, [1, 5])}, {"w": floats(99, 5)}, opset=17)
    with pytest.raises(BadModelError, match=r"contradict .*'dense' \(MatMul\)"):
        load(model.SerializeToString())


def test_a_constant_output_is_copied(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["y"]),
             helper.make_node("Constant", [], ["anchors"], value=numpy_helper.from_array(floats(2, 3))),
             helper.make_node("Constant", [], ["sizes"], value_ints=[3, 5]),
             helper.make_node("Add", ["anchors", "x"], ["z"])]
    outputs = {"y": (FLOAT, [2, 3]), "anchors": (FLOAT, [2, 3]), "sizes": (INT64, [2]), "z": (FLOAT, [2, 3])}
    assert_as_onnx_runtime(model_of(nodes, {"x": (FLOAT, [2, 3])}, outputs), {"x": floats(2, 3)}, tmp_path)


def test_shapes_that_fold_tell_further_ones(tmp_path):
    nodes = [helper.make_node("Shape", ["x"], ["all"]),
             helper.make_node("Gather", ["all", "one"], ["channels"]),
             helper.make_node("Concat", ["channels", "rest"], ["wanted"], axis=0),
             helper.make_node("Reshape", ["x", "wanted"], ["r"]),
             helper.make_node("Shape", ["r"], ["known"]),
             helper.make_node("Gather", ["known", "one"], ["columns"]),
             helper.make_node("Concat", ["columns", "rest"], ["last"], axis=0),
             helper.make_node("Reshape", ["r", "last"], ["y"])]
    constants = {"one": np.array([1]), "rest": np.array([-1])}
    model = model_of(nodes, {"x": (FLOAT, [2, 3, 4])}, {"y": (FLOAT, [8, 3])}, constants)
    assert {node.op for node in load(model.SerializeToString()).nodes} == {"Reshape"}
    assert_as_onnx_runtime(model, {"x": floats(2, 3, 4)}, tmp_path)


@pytest.mark.parametrize(("dtype", "numpy_dtype"), [(UINT8, np.uint8), (INT8, np.int8)])
def test_integers_without_a_scale_are_pooled(dtype, numpy_dtype, tmp_path):
    node = helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2], pads=[1, 0, 0, 1])
    move = helper.make_node("Transpose", ["p"], ["y"], perm=[0, 2, 3, 1])
    model = model_of([node, move], {"x": (dtype, [1, 3, 4, 5])}, {"y": (dtype, [1, 4, 5, 3])})
    bounds = np.iinfo(numpy_dtype)
    feed = {"x": RNG.integers(bounds.min, bounds.max + 1, (1, 3, 4, 5)).astype(numpy_dtype)}
    session = assert_as_onnx_runtime(model, feed, tmp_path)
    assert session.report.layers[0].kind != "core"


def test_group_normalisation_has_the_shape_of_its_input(tmp_path):
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)
    model = model_of([node, helper.make_node("Relu", ["y"], ["z"])], {"x": (FLOAT, [1, 4, 3, 3])},
                     {"z": (FLOAT, [1, 4, 3, 3])}, {"s": floats(4), "b": floats(4)}, opset=21)
    assert_as_onnx_runtime(model, {"x": floats(1, 4, 3, 3)}, tmp_path, 1e-5)


@pytest.mark.parametrize("shape", [(2, 4, 3), (4,)])
def test_matrix_products_of_other_ranks(shape, tmp_path):
    scale, zero, weights = np.float32(0.05), np.int8(3), RNG.integers(-128, 128, shape).astype(np.int8)
    constants = {"s": np.array(scale), "z": np.array(zero), "w": weights}
    node = helper.make_node("QLinearMatMul", ["x", "s", "z", "w", "s", "z", "s", "z"], ["y"])
    result = [2, 2, 3] if len(shape) == 3 else [2, 2]
    model = model_of([node], {"x": (INT8, [2, 2, 4])}, {"y": (INT8, result)}, constants)
    feed = {"x": RNG.integers(-128, 128, (2, 2, 4)).astype(np.int8)}
    if len(shape) == 3:     # the runtime's own kernel takes no vector
        assert_as_onnx_runtime(model, feed, tmp_path)
    on_core = [layer for layer in compile_network(model.SerializeToString()).layers if isinstance(layer, CoreLayer)]
    assert [layer.reason for layer in on_core] == ([] if len(shape) == 3 else ["its weights have the shape [4]"])


FUNCTIONS = {
    "MeanVarianceNormalization": ({}, [(FLOAT, [2, 3, 4, 5])]),
    "LayerNormalization": ({"axis": 2}, [(FLOAT, [2, 3, 4, 5]), (FLOAT, [2, 3, 1, 1]), (FLOAT, [2, 3, 1, 1])]),
    "DynamicQuantizeLinear": ({}, [(UINT8, [2, 3, 4, 5]), (FLOAT, []), (UINT8, [])]),
    "CenterCropPad": ({"axes": [2, 3]}, [(FLOAT, [2, 3, 6, 2])]),
}


@pytest.mark.parametrize("op", FUNCTIONS)
def test_operators_that_onnx_defines_by_others_are_expanded(op, tmp_path):
    attrs, results = FUNCTIONS[op]
    constants = {"LayerNormalization": {"s": floats(4, 5), "b": floats(4, 5)},
                 "CenterCropPad": {"size": np.array([6, 2])}}.get(op, {})
    names = [f"y{index}" for index in range(len(results))]
    node = helper.make_node(op, ["x", *constants], names, **attrs)
    model = model_of([node], {"x": (FLOAT, [2, 3, 4, 5])}, dict(zip(names, results, strict=True)), constants)
    assert_as_onnx_runtime(model, {"x": floats(2, 3, 4, 5)}, tmp_path, 1e-5)


def test_an_operator_whose_definition_nothing_computes_is_refused_by_its_own_name():
    model = model_of([helper.make_node("Bernoulli", ["x"], ["y"], "toss")], {"x": (FLOAT, [3])}, {"y": (FLOAT, [3])})
    with pytest.raises(UnsupportedNodeError, match=r"^Node 'toss' \(Bernoulli\) is not supported: "):
        compile_network(model.SerializeToString())


def test_a_float_that_is_no_number_goes_through_what_is_not_quantised(tmp_path):
    model = model_of([helper.make_node("IsNaN", ["x"], ["y"])], {"x": (FLOAT, [3])}, {"y": (TensorProto.BOOL, [3])})
    assert_as_onnx_runtime(model, {"x": np.array([1, np.nan, np.inf], np.float32)}, tmp_path)


@pytest.mark.parametrize("training", [{"constants": {"t": np.array(True)}}, {"inputs": {"t": (TensorProto.BOOL, [])}}])
def test_dropout_in_training_is_refused(training):
    node = helper.make_node("Dropout", ["x", "", "t"], ["y"], "drop")
    model = model_of([node, helper.make_node("Relu", ["y"], ["z"])],
                     {"x": (FLOAT, [3]), **training.get("inputs", {})}, {"z": (FLOAT, [3])},
                     training.get("constants"))
    sentence = "Node 'drop' (Dropout) is not supported: it drops values, as in training; export the model for inference"
    with pytest.raises(UnsupportedNodeError, match=f"^{re.escape(sentence)}$"):
        compile_network(model.SerializeToString())
