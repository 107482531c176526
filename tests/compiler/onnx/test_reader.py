"""Any file given as a model ends in a graph or in one clear sentence."""

import re
import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.exactness import assert_exact, assert_layers
from tests.support.onnx_models import FORMS, ModelBuilder
from tilewright.compiler.errors import (
    BadModelError,
    CompileError,
    ModelTooLargeError,
    UnsupportedModelError,
    UnsupportedNodeError,
)
from tilewright.compiler.network.layers import CoreLayer, Network
from tilewright.compiler.onnx import reader as frontend
from tilewright.compiler.onnx.reader import load
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import PRESETS
from tilewright.models import builtin
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.standard_file import standard_file


def small(form="qdq", dtype=np.int8):
    """Return a model with every kind of operator, as a protobuf."""
    model = ModelBuilder(form, dtype=dtype, zero_point=None)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    y = model.average(model.max_pool(model.add(model.conv(x, 4, pads=(1, 1, 1, 1)), x)))
    model.output(model.gemm(model.flatten(y), 3))
    return model.proto()


def of_nodes(*nodes, shape=(1, 3, 8, 8), initializers=(), opset=17):
    graph = helper.make_graph(
        list(nodes), "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["?"] * 4)], list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def refuse(model, error, sentence):
    """Expect ``sentence``, a regular expression, to be the whole message."""
    content = model if isinstance(model, (bytes, str)) else model.SerializeToString()
    with pytest.raises(error) as caught:
        compile_network(content)
    assert re.fullmatch(sentence, str(caught.value)), str(caught.value)


def outcome(content):
    """Return the network, or the sentence that refuses it; anything else comes through."""
    try:
        return compile_network(content)
    except CompileError as error:
        return str(error)


def initializer(proto, name):
    return next(tensor for tensor in proto.graph.initializer if tensor.name == name)


def test_a_graph_has_static_types_and_constants():
    graph = load(builtin("lenet5"))
    assert graph.tensors["image"].shape == (1, 1, 32, 32)
    assert graph.constants["conv1.weight_quantized"].dtype == np.int8
    assert {node.op for node in graph.nodes} == {
        "QuantizeLinear", "DequantizeLinear", "Conv", "Relu", "MaxPool", "Flatten", "Gemm"}


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x08"])
def test_no_model_at_all(content):
    refuse(content, BadModelError, "Model must be an ONNX file.*")


def test_a_file_that_is_not_there(tmp_path):
    refuse(str(tmp_path / "none.onnx"), BadModelError, "Model '.*none.onnx' cannot be read: No such file or directory")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(60))
def test_broken_files_end_in_a_sentence(form, seed):
    """Cut short, or with up to five bytes changed: a compile error or a model, never anything else."""
    rng = np.random.default_rng(seed)
    content = bytearray(small(form).SerializeToString())
    if seed % 3 == 0:
        del content[rng.integers(len(content)):]
    else:
        for position in rng.integers(len(content), size=rng.integers(1, 6)):
            content[position] = rng.integers(256)
    assert isinstance(outcome(bytes(content)), (Network, str))


@pytest.mark.parametrize("value", [0.0, -0.5, float("nan"), float("inf")])
@pytest.mark.parametrize("form", FORMS)
def test_scales_must_be_positive_and_finite(form, value):
    model = small(form)
    node = next(node for node in model.graph.node if node.op_type in ("QLinearConv", "QuantizeLinear"))
    initializer(model, node.input[1]).CopyFrom(numpy_helper.from_array(np.float32(value), node.input[1]))
    refuse(model, BadModelError, f"Scale '.*' of node '.*' must be positive and finite, not {value!r}")


def test_scales_must_be_within_reach_of_each_other():
    model = small("qoperator")
    name = next(node for node in model.graph.node if node.op_type == "QLinearConv").input[4]
    initializer(model, name).CopyFrom(numpy_helper.from_array(np.full(4, 1e-38, np.float32), name))
    refuse(model, BadModelError, "Scales of node 'QLinearConv1' are too far apart: Scale must be .*")


def test_a_dynamic_batch_is_one():
    model = small()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "N"
    assert assert_exact(model.SerializeToString()).inputs[0].onnx_shape == (1, 3, 8, 8)


def test_other_dimensions_must_be_fixed():
    model = small()
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    refuse(model, UnsupportedModelError, "Model must have inputs of fixed shapes, but for the batch, and input "
           r"'input0' \(1,3,height,8\) has open dimensions")


def test_an_input_without_numbers_is_refused_and_the_way_out_helps(tmp_path):
    model = small()
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 0
    onnx.save(model, tmp_path / "empty.onnx")
    with pytest.raises(UnsupportedModelError, match="input0") as caught:
        load(tmp_path / "empty.onnx")
    assert "(1,3,0,8)" in str(caught.value)
    assert "--shape input0=1,3," in caught.value.way_out
    graph = load(standard_file(tmp_path / "empty.onnx", {"input0": (1, 3, 8, 8)})[0])
    assert graph.tensors["input0"].shape == (1, 3, 8, 8)


