"""Small ONNX graphs of a few nodes, written as lists, and what ONNX Runtime makes of them without any fusion."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
_KINDS = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


def node(op: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: object) -> onnx.NodeProto:
    """Return a node that is called like its output."""
    return helper.make_node(op, list(inputs), [output], name=output, domain=domain, **attributes)


def model(nodes: Sequence[onnx.NodeProto], constants: Mapping[str, np.ndarray], shape: Sequence[int] = (1, 4, 6, 6), *,
          opset: int = 21, kind: str = "float32", out: str = "float32",
          outputs: Sequence[str] = ("y",)) -> onnx.ModelProto:
    """Return a model with an input ``x`` and the ``outputs``."""
    graph = helper.make_graph(
        list(nodes), "rule", [helper.make_tensor_value_info("x", _KINDS[kind], shape)],
        [helper.make_tensor_value_info(name, _KINDS[out], None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def computed(proto: onnx.ModelProto, seed: int = 0) -> list[np.ndarray]:
    """Return the outputs of a model for random inputs, computed by ONNX Runtime as the file says, without fusion."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(seed)
    (given,) = session.get_inputs()
    if given.type == "tensor(float)":
        feed = (rng.standard_normal(given.shape) * 2).astype(np.float32)
    else:
        bounds = np.iinfo(given.type[7:-1])
        feed = rng.integers(bounds.min, bounds.max + 1, given.shape).astype(given.type[7:-1])
    return session.run(None, {"x": feed})


def operators(proto: onnx.ModelProto) -> list[str]:
    """Return the operators of a model, in order."""
    return [each.op_type for each in proto.graph.node]


def scalar(value: float) -> np.ndarray:
    """Return a float32 scale."""
    return np.array(value, np.float32)


def zero(value: int = 0, kind: type = np.int8) -> np.ndarray:
    """Return a zero point."""
    return np.array(value, kind)
