"""Products of levels that are quantised at run time leave the datapath as whole sums, those of ONNX Runtime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from tests.support.exactness import assert_layers
from tilewright.compiler.kernels.execute import run_call
from tilewright.compiler.kernels.levels.halves_of_levels import HALVES_OF_LEVELS
from tilewright.compiler.network.layers import CoreLayer, Layer
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.program import Call, Operand

RNG = np.random.default_rng(5)


def saved(path, nodes, constants, shapes):
    """Write a float model of the tensors x and y."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shapes[0])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shapes[1])],
        [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def convolution(path, behind="", groups=1, relu=False):
    """Write a convolution, perhaps behind or before another operator, with the padding that a zero point matters to."""
    nodes = [helper.make_node("Relu", ["x"], ["a"], "first")] if relu else []
    nodes.append(helper.make_node("Conv", ["a" if relu else "x", "w", "b"], ["c" if behind else "y"], "conv",
                                  pads=[1, 1, 1, 1], group=groups))
    if behind:
        nodes.append(helper.make_node(behind, ["c"], ["y"], "behind"))
    saved(path, nodes, {"w": RNG.normal(size=(8, 8 // groups, 3, 3)), "b": RNG.normal(size=8)},
          [(1, 8, 6, 7), (1, 8, 6, 7)])


def product(path, rows, bias=True):
    """Write a matrix product of a vector or of rows."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m" if bias else "y"], "product")]
    nodes += [helper.make_node("Add", ["m", "b"], ["y"], "sum")] if bias else []
    saved(path, nodes, {"w": RNG.normal(size=(24, 10)), "b": RNG.normal(size=10)},
          [(1, *rows, 24), (1, *rows, 10)])


MODELS = {
    "convolution": convolution, "behind a relu": lambda path: convolution(path, relu=True),
    "depthwise": lambda path: convolution(path, groups=8), "groups": lambda path: convolution(path, groups=2),
    "before a relu": lambda path: convolution(path, "Relu"), "vector": lambda path: product(path, ()),
    "rows": lambda path: product(path, (5,)), "no bias": lambda path: product(path, (5,), bias=False)}


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("weights", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("kind", MODELS)
def test_sums_are_those_of_onnx_runtime(kind, weights, per_channel, tmp_path):
    MODELS[kind](tmp_path / "float.onnx")
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "net.onnx", weight_type=getattr(QuantType, weights),
                     per_channel=per_channel)
    network = assert_layers(tmp_path / "net.onnx", rtol=1e-6)
    wholes = [layer for layer in network.layers if isinstance(layer, Layer) and layer.whole]
    core = [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]
    assert len(wholes) == 1
    assert not {"ConvInteger", "MatMulInteger"} & set(core)
    assert ("HalvesOfLevels" in core) == (kind != "behind a relu")


def test_what_scales_sums_is_one_loop(tmp_path):
    convolution(tmp_path / "float.onnx", "Relu")
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "net.onnx")
    last = compile_network(tmp_path / "net.onnx").layers[-1]
    assert last.op == "Chain"
    assert [step[0] for step in last.attrs["steps"]] == ["Cast", "Mul", "Add", "Relu"]


def test_a_zero_point_from_elsewhere_is_not_taken_for_zero():
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("QuantizeLinear", ["a", "s", "z"], ["q"]),
             helper.make_node("ConvInteger", ["q", "w", "z"], ["y"], pads=[1, 1, 1, 1])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 5, 5)),
                     helper.make_tensor_value_info("s", TensorProto.FLOAT, ()),
                     helper.make_tensor_value_info("z", TensorProto.UINT8, ())],
        [helper.make_tensor_value_info("y", TensorProto.INT32, (1, 2, 5, 5))],
        [numpy_helper.from_array(RNG.integers(-128, 128, (2, 4, 3, 3)).astype(np.int8), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    network = assert_layers(model)
    assert [getattr(layer, "op", "whole") for layer in network.layers] == [
        "Relu", "QuantizeLinear", "HalvesOfLevels", "whole"]


@pytest.mark.parametrize("zero", [0, 1, 127, 128, 255])
@pytest.mark.parametrize(("dims", "groups"), [((1, 6, 5, 9), 1), ((1, 6, 5, 9), 3), ((3, 256), 1)])
def test_the_first_half_less_the_second_is_the_level_less_its_zero_point(dims, groups, zero):
    x = RNG.integers(0, 256, dims).astype(np.uint8)
    x.flat[:256] = np.arange(256)[:x.size]
    axis = 1 if len(dims) == 4 else len(dims) - 1
    doubled = (*dims[:axis], 2 * dims[axis], *dims[axis + 1:])
    call = Call("HalvesOfLevels", (Operand(0, "uint8", dims, ()), Operand(0, "uint8", (), ())),
                Operand(0, "int8", doubled, ()), {"group": groups})
    assert HALVES_OF_LEVELS.refusal(call) is None
    found = run_call(call, [x, np.array(zero, np.uint8)]).astype(int)
    each = dims[axis] // groups
    for channel in range(dims[axis]):
        place = channel // each * 2 * each + channel % each
        first, second = (np.take(found, place + half * each, axis) for half in range(2))
        np.testing.assert_array_equal(first - second, np.take(x, channel, axis).astype(int) - zero)