def test_the_batch_must_be_one():
    model = small()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    refuse(model, UnsupportedModelError, "Input 'input0' must have a batch of 1, not 4; "
           "export it for one image, and compile it with --batch 4")


def test_a_product_of_floats_by_weights_of_few_bits_is_refused_with_the_way_to_integers():
    model = of_nodes(helper.make_node("MatMulNBits", ["x"], ["y"], "product", domain="com.microsoft"))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(UnsupportedNodeError, match="product") as caught:
        compile_network(model.SerializeToString())
    assert "tilewright quantise --weights int4" in caught.value.way_out


def test_operators_that_nothing_computes_are_refused_all_of_them():
    nodes = [helper.make_node("Det", ["x"], ["d"], "first"), helper.make_node("Det", ["x"], ["e"], "second"),
             helper.make_node("Add", ["d", "e"], ["y"])]
    model = of_nodes(*nodes)
    refuse(model, UnsupportedNodeError,
           r"Node 'first' \(Det\) is not supported: the operator is not compiled; "
           "cut the model so that this node runs outside, or replace it")
    with pytest.raises(UnsupportedNodeError) as caught:
        compile_network(model.SerializeToString())
    assert [other.node for other in caught.value.others] == ["second"]


def first_conv(form, dtype, zero_points, low, high):
    """Return a model whose first convolution has weights from ``low`` to ``high``, and those zero points."""
    model = small(form, dtype)
    conv = next(node for node in model.graph.node if node.op_type == "QLinearConv")
    weights, zero = initializer(model, conv.input[3]), initializer(model, conv.input[5])
    shape = tuple(weights.dims)
    drawn = np.random.default_rng(0).integers(low, high + 1, shape).astype(dtype)
    weights.CopyFrom(numpy_helper.from_array(drawn, weights.name))
    zero.CopyFrom(numpy_helper.from_array(np.array(zero_points, dtype), zero.name))
    return model.SerializeToString()


@pytest.mark.parametrize("zero_points", [(128, 128, 128, 128), (127, 128, 129, 127)])
def test_unsigned_weights_become_signed(zero_points):
    network = assert_exact(first_conv("qoperator", np.uint8, zero_points, 1, 254))
    assert network.layers[0].weights.dtype == np.int8


def test_weights_keep_their_zero_points():
    assert_exact(first_conv("qoperator", np.int8, (0, 3, -3, 1), -100, 100))


def test_weights_beyond_int8_stay_one_layer():
    network = assert_layers(first_conv("qoperator", np.uint8, (0, 200, 100, 255), 0, 255))
    assert all(layer.exact for layer in network.layers)
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    wide = next(layer for layer in network.layers if layer.kind == "conv")
    assert (wide.in_shape[0], wide.weights.dtype) == (3, np.int16)


def test_contrib_operators_need_their_inputs_and_attributes():
    model = small("qoperator")
    add = next(node for node in model.graph.node if node.op_type == "QLinearAdd")
    attribute = helper.make_attribute("axis", 1)
    add.attribute.append(attribute)
    refuse(model, BadModelError, r"Node 'QLinearAdd3' \(QLinearAdd\) must have the attributes none, each of its type, "
           "not 'axis'")
    add.attribute.remove(attribute)
    del add.input[3:]
    refuse(model, BadModelError, r"Node 'QLinearAdd3' \(QLinearAdd\) must have all its inputs and an output")


def test_levels_that_are_read_by_another_quantisation_are_the_same_bytes(tmp_path):
    model = small("qoperator")
    conv = [node for node in model.graph.node if node.op_type == "QLinearConv"][1]
    name = conv.input[1]
    initializer(model, name).CopyFrom(numpy_helper.from_array(np.float32(0.125), name))
    onnx.save(model, tmp_path / "reread.onnx")
    compared = run_model(ModelSource.of(tmp_path / "reread.onnx"), PRESETS["base"], "fast", None).comparison
    assert (compared.matches, compared.loose) == (True, 0)
    assert compared.compared >= 5


def test_huge_tensors_are_refused_before_they_are_made():
    model = small()
    tensor = TensorProto(name="huge", data_type=TensorProto.FLOAT, dims=[2**40, 2**40])
    model.graph.initializer.append(tensor)
    refuse(model, ModelTooLargeError, "Tensor 'huge' must have at most 1073741824 bytes, not [0-9]+")
    model = small()
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 2**40
    refuse(model, ModelTooLargeError, "Tensor '.*' must have at most 1073741824 elements, not [0-9]+")


def test_large_files_are_refused_before_they_are_read(tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    path.write_bytes(bytes(11))
    monkeypatch.setattr(frontend, "MAX_MODEL_BYTES", 10)
    refuse(str(path), ModelTooLargeError, "Model must have at most 10 bytes, not 11")


def with_function(op, domain=""):
    """Return a model that computes its output by a function, in which is one operator."""
    model = small()
    model.functions.append(helper.make_function(
        "d", "f", ["a"], ["b"], [helper.make_node(op, ["a"], ["b"], domain=domain)],
        [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)]))
    model.opset_import.append(helper.make_opsetid("d", 1))
    end = model.graph.node[-1]
    name, end.output[0] = end.output[0], "before"
    model.graph.node.append(helper.make_node("f", ["before"], [name], domain="d"))
    return model


