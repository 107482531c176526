"""Nodes of constants, computed as ONNX's reference implementation does, or by ONNX Runtime where the two differ."""

import math

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi import onnxruntime_pybind11_state as onnx_runtime

from tilewright.compiler.normal.values import attribute, is_move

__all__ = ["ELEMENTWISE", "by_runtime", "folds", "result"]

ELEMENTWISE = frozenset({"Abs", "Add", "Cast", "Clip", "Div", "Max", "Min", "Mul", "Neg", "Relu", "Round", "Sub"})
"""Operators whose float32 result is one operation, rounded once: the same wherever it is computed."""

_BY_RUNTIME = frozenset({
    "BatchNormalization", "GRU", "Hardmax", "LRN", "LSTM", "LogSoftmax", "MaxPool", "RNN", "Resize", "Softmax"})
"""Operators that ONNX's reference computes by rules of its own (`findings/onnx-reference-own-rules.sh`)."""

_FEW_BITS = frozenset({ir.DataType.INT4, ir.DataType.UINT4, ir.DataType.INT2, ir.DataType.UINT2})
"""Types to which ONNX Runtime's Cast rounds; the reference's cuts off (`findings/onnxruntime-cast-four-bits.sh`)."""

_IR_VERSION = 10
"""A format that ONNX Runtime reads with operators of any opset."""

_GROWING = {"Expand", "Tile", "Resize", "Concat"}
_MOST = 2**22
"""Elements that a growing operator may make while compiling."""

_NOT_COMPUTED = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, NameError, RuntimeError, TypeError,
    ValueError, onnx.defs.SchemaError,
    onnx_runtime.Fail, onnx_runtime.InvalidArgument, onnx_runtime.InvalidGraph, onnx_runtime.NotImplemented,
    onnx_runtime.RuntimeException)
"""Exceptions that ONNX's reference and ONNX Runtime raise of inputs that contradict their operator, or that they lack.

The reference's own are of RuntimeError; it also looks for attributes that a broken node has not, names that an axis out
of range has not set, and operators that an opset has not. The others are of NumPy.
"""


def folds(node: ir.Node) -> bool:
    """Tell whether a node of constants is computed now."""
    return not node.domain and len(node.outputs) == 1 and (
        node.op_type in ELEMENTWISE or node.op_type == "ConstantOfShape" or is_move(node))


def by_runtime(node: ir.Node) -> bool:
    """Tell whether ONNX Runtime computes a node of constants, since ONNX's reference does it otherwise."""
    return node.op_type in _BY_RUNTIME or _to_few_bits(node)


def _to_few_bits(node: ir.Node) -> bool:
    return node.op_type == "Cast" and attribute(node, "to") in _FEW_BITS


def result(node: ir.Node, arrays: list[np.ndarray | None], opset: int) -> np.ndarray | None:
    """Return what a node makes of ``arrays``, None for absent inputs; None where the reference cannot tell."""
    if node.op_type in _GROWING and sum(each.size for each in arrays[:1] if each is not None) > _MOST:
        return None
    if node.op_type == "ConstantOfShape" and arrays and arrays[0] is not None and math.prod(arrays[0].tolist()) > _MOST:
        return None
    names = ["" if each is None else f"i{index}" for index, each in enumerate(arrays)]
    made = onnx.helper.make_node(node.op_type, names, ["o"])
    made.attribute.extend(ir.to_proto(node).attribute)
    feeds = {name: each for name, each in zip(names, arrays, strict=True) if each is not None}
    inputs = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
              for name, each in feeds.items()]
    nodes, narrow = [made], _to_few_bits(node)
    if narrow:      # NumPy has no such type, and ONNX Runtime gives none of ml_dtypes'.
        made.output[0] = "narrow"
        nodes.append(onnx.helper.make_node("Cast", ["narrow"], ["o"], to=onnx.TensorProto.INT8))
    graph = onnx.helper.make_graph(nodes, "constants", inputs, [onnx.ValueInfoProto(name="o")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=_IR_VERSION)
    try:
        with np.errstate(all="ignore"):     # infinities are results
            found = (_computed(model, feeds) if by_runtime(node)
                     else ReferenceEvaluator(model).run(["o"], feeds)[0])
    except _NOT_COMPUTED:
        return None     # A constant that is not computed stays where it is.
    if narrow:
        found = found.astype(ir.DataType(attribute(node, "to")).numpy())
    return np.asarray(found) if np.asarray(found).size <= max(_MOST, *(each.size for each in feeds.values())) else None


def _computed(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what it refuses stays where it is
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["o"], feeds)[0])
