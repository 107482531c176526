"""Elementwise operators on one integer tensor become tables, equal to ONNX Runtime on every integer."""

import numpy as np
import pytest
from onnx import TensorProto

from tests.compiler.normal.graphs import model, node, scalar, zero
from tests.support.exactness import assert_exact, assert_layers
from tests.support.onnx_models import ModelBuilder, Value
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_names import onnx_operator
from tilewright.compiler.graph.onnx_operators import OnnxDequantizeLinear, OnnxQuantizeLinear
from tilewright.compiler.graph.value_tables import TableError, table_of
from tilewright.compiler.network.layers import CoreLayer

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]
UNARY = {
    "Sigmoid": {}, "Tanh": {}, "LeakyRelu": {"alpha": 0.1}, "HardSwish": {}, "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "Elu": {"alpha": 0.7}, "Softplus": {}, "Erf": {}, "Abs": {}, "Exp": {}, "Sqrt": {},
}


def activated(model, op, x, scale, **attrs):
    """Add a quantised unary operator."""
    y = model.value(x.shape, scale)
    model.quantised(model.node(op, [model.dequantised(x)], f"float{len(model.nodes)}", **attrs), y)
    return y


def binary(model, op, x, other, scale):
    """Add a quantised operator of two, the second of which is the name of a float tensor or a constant."""
    y = model.value(x.shape, scale)
    model.quantised(model.node(op, [model.dequantised(x), other], f"float{len(model.nodes)}"), y)
    return y


