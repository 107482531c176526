"""QuantiseSums: a chain of products quantised at run time has no floats but those of a few sums, and ONNX's values."""

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from tests.support.exactness import assert_layers
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.passes.pass_order import compile_network

_RNG = np.random.default_rng(11)


def _chain(path, *, relu=True, bend=None, biased=True, residual=False, per_channel=False, flat=False, line=False,
           pooled=False):
    """Write two convolutions, or products of rows, quantised at run time, perhaps with a sum behind them."""
    weights = [(24, 24) if flat else (8, 8, 3) if line else (8, 8, 3, 3)] * 2
    shape = (1, 5, 24) if flat else (1, 8, 20) if line else (1, 8, 9, 7)
    nodes, constants, name = [], {}, "x"
    for place, dims in enumerate(weights):
        constants |= {f"w{place}": _RNG.normal(size=dims), f"b{place}": _RNG.normal(size=dims[0])}
        if flat:
            nodes += [helper.make_node("MatMul", [name, f"w{place}"], [f"m{place}"]),
                      helper.make_node("Add", [f"m{place}", f"b{place}"], [f"c{place}"])]
        else:
            inputs = [name, f"w{place}", *([f"b{place}"] if biased else [])]
            nodes.append(helper.make_node("Conv", inputs, [f"c{place}"], pads=[1] * (2 if line else 4)))
        name = f"c{place}"
        if relu:
            nodes.append(helper.make_node("Relu", [name], [f"r{place}"]))
            name = f"r{place}"
        if bend:
            op, numbers = bend
            inputs = [f"k{place}{each}" for each in range(len(numbers))] if op == "Clip" else []
            constants |= dict(zip(inputs, numbers, strict=False))
            nodes.append(helper.make_node(op, [name, *inputs], [f"e{place}"], **({} if inputs else numbers)))
            name = f"e{place}"
        if pooled:
            nodes.append(helper.make_node("MaxPool", [name], [f"p{place}"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
            name = f"p{place}"
    nodes.append(helper.make_node("Add", [name, "r0"], ["y"]) if residual else helper.make_node("Neg", [name], ["y"]))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(value, np.float32), key) for key, value in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path / "f.onnx")
    quantize_dynamic(path / "f.onnx", path / "net.onnx", weight_type=QuantType.QInt8, per_channel=per_channel)
    return path / "net.onnx"


@pytest.mark.parametrize("given", [{}, {"relu": False}, {"biased": False}, {"per_channel": True}, {"line": True},
                                   {"flat": True}, {"flat": True, "relu": False},
                                   {"relu": False, "bend": ("Clip", (0, 6))},
                                   {"relu": False, "bend": ("Clip", (-1, 2))},
                                   {"relu": False, "bend": ("LeakyRelu", {"alpha": .1})},
                                   {"relu": False, "bend": ("HardSwish", {}), "line": True}], ids=str)
def test_levels_and_ranges_follow_from_sums(given, tmp_path):
    network = assert_layers(_chain(tmp_path, **given), rtol=1e-6)
    core = [layer for layer in network.layers if isinstance(layer, CoreLayer)]
    counts = Counter(layer.op for layer in core)
    assert (counts["LevelsOfSums"], counts["QuantizeLinear"], counts["Chain"]) == (1, 1, 1)     # the input; the output
    sums = next(layer for layer in core if layer.op == "LevelsOfSums").inputs[0]
    assert {layer.op for layer in core if sums in layer.inputs} <= {
        "LevelsOfSums", "LeastOfSums", "ReduceMax", "ReduceMin"}


def test_floats_that_something_else_reads_stay(tmp_path):
    network = assert_layers(_chain(tmp_path, residual=True), rtol=1e-6)
    assert Counter(layer.op for layer in network.layers if isinstance(layer, CoreLayer))["Chain"] == 2


def test_a_factor_of_unknown_sign_keeps_its_floats(tmp_path):
    model = onnx.load(_chain(tmp_path))
    for tensor in model.graph.initializer:
        if tensor.name == "w0_scale":
            tensor.CopyFrom(numpy_helper.from_array(-numpy_helper.to_array(tensor), tensor.name))
    layers = compile_network(model.SerializeToString()).layers
    assert "LevelsOfSums" not in [layer.op for layer in layers if isinstance(layer, CoreLayer)]


@pytest.mark.parametrize("per_channel", [False, True])
def test_the_largest_of_a_window_is_that_of_its_sums(per_channel, tmp_path):
    network = assert_layers(_chain(tmp_path, pooled=True, per_channel=per_channel), rtol=1e-6)
    core = [layer for layer in network.layers if isinstance(layer, CoreLayer)]
    pools = [layer for layer in core if layer.op == "MaxPool"]
    assert {network.tensors[layer.inputs[0]].dtype for layer in pools} == {"int32"}
    assert sum(layer.op == "LevelsOfSums" for layer in core) == 1


def test_the_least_of_what_is_nowhere_below_0_is_not_looked_for(tmp_path):
    network = assert_layers(_chain(tmp_path, pooled=True), rtol=1e-6)
    counts = Counter(layer.op for layer in network.layers if isinstance(layer, CoreLayer))
    # Of the input; of that, of pooled sums, and of the channels' floats.
    assert (counts["ReduceMin"], counts["ReduceMax"]) == (1, 3)
