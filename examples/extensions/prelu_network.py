"""Write a quantised network of three convolutions, each with a PReLU whose slopes differ by channel."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__: list[str] = []

CHANNELS, SIZE = 16, 32
random = np.random.default_rng(1)
nodes, constants = [], []


def constant(name, value):
    """Add a constant; return its name."""
    constants.append(numpy_helper.from_array(np.asarray(value), name))
    return name


def quantised(x, name, scale, zero):
    """Add QuantizeLinear and DequantizeLinear behind ``x``; return the name of the result."""
    own = constant(f"{name}_s", np.float32(scale)), constant(f"{name}_z", np.int8(zero))
    nodes.append(helper.make_node("QuantizeLinear", [x, *own], [f"{name}_q"]))
    nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *own], [f"{name}_d"], name=f"{name}_dq"))
    return f"{name}_d"


x, inputs = quantised("image", "in", 1 / 64, 0), 3
for index in range(3):
    weights = (constant(f"w{index}", random.integers(-127, 128, (CHANNELS, inputs, 3, 3)).astype(np.int8)),
               constant(f"w{index}_s", np.float32(1 / (381 * np.sqrt(inputs)))), constant(f"w{index}_z", np.int8(0)))
    nodes.append(helper.make_node("DequantizeLinear", weights, [f"w{index}_d"]))
    nodes.append(helper.make_node("Conv", [x, f"w{index}_d"], [f"c{index}"], name=f"conv{index}", pads=[1, 1, 1, 1]))
    slopes = constant(f"p{index}", random.uniform(-0.3, 0.6, (CHANNELS, 1, 1)).astype(np.float32))
    before = quantised(f"c{index}", f"a{index}", 0.03, 3)
    nodes.append(helper.make_node("PRelu", [before, slopes], [f"r{index}"], name=f"prelu{index}"))
    x, inputs = quantised(f"r{index}", f"b{index}", 0.022, -20), CHANNELS
graph = helper.make_graph(
    nodes, "prelu", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIZE, SIZE])],
    [helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, CHANNELS, SIZE, SIZE])], constants)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), sys.argv[1])
