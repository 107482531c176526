"""Networks that end with ArgMax over their channels, with and without the example extension."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.runtime.compared_run import run_model
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import ModelSource

ARGMAX = Path(__file__).parents[2] / "examples/extensions/argmax.py"


def network(path, channels, size=(9, 14), kind=np.int8, **attributes):
    """Write a convolution and an ArgMax of the network's output; few levels, so that many are equal."""
    random = np.random.default_rng(channels)
    zero = 128 if kind is np.uint8 else 0
    constants = [
        numpy_helper.from_array(np.float32(1 / 32), "x_s"), numpy_helper.from_array(kind(zero), "x_z"),
        numpy_helper.from_array(random.integers(-127, 128, (channels, 3, 3, 3)).astype(np.int8), "w"),
        numpy_helper.from_array(np.float32(1 / 400), "w_s"), numpy_helper.from_array(np.int8(0), "w_z"),
        numpy_helper.from_array(np.float32(1.5), "y_s"), numpy_helper.from_array(kind(zero + 3), "y_z")]
    nodes = [
        helper.make_node("QuantizeLinear", ["image", "x_s", "x_z"], ["x_q"]),
        helper.make_node("DequantizeLinear", ["x_q", "x_s", "x_z"], ["x_d"]),
        helper.make_node("DequantizeLinear", ["w", "w_s", "w_z"], ["w_d"]),
        helper.make_node("Conv", ["x_d", "w_d"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("QuantizeLinear", ["c", "y_s", "y_z"], ["y_q"]),
        helper.make_node("DequantizeLinear", ["y_q", "y_s", "y_z"], ["y_d"]),
        helper.make_node("ArgMax", ["y_d"], ["found"], name="argmax", **attributes)]
    shape = [1, channels, *size]
    shape[attributes["axis"]:attributes["axis"] + 1] = [1] * attributes.get("keepdims", 1)
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, *size])],
                              [helper.make_tensor_value_info("found", TensorProto.INT64, shape)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return ModelSource.of(path)


def report_of(source, machine, engine="fast"):
    return run_model(source, design_of(machine, extension=ARGMAX).machine, engine, None).report


def uses_the_unit(report):
    return report.instructions.get("extension", 0) > 0


@pytest.mark.parametrize("machine", ["nano", "base", "large", "nano,array=plain,chaining=false"])
@pytest.mark.parametrize(("channels", "size", "kind", "keepdims"), [
    (21, (9, 14), np.int8, 1), (5, (7, 7), np.uint8, 0), (128, (5, 6), np.int8, 0), (64, (40, 70), np.int8, 1)])
def test_the_unit_finds_the_largest_channel(tmp_path, machine, channels, size, kind, keepdims):
    source = network(tmp_path / "net.onnx", channels, size, kind, axis=1, keepdims=keepdims)
    report = report_of(source, machine)
    assert report.matches_reference
    assert uses_the_unit(report)


@pytest.mark.parametrize(("channels", "attributes"), [
    (129, {"axis": 1}), (21, {"axis": 2}), (21, {"axis": 1, "select_last_index": 1})])
def test_what_the_unit_cannot_is_the_core_s(tmp_path, channels, attributes):
    report = report_of(network(tmp_path / "net.onnx", channels, **attributes), "base")
    assert report.matches_reference
    assert not uses_the_unit(report)


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["nano", "base,array=plain,chaining=false"])
def test_rtl_computes_the_same_in_the_cycles_predicted(tmp_path, machine):
    source = network(tmp_path / "net.onnx", 21, (40, 70), axis=1)
    fast, rtl = (report_of(source, machine, engine) for engine in ("fast", "rtl"))
    assert rtl.matches_reference
    assert uses_the_unit(rtl)
    # The last layer is the core's Cast to int64, whose cycles are predicted less closely.
    for predicted, counted in zip(fast.layers[:-1], rtl.layers[:-1], strict=True):
        assert abs(counted.cycles - predicted.cycles) <= 0.03 * counted.cycles
