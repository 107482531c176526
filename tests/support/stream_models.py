"""Float models over a window of time, with seeded weights, for streams."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["WAKE_WORD", "separable_stack", "wake_word"]

WAKE_WORD = ((3, 128), (5, 64), (10, 64), (15, 32))
"""Kernel over time and filters of each block of MLPerf Tiny's streaming wake word.

The default of benchmark/training/streaming_wakeword/keras_model.py in mlcommons/tiny (Apache-2.0).
"""


def wake_word() -> onnx.ModelProto:
    """Return the architecture of MLPerf Tiny's streaming wake word: 30 frames of 40 features to 3 classes."""
    return separable_stack(WAKE_WORD, frames=30, features=40, classes=3)


def separable_stack(blocks: Sequence[tuple[int, int]], *, frames: int, features: int, classes: int = 0,
                    causal: bool = False, strides: Sequence[int] = ()) -> onnx.ModelProto:
    """Return depthwise convolutions over time, each before a pointwise one and a Relu, and a dense layer.

    The input is float32 of (1, features, frames, 1). Without ``classes``, the last block's frames are the output.
    """
    rng, nodes, constants, name = np.random.default_rng(frames), [], [], "x"

    def constant(label: str, *shape: int) -> str:
        values = (rng.normal(size=shape) * (2 / max(np.prod(shape[1:]), 1)) ** 0.5).astype(np.float32)
        constants.append(numpy_helper.from_array(values, label))
        return label

    channels, length = features, frames
    for index, (kernel, filters) in enumerate(blocks):
        stride = strides[index] if strides else 1
        before = kernel - 1 if causal else 0
        nodes.append(helper.make_node(
            "Conv", [name, constant(f"d{index}", channels, 1, kernel, 1)], [f"depth{index}"], f"depth{index}",
            group=channels, pads=[before, 0, 0, 0], strides=[stride, 1], kernel_shape=[kernel, 1]))
        nodes.append(helper.make_node(
            "Conv", [f"depth{index}", constant(f"w{index}", filters, channels, 1, 1), constant(f"b{index}", filters)],
            [f"point{index}"], f"point{index}"))
        nodes.append(helper.make_node("Relu", [f"point{index}"], [name := f"relu{index}"], f"relu{index}"))
        channels, length = filters, (length + before - kernel) // stride + 1
    if classes:
        nodes.append(helper.make_node("Flatten", [name], ["flat"], "flat"))
        nodes.append(helper.make_node("Gemm", ["flat", constant("W", classes, channels * length),
                                               constant("B", classes)], [name := "y"], "dense", transB=1))
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info(
        "x", TensorProto.FLOAT, [1, features, frames, 1])], [helper.make_tensor_value_info(
            name, TensorProto.FLOAT, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