def the_table(network):
    """Return the only layer with a table; nothing is left to the core."""
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    (layer,) = (layer for layer in network.layers if layer.table is not None)
    return layer


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("op", UNARY)
def test_unary_operators_join_the_convolution_before_them(op, dtype, zero_point):
    model = ModelBuilder("qdq", seed=len(op), dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 9, 7)), 5)
    y = activated(model, op, x, np.float32(0.03), **UNARY[op])
    network = assert_layers(model.finish(model.conv(y, 4)))
    layer = the_table(network)
    assert (layer.kind, layer.output, layer.exact) == ("conv", y.name, True)


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
def test_a_table_on_its_own_is_a_layer(dtype, zero_point):
    model = ModelBuilder("qdq", seed=1, dtype=dtype, zero_point=zero_point)
    network = assert_layers(model.finish(activated(model, "Sigmoid", model.input((1, 3, 5, 6)), np.float32(1 / 256))))
    assert [layer.kind for layer in network.layers] == ["pass"]


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
def test_silu_is_one_table(dtype, zero_point):
    model = ModelBuilder("qdq", seed=2, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    gate = activated(model, "Sigmoid", x, np.float32(1 / 200))
    y = binary(model, "Mul", x, model.dequantised(gate), np.float32(0.05))
    layer = the_table(assert_layers(model.finish(model.conv(y, 4))))
    assert layer.onnx_nodes[1:] == tuple(node.name for node in model.nodes if node.op_type in ("Sigmoid", "Mul"))


def test_a_decomposed_hard_swish_is_one_table():
    model = ModelBuilder("qdq", seed=3)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    real = model.dequantised(x)
    shifted = model.node("Add", [real, model.constant(np.array([3], np.float32))], "shifted")
    clipped = model.node("Clip", [shifted, model.constant(np.float32(0)), model.constant(np.float32(6))], "clipped")
    product = model.node("Mul", [real, clipped], "product")
    y = model.value(x.shape, np.float32(0.04))
    model.quantised(model.node("Div", [product, model.constant(np.float32(6))], "divided"), y)
    assert the_table(assert_layers(model.finish(y))).output == y.name


def test_bounds_that_keep_the_quantisation_are_part_of_a_table():
    model = ModelBuilder("qdq", seed=3)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    added = binary(model, "Add", x, model.constant(np.float32(3)), np.float32(0.06))
    gate = model.clip(added, 0, 6)
    product = binary(model, "Mul", x, model.dequantised(gate), np.float32(0.3))
    y = binary(model, "Div", product, model.constant(np.float32(6)), np.float32(0.05))
    layer = the_table(assert_layers(model.finish(model.conv(y, 4))))
    assert (layer.kind, layer.exact) == ("conv", True)


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("test", ["Greater", "LessOrEqual"])
def test_a_choice_by_a_comparison_is_a_table(test, dtype, zero_point):
    model = ModelBuilder("qdq", seed=4, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    real = model.dequantised(x)
    small = model.node("Mul", [real, model.constant(np.float32(0.1))], "small")
    condition = model.node(test, [real, model.constant(np.float32(0))], "condition")
    y = model.value(x.shape, np.float32(0.04))
    model.quantised(model.node("Where", [condition, real, small], "chosen"), y)
    assert the_table(assert_layers(model.finish(model.conv(y, 4)))).exact


def test_a_mask_by_a_comparison_is_a_table():
    model = ModelBuilder("qdq", seed=5)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    real = model.dequantised(x)
    over, under = (model.node(op, [real, model.constant(np.float32(bound))], op) for op, bound in
                   (("Greater", -0.3), ("Less", 0.4)))
    mask = model.node("Cast", [model.node("And", [over, under], "both")], "mask", to=TensorProto.FLOAT)
    y = model.value(x.shape, np.float32(0.01))
    model.quantised(model.node("Mul", [real, mask], "masked"), y)
    assert the_table(assert_layers(model.finish(model.conv(y, 4)))).exact


def test_a_change_of_quantisation_is_a_table():
    model = ModelBuilder("qdq", seed=4)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    other = Value("other", x.shape, np.float32(x.scale * 0.7), 12)
    model.quantised(model.dequantised(x), other)
    network = assert_layers(model.finish(model.conv(other, 4)))
    layer = the_table(network)
    assert layer.exact
    levels = (np.arange(-128, 128) * x.scale).astype(np.float32)
    np.testing.assert_array_equal(layer.table, np.clip(np.rint(levels / other.scale) + 12, -128, 127))


def test_tables_of_tables_become_one():
    model = ModelBuilder("qdq", seed=5)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    y = activated(model, "Tanh", activated(model, "LeakyRelu", x, np.float32(0.05)), np.float32(1 / 128))
    the_table(assert_layers(model.finish(y)))


@pytest.mark.parametrize(("op", "layers"), [("Sigmoid", 1), ("Abs", 2)])
def test_a_table_moves_before_the_pooling_if_it_is_monotonic(op, layers):
    model = ModelBuilder("qdq", seed=6)
    x = model.max_pool(model.relu(model.conv(model.input((1, 3, 8, 8)), 4)), strides=(2, 2))
    network = assert_layers(model.finish(activated(model, op, x, np.float32(0.01))))
    assert len(network.layers) == layers
    assert the_table(network).pool is None or op == "Sigmoid"


def test_a_clamp_behind_a_table_is_part_of_it():
    model = ModelBuilder("qdq", seed=7)
    y = activated(model, "Tanh", model.conv(model.input((1, 3, 8, 8)), 4), np.float32(1 / 128))
    layer = the_table(assert_layers(model.finish(model.max_pool(model.relu(y)))))
    assert layer.table.min() == 0
    assert layer.pool is not None


def test_a_table_behind_an_addition_comes_after_the_residual():
    model = ModelBuilder("qdq", seed=8)
    x = model.conv(model.input((1, 4, 6, 6)), 4, kernel=1)
    total = model.add(model.conv(x, 4, pads=(1, 1, 1, 1)), x)
    layer = the_table(assert_layers(model.finish(activated(model, "Sigmoid", total, np.float32(1 / 256)))))
    assert layer.residual is not None


def test_what_is_read_elsewhere_keeps_its_own_layer():
    model = ModelBuilder("qdq", seed=9)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    network = assert_layers(model.finish(x, activated(model, "Sigmoid", x, np.float32(1 / 256))))
    assert [layer.kind for layer in network.layers] == ["conv", "pass"]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(("op", "attrs"), [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2})])
