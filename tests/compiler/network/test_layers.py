"""Layers say what the back end needs to know, worked out from the model."""

import numpy as np

from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import MaxPooling
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.models import builtin


def test_lenet5_is_five_layers_and_as_many_macs_as_published():
    network = compile_network(builtin("lenet5"))
    assert [layer.name for layer in network.layers] == [
        "/conv1/Conv", "/conv2/Conv", "/conv3/Conv", "/fc1/Gemm", "/fc2/Gemm"]
    assert [layer.macs for layer in network.layers] == [117_600, 240_000, 48_000, 10_080, 840]
    assert network.macs == 416_520
    first = network.layers[0]
    assert (first.in_shape, first.conv_shape, first.out_shape) == ((1, 32, 32), (6, 28, 28), (6, 14, 14))
    assert first.pool == MaxPooling(kernel=(2, 2), strides=(2, 2), pads=(0, 0, 0, 0))
    assert first.onnx_nodes == ("/conv1/Conv", "/relu1/Relu", "/pool1/MaxPool")
    assert (first.requantisation.low, first.requantisation.high) == (0, 127)


def test_the_border_names_the_models_own_tensors():
    network = compile_network(builtin("lenet5"))
    (image,), (logits,) = network.inputs, network.outputs
    assert (image.onnx_name, image.onnx_dtype, image.onnx_shape) == ("image", "float32", (1, 1, 32, 32))
    assert (logits.onnx_name, logits.onnx_shape, logits.shape) == ("logits", (1, 10), (10, 1, 1))
    assert network.tensors[image.name] is image
    assert network.layers[-1].output == logits.name


def test_the_input_zero_point_is_in_the_bias_and_pads():
    model = ModelBuilder("qoperator", seed=1, zero_point=9)
    layer = compile_network(model.finish(model.conv(model.input((1, 2, 6, 6)), 4, bias="none", groups=2))).layers[0]
    assert layer.pad_value == 9
    assert layer.groups == 2
    np.testing.assert_array_equal(layer.bias, -9 * layer.weights.sum(axis=(1, 2, 3), dtype=np.int32))
    assert layer.weights.shape == (4, 1, 3, 3)


def test_arrays_have_the_types_the_datapath_takes():
    model = ModelBuilder("qdq", seed=2, zero_point=None)
    x = model.conv(model.input((1, 3, 8, 8)), 5, per_channel=False)
    y = model.average(model.max_pool(model.add(x, x)))
    for layer in compile_network(model.finish(y)).layers:
        assert layer.bias.dtype == np.int32
        assert layer.bias.shape == layer.requantisation.scale.shape == (layer.conv_shape[0],)
        assert layer.requantisation.scale.dtype == np.float32
        assert layer.weights is None or layer.weights.dtype == np.int8


def test_an_average_is_a_sum_whose_scale_holds_the_count():
    model = ModelBuilder("qdq", zero_point=0)
    x = model.input((1, 3, 5, 4))
    y = model.average(x)
    layer = compile_network(model.finish(y)).layers[0]
    assert (layer.kind, layer.kernel, layer.groups, layer.macs) == ("average", (5, 4), 3, 0)
    assert layer.requantisation.scale[0] == np.float32(x.scale / np.float32(y.scale * np.float32(20)))


def test_unsigned_tensors_are_marked_and_shifted():
    model = ModelBuilder("qdq", dtype=np.uint8, zero_point=130)
    x = model.input((1, 3, 8, 8))
    network = compile_network(model.finish(model.add(model.conv(x, 3, pads=(1, 1, 1, 1)), x)))
    residual = network.layers[0].residual
    assert residual.unsigned
    assert (residual.zero_a, residual.zero_b, residual.zero_out) == (2, 2, 2)
    assert all(info.unsigned and info.zero_point == 2 for info in network.tensors.values())


def test_layers_of_nodes_with_one_name_have_names_of_their_own():
    model = ModelBuilder("qdq")
    y = model.conv(model.conv(model.input((1, 3, 8, 8)), 3), 3)
    for node in model.nodes:
        node.name = "same"
    assert [layer.name for layer in compile_network(model.finish(y)).layers] == ["same", "same#2"]
