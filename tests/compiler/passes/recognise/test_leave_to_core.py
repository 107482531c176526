"""Operators that the datapath lacks run on the host core, inside quantised models and in models of floats."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tests.support.exactness import assert_exact, assert_layers
from tests.support.onnx_models import FORMS, ModelBuilder
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.passes.pass_order import compile_network

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def core_ops(network):
    return [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("form", FORMS)
def test_squeeze_and_excitation(form, dtype, zero_point):
    """x · Sigmoid(conv(average(x))): a product of two tensors, one value per channel."""
    model = ModelBuilder(form, seed=1, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 8, 8)), 6)
    gate = model.conv(model.average(x), 6, kernel=1)
    opened = model.value(gate.shape, np.float32(1 / 250))
    y = model.value(x.shape, np.float32(x.scale * 0.6))
    if form == "qdq":
        model.quantised(model.node("Sigmoid", [model.dequantised(gate)], "opened"), opened)
        model.quantised(model.node("Mul", [model.dequantised(x), model.dequantised(opened)], "product"), y)
    else:
        model.node("QLinearSigmoid", [gate.name, *model.parameters(gate), *model.parameters(opened)], opened.name,
                   "com.microsoft")
        model.node("QLinearMul", [x.name, *model.parameters(x), opened.name, *model.parameters(opened),
                                  *model.parameters(y)], y.name, "com.microsoft")
    network = assert_exact(model.finish(model.conv(y, 4)))
    assert core_ops(network) == []


@pytest.mark.parametrize("attrs", [{"kernel": 16, "strides": (3, 3)}, {"kernel": 11, "strides": (11, 11)}])
@pytest.mark.parametrize("form", FORMS)
def test_poolings_beyond_the_operands_of_a_command(form, attrs):
    model = ModelBuilder(form, seed=2)
    x = model.conv(model.input((1, 3, 34, 34)), 4)
    network = assert_layers(model.finish(model.conv(model.max_pool(x, **attrs), 4, kernel=1)))
    assert core_ops(network) == []


def test_an_average_of_a_large_image():
    model = ModelBuilder("qdq", seed=3)
    network = assert_layers(model.finish(model.average(model.conv(model.input((1, 3, 66, 66)), 4, kernel=1))))
    assert core_ops(network) == []


def test_a_product_with_a_large_image():
    model = ModelBuilder("qdq", seed=4)
    x = model.conv(model.input((1, 1, 65, 65)), 2, kernel=1)
    network = assert_layers(model.finish(model.gemm(model.flatten(x), 3)))
    assert core_ops(network) == []


def test_a_global_maximum_is_the_datapaths():
    model = ModelBuilder("qdq", seed=5)
    x = model.conv(model.input((1, 3, 8, 9)), 4)
    network = assert_layers(model.finish(model.conv(model.moved("GlobalMaxPool", x, (1, 4, 1, 1)), 5, kernel=1)))
    assert core_ops(network) == []


class FloatBuilder(ModelBuilder):
    """Adds float operators one by one."""

    def __init__(self, seed):
        super().__init__("qdq", seed=seed)

    def float_input(self, shape, name="x"):
        """Add a float input and return its name."""
        self.inputs.append(self.float_output(name, shape))
        return name

    def weights(self, *shape):
        """Add normal weights and return their name."""
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))

    def add_node(self, op, *inputs, **attrs):
        """Add a node and return the name of its output."""
        return self.node(op, inputs, f"{op.lower()}{len(self.nodes)}", **attrs)

    def normalised(self, x, channels):
        """Add a batch normalisation."""
        rows = [self.rng.uniform(0.5, 1.5, channels), self.rng.standard_normal(channels),
                self.rng.standard_normal(channels), self.rng.uniform(0.5, 2, channels)]
        return self.add_node("BatchNormalization", x, *(self.constant(row.astype(np.float32)) for row in rows))

    def of(self, *outputs):
        """Return the model; ``outputs`` are (name, shape)."""
        self.outputs += [self.float_output(name, shape) for name, shape in outputs]
        return self.proto().SerializeToString()


def test_a_model_of_floats_is_the_cores():
    model = FloatBuilder(6)
    x = model.add_node("Conv", model.float_input((1, 3, 8, 8)), model.weights(4, 3, 3, 3), pads=[1, 1, 1, 1])
    x = model.add_node("Relu", model.normalised(x, 4))
    y = model.add_node("ConvTranspose", x, model.weights(4, 2, 2, 2), strides=[2, 2])
    z = model.add_node("Gemm", model.add_node("Flatten", model.add_node("GlobalAveragePool", x)), model.weights(4, 3))
    network = assert_layers(model.of((y, (1, 2, 16, 16)), (model.add_node("Softmax", z), (1, 3))))
    assert core_ops(network) == ["Conv", "Relu", "ConvTranspose", "GlobalAveragePool", "Flatten", "Gemm", "Softmax"]
    assert network.inputs[0].onnx_dtype == network.inputs[0].dtype == "float32"


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "Gemm"])
def test_affine_functions_behind_weights_are_folded(op):
    model = FloatBuilder(7)
    x = model.float_input((1, 3) if op == "Gemm" else (1, 3, 6, 6))
    kernel = () if op == "Gemm" else (3, 3)
    shape = (5, 3) if op == "Conv" else (3, 5)
    y = model.normalised(model.add_node(op, x, model.weights(*shape, *kernel), model.weights(5)), 5)
    per_channel = model.constant(model.rng.uniform(1, 2, (5, *(1,) * len(kernel))).astype(np.float32))
    for each in ("Mul", "Add", "Div", "Sub"):
        y = model.add_node(each, y, per_channel if each != "Sub" else model.constant(np.float32(0.3)))
    size = {"Conv": (4, 4), "ConvTranspose": (8, 8), "Gemm": ()}[op]
    assert core_ops(assert_layers(model.of((y, (1, 5, *size))))) == [op]


@pytest.mark.parametrize(("pads", "left"), [((0, 0, 0, 0), ["Conv"]), ((1, 1, 1, 1), ["BatchNormalization", "Conv"])])
def test_affine_functions_before_weights_are_folded_without_padding(pads, left):
    model = FloatBuilder(8)
    x = model.normalised(model.float_input((1, 3, 6, 6)), 3)
    y = model.add_node("Conv", x, model.weights(4, 3, 3, 3), pads=pads)
    extent = 4 + 2 * pads[0]
    assert core_ops(assert_layers(model.of((y, (1, 4, extent, extent))))) == left


def test_a_result_read_elsewhere_is_not_folded():
    model = FloatBuilder(9)
    y = model.add_node("Conv", model.float_input((1, 3, 6, 6)), model.weights(4, 3, 3, 3))
    network = assert_layers(model.of((y, (1, 4, 4, 4)), (model.normalised(y, 4), (1, 4, 4, 4))))
    assert core_ops(network) == ["Conv", "BatchNormalization"]


def test_several_inputs_and_a_condition_known_while_compiling():
    model = FloatBuilder(10)
    total = model.add_node("Add", model.float_input((1, 3, 4, 4), "a"), model.float_input((1, 1, 1, 4), "b"))
    condition = model.constant(np.array(True))
    branches = {f"{name}_branch": helper.make_graph(
        [helper.make_node(op, [total], [f"{op}_out"])], name, [], [model.float_output(f"{op}_out", (1, 3, 4, 4))])
        for name, op in (("then", "Abs"), ("else", "Neg"))}
    network = assert_layers(model.of((model.add_node("If", condition, **branches), (1, 3, 4, 4))))
    assert core_ops(network) == ["Add", "Abs"]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_operators_behind_the_last_quantised_one(dtype):
    model = ModelBuilder("qdq", seed=11)
    y = model.gemm(model.flatten(model.conv(model.input((1, 3, 6, 6)), 4)), 10)
    probabilities = model.node("Softmax", [model.dequantised(y)], "probabilities", axis=-1)
    model.outputs.append(model.float_output(probabilities, (1, 10)))
    if dtype == "int8":
        model.output(y, integer=True)
    network = assert_layers(model.finish())
    assert core_ops(network) == ["SoftmaxOfLevels"]


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("op", ["Mul", "Add", "Sub", "Div", "BatchNormalization"])
def test_constants_per_channel_between_quantisations_are_a_convolution(op, dtype, zero_point):
    model = ModelBuilder("qdq", seed=12, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    rows = [model.rng.uniform(0.5, 2, 4).astype(np.float32) * [1, -1, 1, 1] for _ in range(4)]
    if op == "BatchNormalization":
        constants = [model.constant(np.abs(row).astype(np.float32)) for row in rows]
    else:
        constants = [model.constant(rows[0].astype(np.float32).reshape(1, 4, 1, 1))]
    y = model.value(x.shape, np.float32(x.scale * 1.3))
    model.quantised(model.node(op, [model.dequantised(x), *constants], "result"), y)
    network = assert_layers(model.finish(model.conv(y, 4)), levels=3)
    assert core_ops(network) == []
    assert [layer.exact for layer in network.layers] == [True, False, True]


def normalised_to(ratio, offsets):
    """Return a network of y = 0.75 x + t, a level of x being ``ratio`` of y; t in levels of y, one per channel."""
    model = ModelBuilder("qdq", seed=14)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    y = model.value(x.shape, np.float32(x.scale * 0.75 / ratio))
    rows = [np.full(4, 0.75), np.multiply(offsets, y.scale), np.zeros(4), np.ones(4) - 1e-5]
    constants = [model.constant(row.astype(np.float32)) for row in rows]
    model.quantised(model.node("BatchNormalization", [model.dequantised(x), *constants], "result"), y)
    return assert_layers(model.finish(y))


@pytest.mark.parametrize("ratio", [0.3, 7, 200])
def test_offsets_finer_than_a_level_of_the_input_are_kept(ratio):
    """With one weight for all, 64, the second would be missed by half a step of ratio / 64 levels."""
    assert core_ops(normalised_to(ratio, [0, ratio / 128, 0.37 * ratio, -1.61 * ratio])) == []


def test_offsets_that_no_int8_weight_brings_close_are_the_cores():
    network = normalised_to(400, [0, 130.3, 400 / 300, 9])
    assert core_ops(network) == ["DequantizeLinear", "BatchNormalization", "QuantizeLinear"]
    assert "so many levels of its output" in network.layers[-2].reason


def test_constants_that_are_no_numbers_are_not_of_the_datapath():
    model = ModelBuilder("qdq", seed=15)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    y = model.value(x.shape, x.scale)
    offset = model.constant(np.array([1, np.inf, 2, 3], np.float32).reshape(4, 1, 1))
    model.quantised(model.node("Add", [model.dequantised(x), offset], "result"), y)
    network = compile_network(model.finish(y))
    assert core_ops(network) == ["DequantizeLinear", "Add", "QuantizeLinear"]
    assert network.layers[-2].reason == "its constants give infinity or NaN"


def test_a_quantised_constant_per_channel():
    model = ModelBuilder("qdq", seed=13)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    levels = [model.constant(np.array([90, -3, 0, 127], np.int8).reshape(4, 1, 1)), model.constant(np.float32(0.01)),
              model.constant(np.int8(0))]
    y = model.value(x.shape, x.scale)
    factor = model.node("DequantizeLinear", levels, "factor")
    model.quantised(model.node("Mul", [factor, model.dequantised(x)], "result"), y)
    assert core_ops(assert_layers(model.finish(y))) == []


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_unsigned_weights_of_any_zero_point(groups):
    model = ModelBuilder("qoperator", seed=14, dtype=np.uint8, zero_point=None)
    x = model.conv(model.input((1, 4, 8, 8)), 6)
    y = model.conv(x, 6, groups=groups, pads=(1, 1, 1, 1), per_channel=False)
    conv = model.nodes[-1]
    weights = next(each for each in model.initializers if each.name == conv.input[3])
    shape = tuple(weights.dims)
    weights.CopyFrom(numpy_helper.from_array(model.rng.integers(0, 256, shape).astype(np.uint8), weights.name))
    zero = next(each for each in model.initializers if each.name == conv.input[5])
    zero.CopyFrom(numpy_helper.from_array(np.uint8(90), zero.name))
    network = assert_layers(model.finish(model.conv(y, 3)))
    assert all(layer.exact for layer in network.layers)
    assert core_ops(network) == []