def test_contrib_operators_are_tables(op, attrs, dtype):
    model = ModelBuilder("qoperator", seed=10, dtype=dtype, zero_point=None)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    y = model.value(x.shape, np.float32(0.02))
    model.node(op, [x.name, *model.parameters(x), *model.parameters(y)], y.name, "com.microsoft", **attrs)
    the_table(assert_exact(model.finish(model.conv(y, 3))))


def test_a_product_with_a_constant_is_a_table():
    model = ModelBuilder("qoperator", seed=11)
    x = model.conv(model.input((1, 3, 8, 8)), 4)
    factor = [model.constant(np.array(90, np.int8)), model.constant(np.float32(0.02)), model.constant(np.int8(0))]
    y = model.value(x.shape, np.float32(x.scale * 1.2))
    model.node("QLinearMul", [x.name, *model.parameters(x), *factor, *model.parameters(y)], y.name, "com.microsoft")
    the_table(assert_exact(model.finish(model.conv(y, 3))))


def test_operators_that_onnx_runtime_does_not_take_make_no_table():
    nodes = [Node(OnnxDequantizeLinear(), ("x", "s"), "real"),
             Node(onnx_operator("Erf", {}), ("real", "real"), "e"), Node(OnnxQuantizeLinear(), ("e", "s"), "y")]
    with pytest.raises(TableError):
        table_of(nodes, "x", "int8", 4, "y", "int8", {"s": np.float32(1)})


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("shape", [(1, 12, 16), (1, 3, 4, 2, 8), (192,), (2, 96)])
def test_tensors_of_other_ranks_are_looked_at_as_images(shape, dtype, zero_point):
    model = ModelBuilder("qdq", seed=12, dtype=dtype, zero_point=zero_point)
    x = model.reshape(model.conv(model.input((1, 3, 6, 6)), 12), shape)
    network = assert_layers(model.finish(activated(model, "Sigmoid", x, np.float32(1 / 256))))
    assert sum(layer.table is not None for layer in network.layers) == 1


def test_a_prime_number_of_elements_is_the_cores():
    model = ModelBuilder("qdq", seed=13)
    x = model.input((1, 1, 10007))
    network = assert_layers(model.finish(activated(model, "Sigmoid", x, np.float32(1 / 256))))
    assert [layer.op for layer in network.layers] == ["LookUp"]


_WORDS = {"s": scalar(.03), "z": zero(), "w": np.arange(-54, 54, dtype=np.int8).reshape(4, 3, 3, 3),
          "fine": scalar(.0002), "finest": scalar(1 / 65535), "none": zero(0, np.uint16), "least": zero(-128),
          "small": scalar(1 / 255)}


def _through_words(*behind):
    """Return a model of a convolution whose levels become words, the function of these, and ``behind``."""
    def pair(x, scale, point, name):
        return [node("QuantizeLinear", [x, scale, point], f"{name}:q"),
                node("DequantizeLinear", [f"{name}:q", scale, point], name)]

    nodes = [*pair("x", "s", "z", "xd"), node("DequantizeLinear", ["w", "s", "z"], "wd"),
             node("Conv", ["xd", "wd"], "c"), *pair("c", "s", "z", "cd"), *pair("cd", "fine", "none", "wide"),
             node("Sigmoid", ["wide"], "f"), *pair("f", "finest", "none", "fd"), *pair(*behind)]
    read = {each for written in nodes for each in written.input}
    held = {name: value for name, value in _WORDS.items() if name in read}
    return model(nodes, held, (1, 3, 8, 7)).SerializeToString()


def test_words_between_bytes_are_inside_of_a_table():
    the_table(assert_layers(_through_words("fd", "small", "least", "y")))


def test_a_function_that_ends_in_words_runs():
    network = assert_layers(_through_words("fd", "fine", "none", "y"))
    assert any(isinstance(layer, CoreLayer) for layer in network.layers)
