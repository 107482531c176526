"""Levels of a Softmax's result: all 256 of int8 between 0 and its largest value, at a scale of 1/k.

A quantiser of symmetric int8 leaves 127 of them. ONNX Runtime's fused kernel, QLinearSoftmax, multiplies by
floor(1/scale) where the operators one by one divide by the scale: with a scale of 1/k that rounds to k both are the
same. Most rows of an attention are far below 1, so the largest value of the samples gives another factor.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnxruntime.quantization import QuantType

__all__ = ["largest_whole", "softmax_levels", "softmax_results"]

_LEVELS = 255
_LOWEST = -128
_MOST = 1 << 16
"""Of k: values below 1/256 at all are no attention, and leave the scale alone."""

Override = dict[str, object]


def softmax_results(graph: onnx.GraphProto, movements: Iterable[str]) -> list[str]:
    """Return the inputs of a MatMul that are the result of a Softmax, moved or not; ``movements`` are operators."""
    moving, moved, found = set(movements), set[str](), dict[str, None]()
    for node in graph.node:
        if node.op_type == "Softmax" or (node.op_type in moving and node.input[0] in moved):
            moved |= set(node.output)
        elif node.op_type == "MatMul":
            found |= dict.fromkeys(name for name in node.input if name in moved)
    return list(found)


def softmax_levels(proto: onnx.ModelProto, names: Iterable[str],
                   feeds: Iterable[Mapping[str, np.ndarray]]) -> dict[str, list[Override]]:
    """Return the quantisation of tensors ``names`` as the quantiser takes it (its option TensorQuantOverrides).

    Parameters
    ----------
    proto : ModelProto
        The float model; not changed.
    names : iterable of str
        Tensors with values from 0 to 1.
    feeds : iterable of mapping
        Samples by input, whose largest values count.
    """
    listed = list(names)
    if not listed:
        return {}
    watched = onnx.ModelProto()
    watched.CopyFrom(proto)
    tops = [f"{name}:largest" for name in listed]
    del watched.graph.output[:]
    for name, top in zip(listed, tops, strict=True):
        watched.graph.node.append(helper.make_node("ReduceMax", [name], [top], keepdims=0))
        watched.graph.output.append(helper.make_tensor_value_info(top, TensorProto.FLOAT, ()))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(watched.SerializeToString(), options, providers=["CPUExecutionProvider"])
    largest = np.max([session.run(None, dict(feed)) for feed in feeds], axis=0)
    return {name: [{"quant_type": QuantType.QInt8, "scale": np.array(1 / np.float32(k), np.float32),
                    "zero_point": np.array(_LOWEST, np.int8)}]
            for name, value in zip(listed, largest, strict=True) if (k := largest_whole(float(value))) <= _MOST}


def largest_whole(value: float) -> int:
    """Return the largest k for which 255 levels of 1/k reach ``value``, and 1/(1/k) in float32 is not below k."""
    k = max(int(_LEVELS / max(value, _LEVELS / (2 * _MOST))), 1)
    while np.floor(np.float32(1) / (np.float32(1) / np.float32(k))) != k:
        k -= 1
    return k
