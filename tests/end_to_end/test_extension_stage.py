"""A network of PReLUs with slopes by channel, with and without the example extension."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.runtime.compared_run import run_model
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import ModelSource

CONVOLUTIONS = 2
"""Of the network: as many layers as it has where the stage computes its PReLUs."""

PRELU = Path(__file__).parents[2] / "examples/extensions/prelu.py"


def network(path, channels, scales, kind=np.int8):
    """Write conv, PReLU, conv, PReLU; the quantisations of each PReLU's input and output are ``scales``."""
    random = np.random.default_rng(channels)
    nodes, constants = [], []

    def constant(name, value):
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def quantised(x, name, scale, zero):
        own = constant(f"{name}_s", np.float32(scale)), constant(f"{name}_z", kind(zero + 128 * (kind is np.uint8)))
        nodes.append(helper.make_node("QuantizeLinear", [x, *own], [f"{name}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *own], [f"{name}_d"]))
        return f"{name}_d"

    x, size = quantised("image", "in", 1 / 64, 0), 3
    for index in range(CONVOLUTIONS):
        weights = (constant(f"w{index}", random.integers(-127, 128, (channels, size, 3, 3)).astype(np.int8)),
                   constant(f"w{index}_s", np.float32(1 / (400 * np.sqrt(size)))),
                   constant(f"w{index}_z", np.int8(0)))
        nodes.append(helper.make_node("DequantizeLinear", weights, [f"w{index}_d"]))
        nodes.append(helper.make_node("Conv", [x, f"w{index}_d"], [f"c{index}"], pads=[1, 1, 1, 1]))
        slopes = constant(f"p{index}", random.uniform(-0.3, 0.6, (channels, 1, 1)).astype(np.float32))
        before = quantised(f"c{index}", f"a{index}", *scales[0])
        nodes.append(helper.make_node("PRelu", [before, slopes], [f"r{index}"]))
        x, size = quantised(f"r{index}", f"b{index}", *scales[1]), channels
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 10, 12])],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, channels, 10, 12])], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return ModelSource.of(path)


@pytest.mark.parametrize("machine", ["nano", "base", "large"])
@pytest.mark.parametrize(("channels", "scales", "kind"), [
    (16, ((0.03, 3), (0.022, -20)), np.int8), (6, ((0.03, 0), (0.03, 0)), np.uint8),
    (64, ((0.02, -9), (0.05, 7)), np.int8)])
def test_prelus_by_channel_are_the_stage_s(tmp_path, machine, channels, scales, kind):
    source = network(tmp_path / "net.onnx", channels, scales, kind)
    own = run_model(source, design_of(f"{machine},extension={PRELU}").machine, "fast", None).report
    assert own.matches_reference
    assert len(own.layers) == CONVOLUTIONS


@pytest.mark.parametrize("machine", ["base,array=plain,residual_adder=false,max_pooling=false,chaining=false", "nano"])
@pytest.mark.slow
def test_rtl_computes_the_same(tmp_path, machine):
    source = network(tmp_path / "net.onnx", 16, ((0.03, 3), (0.022, -20)))
    own = run_model(source, design_of(f"{machine},extension={PRELU}").machine, "rtl", None).report
    assert own.matches_reference
    assert len(own.layers) == CONVOLUTIONS


@pytest.mark.parametrize("units", ["array=plain", "residual_adder=false", "max_pooling=false", "chaining=false"])
def test_units_left_out_leave_the_stage(tmp_path, units):
    source = network(tmp_path / "net.onnx", 16, ((0.03, 3), (0.022, -20)))
    own = run_model(source, design_of(f"nano,{units},extension={PRELU}").machine, "fast", None).report
    assert own.matches_reference
    assert len(own.layers) == CONVOLUTIONS


def test_more_channels_than_the_stage_holds_are_layers_of_the_datapath(tmp_path):
    source = network(tmp_path / "net.onnx", 65, ((0.03, 3), (0.022, -20)))
    own = run_model(source, design_of(f"base,extension={PRELU}").machine, "fast", None).report
    assert own.matches_reference
    assert len(own.layers) > CONVOLUTIONS
    assert not any(layer.kind == "core" for layer in own.layers)
