"""Products whose result stays float leave the datapath as whole sums, and are scaled by the host or the core."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper

from tests.support.exactness import assert_layers
from tilewright.compiler.compile import fit_network
from tilewright.compiler.network.layers import CoreLayer, Layer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import PRESETS, Machine
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input
from tilewright.runtime.oracle.onnx_runtime import run_reference

CHANNELS, OUTPUTS = 16, 10
SHAPES = {"Gemm": (1, CHANNELS), "Gemm rows": (5, CHANNELS), "MatMul": (1, 5, CHANNELS), "Conv": (1, CHANNELS, 8, 8),
          "line": (1, CHANNELS, 9)}


class FloatProduct:
    """A product of a dequantised input by dequantised constants, and its constants."""

    def __init__(self, kind, dtype=np.int8, bias="int32", seed=1):
        self.rng = rng = np.random.default_rng(seed)
        self.kind, self.shape = kind, SHAPES[kind]
        kernel = {"Conv": (3, 3), "line": (3,)}.get(kind, ())
        shape = (CHANNELS, OUTPUTS) if kind == "MatMul" else (OUTPUTS, CHANNELS, *kernel)
        self.constants = {
            "s": np.float32(0.03), "z": dtype(3 if dtype is np.int8 else 130), "w": rng.integers(-127, 128, shape),
            "ws": rng.uniform(0.002, 0.012, OUTPUTS), "wz": np.zeros(OUTPUTS, np.int8)}
        self.constants["w"] = self.constants["w"].astype(np.int8)
        self.constants["ws"] = self.constants["ws"].astype(np.float32)
        self.nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                      helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
                      helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["v"], axis=int(kind == "MatMul"))]
        inputs = ["d", "v"]
        if bias == "int32":
            self.constants |= {"b": rng.integers(-3000, 3000, OUTPUTS).astype(np.int32),
                               "bs": self.constants["s"] * self.constants["ws"], "bz": np.zeros(OUTPUTS, np.int32)}
            self.nodes.append(helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["c"], axis=0))
            inputs.append("c")
        elif bias == "float32":
            self.constants["c"] = rng.normal(size=OUTPUTS).astype(np.float32)
            inputs.append("c")
        pads = {"pads": [1] * (2 * len(kernel))} if kernel else {}
        if kind == "MatMul" and bias != "none":
            self.nodes += [helper.make_node("MatMul", inputs[:2], ["m"]), helper.make_node("Add", ["m", "c"], ["p"])]
        elif kind == "MatMul":
            self.nodes.append(helper.make_node("MatMul", inputs, ["p"]))
        else:
            transposed = {"transB": 1} if kind.startswith("Gemm") else {}
            self.nodes.append(helper.make_node("Conv" if kernel else "Gemm", inputs, ["p"], **pads, **transposed))

    def model(self, *behind, output="p", shape=None):
        """Return the model with the nodes ``behind`` the product."""
        channels = 1 if self.kind in ("Conv", "line") else len(self.shape) - 1
        own = [*self.shape[:channels], OUTPUTS, *self.shape[channels + 1:]]
        graph = helper.make_graph(
            [*self.nodes, *behind], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape or own)],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in self.constants.items()])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        checker.check_model(made)
        return made.SerializeToString()


def only_layer(network):
    """Return the one layer of a network, which leaves whole sums."""
    (layer,) = network.layers
    assert isinstance(layer, Layer)
    assert layer.whole
    return layer


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(("kind", "bias"), [
    ("Gemm", "int32"), ("Gemm", "float32"), ("Gemm", "none"), ("Gemm rows", "int32"), ("MatMul", "none"),
    ("MatMul", "float32"), ("Conv", "int32"), ("Conv", "float32"), ("Conv", "none"), ("line", "float32")])
def test_a_float_product_at_the_border_is_one_layer(kind, bias, dtype):
    network = assert_layers(FloatProduct(kind, dtype, bias).model())
    layer = only_layer(network)
    assert layer.exact == (kind == "Gemm" and bias != "float32")
    assert network.outputs[0].channels is not None


def test_another_axis_of_channels_and_an_output_seen_in_another_shape():
    product = FloatProduct("Conv", bias="float32")
    product.constants |= {"shape": np.array([1, -1, OUTPUTS])}
    behind = (helper.make_node("Transpose", ["p"], ["t"], perm=[0, 2, 3, 1]),
              helper.make_node("Reshape", ["t", "shape"], ["y"]))
    network = assert_layers(product.model(*behind, output="y", shape=(1, 64, OUTPUTS)))
    only_layer(network)
    assert network.outputs[0].channels.shape == (1, 1, OUTPUTS)


@pytest.mark.parametrize(("shape", "scales"), [((1, 2, 5, 64), (1, 2, 5, 1)), ((1, 640), (1, 640))])
def test_a_reshape_that_parts_or_joins_the_channels(shape, scales):
    product = FloatProduct("Conv", bias="float32")
    product.constants |= {"shape": np.array(shape)}
    network = assert_layers(product.model(helper.make_node("Reshape", ["p", "shape"], ["y"]), output="y", shape=shape))
    only_layer(network)
    assert network.outputs[0].channels.shape == scales


def test_a_transposition_within_the_channels_stays_the_cores():
    product = FloatProduct("Conv", bias="float32")
    product.constants |= {"shape": np.array([1, 2, 5, 64])}
    behind = (helper.make_node("Reshape", ["p", "shape"], ["t"]),
              helper.make_node("Transpose", ["t"], ["y"], perm=[0, 1, 3, 2]))
    first, *others = assert_layers(product.model(*behind, output="y", shape=(1, 2, 64, 5))).layers
    assert first.whole
    assert [layer.op for layer in others] == ["DequantizeLinear", "Add", "Reshape", "Transpose"]


@pytest.mark.parametrize("bias", ["int32", "float32"])
def test_what_float_operators_read_is_scaled_on_the_core(bias):
    product = FloatProduct("Conv", bias=bias)
    network = assert_layers(product.model(helper.make_node("Softmax", ["p"], ["y"], axis=1), output="y"), rtol=1e-3)
    first, *behind = network.layers
    assert first.whole
    assert all(isinstance(layer, CoreLayer) for layer in behind)
    assert behind[0].op == "DequantizeLinear"


def test_a_product_of_computed_weights_stays_as_it_is():
    product = FloatProduct("Gemm", bias="none")
    del product.constants["w"]
    product.constants["more"] = np.zeros((OUTPUTS, 1), np.float32)
    product.nodes[2:2] = [helper.make_node("Add", ["x", "more"], ["sum"]),
                          helper.make_node("QuantizeLinear", ["sum", "ws", "wz"], ["w"], axis=0)]
    network = compile_network(product.model())
    assert not any(isinstance(layer, Layer) and layer.whole for layer in network.layers)
    assert any(isinstance(layer, CoreLayer) and layer.op == "Gemm" for layer in network.layers)


@pytest.mark.parametrize("kind", ["Gemm", "MatMul", "Conv"])
def test_a_machine_without_whole_sums_multiplies_on_the_core(kind):
    model = FloatProduct(kind).model() if kind != "MatMul" else FloatProduct(kind, bias="float32").model()
    network, _ = fit_network(compile_network(model), Machine(whole_sums=False))
    assert [layer.op for layer in network.layers][:2] == ["ConvInteger", "Add"]
    rng = np.random.default_rng(0)
    x = rng.normal(size=SHAPES[kind]).astype(np.float32)
    (source,), (output,) = network.inputs, network.outputs
    tensors = run_network(network, {source.name: quantise_input(source, x)})
    expected = run_reference(model, {"x": x})["p"]
    np.testing.assert_allclose(dequantise_output(output, tensors[output.name]), expected, 1e-4, 1e-5)


def test_whole_sums_cost_what_their_bytes_do():
    network = compile_network(FloatProduct("Conv").model())
    (plan,) = fit_network(network, PRESETS["base"])[1]
    assert plan.cost.bytes >= 4 * OUTPUTS * 64
