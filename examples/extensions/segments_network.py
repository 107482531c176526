"""Write a quantised network of two convolutions and an ArgMax over 21 classes, as ends a segmentation network."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__: list[str] = []

CLASSES, SIZE = 21, 64
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
for index, (outputs, side) in enumerate(((16, 3), (CLASSES, 1))):
    weights = (constant(f"w{index}", random.integers(-127, 128, (outputs, inputs, side, side)).astype(np.int8)),
               constant(f"w{index}_s", np.float32(1 / (381 * np.sqrt(inputs)))), constant(f"w{index}_z", np.int8(0)))
    nodes.append(helper.make_node("DequantizeLinear", weights, [f"w{index}_d"]))
    nodes.append(helper.make_node("Conv", [x, f"w{index}_d"], [f"c{index}"], name=f"conv{index}",
                                  pads=[side // 2] * 4))
    x, inputs = quantised(f"c{index}", f"a{index}", 0.03, 3), outputs
nodes.append(helper.make_node("ArgMax", [x], ["classes"], name="argmax", axis=1))
graph = helper.make_graph(
    nodes, "segments", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIZE, SIZE])],
    [helper.make_tensor_value_info("classes", TensorProto.INT64, [1, 1, SIZE, SIZE])], constants)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), sys.argv[1])
