"""ONNX Runtime's integer tensors are really those of its integer kernels, and quantisation is really its own."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnxruntime import GraphOptimizationLevel

from tests.support.exactness import random_inputs
from tests.support.onnx_models import FORMS, ModelBuilder
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.models import BUILTIN, builtin
from tilewright.runtime.oracle.conversion import as_int8, dequantise_output, quantise_input
from tilewright.runtime.oracle.onnx_runtime import Reference, run_reference, session


def every_operator(form, dtype=np.int8):
    """Return a model with every supported operator."""
    model = ModelBuilder(form, dtype=dtype, zero_point=None)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    y = model.max_pool(model.add(model.conv(x, 4, pads=(1, 1, 1, 1)), x))
    z = model.average(y) if dtype is np.uint8 and form == "qoperator" else model.average(model.relu(y))
    return model.finish(model.gemm(model.flatten(z), 3))


@pytest.mark.parametrize("form", FORMS)
def test_no_operator_that_rounds_is_left_in_float(form):
    reference = Reference(every_operator(form))
    assert reference.rounded_in_float == ()
    integer = {operator.op for operator in reference.operators if operator.integer}
    assert {"QLinearConv", "QLinearAdd", "QLinearGlobalAveragePool", "QGemm", "MaxPool"} <= integer


def test_an_operator_left_in_float_is_seen():
    """A ReLU between convolution and quantisation keeps the convolution in float."""
    model = ModelBuilder("qdq", zero_point=0)
    content = model.finish(model.conv(model.input((1, 3, 8, 8)), 4, clip="Relu"))
    assert [operator.op for operator in Reference(content).rounded_in_float] == ["FusedConv"]


@pytest.mark.parametrize("name", BUILTIN)
def test_outputs_are_those_of_the_untouched_session(name):
    """The session that shows everything computes what ONNX Runtime computes with all its fusions."""
    content = builtin(name).read_bytes()
    reference, untouched = Reference(content), session(content)
    assert reference.rounded_in_float == ()
    network = compile_network(content)
    rng = np.random.default_rng(1)
    for _ in range(10):
        inputs = random_inputs(network, rng)
        np.testing.assert_array_equal(reference.run(inputs)["logits"], untouched.run(["logits"], inputs)[0])


@pytest.mark.parametrize("form", FORMS)
def test_every_tensor_of_the_network_is_there(form):
    content = every_operator(form)
    network = compile_network(content)
    tensors = run_reference(content, random_inputs(network, np.random.default_rng(0)))
    assert network.tensors.keys() <= tensors.keys()
    for info in network.tensors.values():
        assert tensors[info.name].dtype == np.int8
        assert tensors[info.name].size == np.prod(info.shape)


def test_a_model_may_be_a_path(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(every_operator("qdq"))
    inputs = {"input0": np.ones((1, 3, 8, 8), np.float32)}
    for name, tensor in run_reference(path, inputs).items():
        np.testing.assert_array_equal(tensor, run_reference(path.read_bytes(), inputs)[name])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("scale", [0.02, 0.0137795275, 0.5])
def test_quantisation_is_onnx_runtimes(dtype, scale):
    """A hundred thousand floats, half of them exact ties or next to one."""
    model = ModelBuilder("qoperator", dtype=dtype, zero_point=None, seed=3)
    x = model.input((1, 10, 100, 100))
    model.initializers[0].CopyFrom(onnx.numpy_helper.from_array(np.float32(scale), model.initializers[0].name))
    content = model.finish(model.max_pool(model.max_pool(type(x)(x.name, x.shape, np.float32(scale), x.zero_point))))
    info = compile_network(content).inputs[0]
    rng = np.random.default_rng(2)
    values = rng.uniform(-200, 200, info.onnx_shape).astype(np.float32) * info.scale
    ties = (np.floor(values / info.scale) + np.float32(0.5)) * info.scale
    values = np.where(rng.random(info.onnx_shape) < 0.5, values, np.nextafter(ties, rng.choice([-1, 1], ties.shape)))
    values = values.astype(np.float32)
    tensors = run_reference(content, {"input0": values})
    np.testing.assert_array_equal(quantise_input(info, values), as_int8(tensors[info.name])[0])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_dequantisation_is_onnx_runtimes(dtype):
    content = every_operator("qoperator", dtype)
    network = compile_network(content)
    info = network.outputs[0]
    tensors = run_reference(content, random_inputs(network, np.random.default_rng(0)))
    output = dequantise_output(info, as_int8(tensors[info.name]).reshape(info.shape))
    assert output.dtype == np.float32
    np.testing.assert_array_equal(output, tensors[info.onnx_name])


def test_inputs_must_be_as_the_model_says():
    info = compile_network(builtin("lenet5")).inputs[0]
    with pytest.raises(ValueError, match=r"'image' .*not float64 of shape"):
        quantise_input(info, np.zeros((32, 32)))


def test_floats_times_quantised_weights_stay_floats():
    """ONNX Runtime's own choice rounds them to 8 bits: a hundredth of a result in every row."""
    model = ModelBuilder("qdq", seed=4)
    model.inputs.append(helper.make_tensor_value_info("floats", TensorProto.FLOAT, (1, 32)))
    levels = model.rng.integers(-127, 128, (32, 9)).astype(np.int8)
    weights = model.node("DequantizeLinear", [model.constant(each) for each in (levels, np.float32(0.01), np.int8(0))],
                         "weights")
    model.outputs.append(helper.make_tensor_value_info(model.node("MatMul", ["floats", weights], "y"),
                                                       TensorProto.FLOAT, (1, 9)))
    x = np.random.default_rng(1).standard_normal((1, 32)).astype(np.float32)
    (y,) = session(model.proto().SerializeToString()).run(None, {"floats": x})
    np.testing.assert_allclose(y, x @ (levels * np.float32(0.01)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_a_pooling_of_which_it_infers_another_shape_runs(op):
    """Memory planned with the wrong shape would end in an error: findings/onnxruntime-ceil-shapes.sh."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["sums"]), helper.make_node("Conv", ["sums", "w"], ["first"]),
             helper.make_node(op, ["x"], ["picked"], kernel_shape=[1, 1], strides=[2, 2], ceil_mode=1),
             helper.make_node("Conv", ["picked", "w"], ["second"])]
    x, first, second = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 1, *extents))
                        for name, extents in (("x", (4, 4)), ("first", (2, 2)), ("second", ("rows", "columns"))))
    weights = helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 2, 2], [1.] * 4)
    model = helper.make_model(helper.make_graph(nodes, "sums", [x], [first, second], [weights]),
                              opset_imports=[helper.make_opsetid("", 13)], ir_version=9)
    run = session(model.SerializeToString(), level=GraphOptimizationLevel.ORT_DISABLE_ALL)
    assert run.run(None, {"x": np.ones((1, 1, 4, 4), np.float32)})[1].ravel().tolist() == [4]
