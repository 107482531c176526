"""Networks as onnxruntime.quantization writes them: a small ResNet with every option that changes the graph."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from tests.cli.test_app import invoke
from tests.support.exactness import assert_exact, assert_layers
from tilewright.runtime.oracle.exact_products import SATURATING
from tilewright.runtime.oracle.onnx_runtime import Reference

SHAPE = (1, 3, 32, 32)


class Calibration(CalibrationDataReader):
    """Four random images."""

    def __init__(self):
        rng = np.random.default_rng(1)
        self.images = iter(rng.standard_normal((4, *SHAPE)).astype(np.float32))

    def get_next(self):
        image = next(self.images, None)
        return None if image is None else {"image": image}


class Float:
    """A float network under construction; each method returns the name of its result."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.nodes, self.weights = [], []

    def node(self, op, *inputs, **attrs):
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attrs))
        return name

    def weight(self, *shape):
        name = f"weight{len(self.weights)}"
        values = self.rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def conv(self, x, inputs, outputs, kernel, stride=1):
        pad = kernel // 2
        return self.node("Conv", x, self.weight(outputs, inputs, kernel, kernel), self.weight(outputs),
                         kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def block(self, x, inputs, outputs, stride):
        y = self.conv(self.node("Relu", self.conv(x, inputs, outputs, 3, stride)), outputs, outputs, 3)
        shortcut = x if stride == 1 else self.conv(x, inputs, outputs, 1, stride)
        return self.node("Relu", self.node("Add", y, shortcut))


def resnet():
    """Return a float ResNet with a 7×7 stem, four residual blocks and 0.5 million MACs."""
    net = Float()
    x = net.node("Relu", net.conv("image", 3, 8, 7, 2))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for inputs, outputs, stride in ((8, 8, 1), (8, 16, 2), (16, 16, 1), (16, 24, 2)):
        x = net.block(x, inputs, outputs, stride)
    x = net.node("Flatten", net.node("GlobalAveragePool", x), axis=1)
    x = net.node("Gemm", x, net.weight(10, 24), net.weight(10), transB=1)
    graph = helper.make_graph(
        net.nodes, "resnet", [helper.make_tensor_value_info("image", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, (1, 10))], net.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def quantised(folder, form, activations, symmetric, per_channel):
    plain, prepared, target = (folder / name for name in ("plain.onnx", "prepared.onnx", "quantised.onnx"))
    onnx.save(resnet(), plain)
    quant_pre_process(plain, prepared)
    quantize_static(prepared, target, Calibration(), quant_format=form, per_channel=per_channel,
                    activation_type=activations, weight_type=QuantType.QInt8,
                    extra_options={"ActivationSymmetric": symmetric, "WeightSymmetric": True})
    return target


@pytest.mark.parametrize("per_channel", [True, False], ids=["per channel", "per tensor"])
@pytest.mark.parametrize("activations", [QuantType.QInt8, QuantType.QUInt8])
@pytest.mark.parametrize(("form", "symmetric"), [
    (QuantFormat.QDQ, True), (QuantFormat.QDQ, False), (QuantFormat.QOperator, False),
])
def test_a_residual_network(tmp_path, form, activations, symmetric, per_channel):
    network = assert_exact(quantised(tmp_path, form, activations, symmetric, per_channel))
    convolutions = [layer for layer in network.layers if layer.kind == "conv"]
    assert len(convolutions) == 1 + 4 * 2 + 2 + 1
    assert sum(layer.residual is not None for layer in convolutions) == 4
    assert len(network.layers) == len(convolutions) + 1


def test_the_average_behind_a_relu_that_one_form_leaves_in_float_is_exact(tmp_path):
    """Symmetric QOperator models keep each ReLU in float, and with the last one the global average behind it."""
    model = quantised(tmp_path, QuantFormat.QOperator, QuantType.QInt8, True, True)
    network = assert_layers(model, levels=2)
    assert all(layer.exact for layer in network.layers)
    assert Reference(model).rounded_in_float == ()


@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator])
def test_what_the_quantiser_makes_by_default_is_equal_to_onnx_runtime(tmp_path, form):
    """uint8 activations by int8 weights: the products that saturate on x86 without VNNI."""
    model = quantised(tmp_path, form, QuantType.QUInt8, False, True)
    for command in ("run", "compare"):
        done = invoke(command, model)
        assert done.exit_code == 0, done.output
        assert "not compared" not in done.stdout
    assert_exact(model, samples=1, kernels=SATURATING)