def test_functions_are_inlined():
    network = assert_exact(with_function("Identity").SerializeToString())
    assert len(network.layers) == len(compile_network(small().SerializeToString()).layers)


def test_functions_that_call_themselves_are_refused():
    refuse(with_function("f", "d"), (BadModelError, UnsupportedModelError), "Model must .*")


@pytest.mark.parametrize(("op", "extent"), [("ConstantOfShape", 2**15), ("Expand", 2**15), ("Range", 2**28)])
def test_folding_stays_within_limits(op, extent):
    """Small constants that make a large tensor: it is not made."""
    shape = numpy_helper.from_array(np.array([extent, extent]), "shape")
    one, limit = (numpy_helper.from_array(np.array(value, np.float32), name)
                  for value, name in ((1, "one"), (extent, "n")))
    inputs = {"ConstantOfShape": ["shape"], "Expand": ["one", "shape"], "Range": ["one", "n", "one"]}[op]
    sum_axes = numpy_helper.from_array(np.arange(1 if op == "Range" else 2), "axes")
    nodes = [helper.make_node(op, inputs, ["large"]),
             helper.make_node("ReduceSum", ["large", "axes"], ["sum"], keepdims=0),
             helper.make_node("Add", ["x", "sum"], ["y"])]
    model = of_nodes(*nodes, initializers=[shape, one, limit, sum_axes])
    tracemalloc.start()
    assert isinstance(outcome(model.SerializeToString()), (Network, str))
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()


def save_external(folder, location):
    model = small()
    tensor = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    (folder / "weights.bin").write_bytes(tensor.raw_data)
    onnx.external_data_helper.set_external_data(tensor, location)
    tensor.ClearField("raw_data")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"


def test_external_data_beside_the_model_is_read(tmp_path):
    path = save_external(tmp_path, "weights.bin")
    inside, outside = compile_network(small().SerializeToString()), compile_network(path)
    for one, other in zip(inside.layers, outside.layers, strict=True):
        np.testing.assert_array_equal(one.bias, other.bias)


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "none.bin", ""])
def test_external_data_elsewhere_is_refused(tmp_path, location):
    (tmp_path / "model").mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(10000))
    path = save_external(tmp_path / "model", location)
    refuse(str(path), BadModelError,
           f"External data of tensor '.*' must be a file in the model's folder, not {location!r}")


def test_external_data_needs_a_folder(tmp_path):
    content = save_external(tmp_path, "weights.bin").read_bytes()
    refuse(content, BadModelError, "Tensor '.*' has external data; give the model as a file, not as bytes")


def test_shapes_computed_from_constants_are_folded():
    """Flatten as older exporters write it: Shape, Gather, Unsqueeze, Concat and Reshape."""
    model = ModelBuilder("qdq")
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    shape = model.node("Shape", ["input0"], "shape")
    batch = model.node("Gather", [shape, model.constant(np.int64(0))], "batch", axis=0)
    batch = model.node("Unsqueeze", [batch, model.constant(np.array([0]))], "batches")
    target = model.node("Concat", [batch, model.constant(np.array([-1]))], "target", axis=0)
    flat = model.flatten(x)
    flatten = next(node for node in model.nodes if node.op_type == "Flatten")
    flatten.CopyFrom(helper.make_node("Reshape", [flatten.input[0], target], list(flatten.output)))
    network = assert_exact(model.finish(model.gemm(flat, 5)))
    assert network.layers[-1].kernel == (6, 6)


def test_identities_and_weights_quantised_in_the_model_are_folded():
    model = ModelBuilder("qdq", seed=2)
    content = onnx.load_from_string(model.finish(model.conv(model.input((1, 3, 8, 8)), 4, per_channel=False)))
    graph = content.graph
    weights = next(node for node in graph.node if node.output[0].startswith("weights"))
    scale = numpy_helper.to_array(initializer(content, weights.input[1]))
    levels = numpy_helper.to_array(initializer(content, weights.input[0]))
    graph.initializer.append(numpy_helper.from_array((levels * scale).astype(np.float32), "float_weights"))
    graph.node.insert(0, helper.make_node("QuantizeLinear", ["float_weights", *weights.input[1:]], ["levels"]))
    weights.input[0] = "levels"
    end = graph.node[-1]
    end.output[0] = "before"
    graph.node.extend([helper.make_node("Dropout", ["before"], ["after"]),
                       helper.make_node("Identity", ["after"], [graph.output[0].name])])
    network = assert_exact(content.SerializeToString())
    np.testing.assert_array_equal(network.layers[0].weights, levels)


def test_a_split_has_as_many_outputs_as_it_says():
    model = of_nodes(helper.make_node("Split", ["x"], ["y", "z"], "halves", axis=1, num_outputs=1), opset=18)
    refuse(model, BadModelError, r"Node 'halves' \(Split\) must have as many outputs as it states, 1, not 2")
