"""Kinds of value of an ONNX graph: a constant, levels behind a DequantizeLinear, what a move or a choice makes."""

from collections.abc import Hashable
from typing import Any, TypeGuard

import numpy as np
import onnx
import onnx_ir as ir

__all__ = [
    "ARITHMETIC", "CHOICES", "CLAMPS", "FUNCTIONS_OF_ONE", "MOVES", "WEIGHTS", "attribute", "constant", "data_inputs",
    "is_constant", "is_dequantise", "is_move", "is_of_levels", "is_quantise", "levels_behind", "parameters",
    "per_tensor", "readers", "same_parameters", "source", "weight_axis", "zero_type",
]

MOVES = frozenset({"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Split", "Gather", "Expand",
                   "Tile", "DepthToSpace", "SpaceToDepth", "Concat", "Identity"})
"""Operators whose results are elements of their inputs, whatever those are: they commute with any function of one."""

CHOICES = frozenset({"MaxPool", "GlobalMaxPool", "ReduceMax"})
"""Operators whose results are the largest of some elements: they commute with monotone functions."""

CLAMPS = frozenset({"Relu", "Clip"})
"""Monotone functions: of levels they give levels where their bounds are some."""

FUNCTIONS_OF_ONE = frozenset({
    "Relu", "Clip", "LeakyRelu", "HardSwish", "HardSigmoid", "Sigmoid", "Tanh", "Elu", "Selu", "Celu", "Softplus",
    "Softsign", "Mish", "Gelu", "ThresholdedRelu"})
"""Functions of each element by itself, whose other inputs are numbers."""

ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div"})
"""Operators of two tensors, element by element."""

WEIGHTS = {"Conv": 0, "ConvTranspose": 1, "Gemm": 1, "MatMul": -1}
"""Operators whose second input is mostly constant, and its axis of output channels (of a Gemm without transB)."""


def is_quantise(node: ir.Node | None) -> TypeGuard[ir.Node]:
    """Tell whether a node is a QuantizeLinear."""
    return node is not None and node.op_type == "QuantizeLinear" and not node.domain


def is_of_levels(node: ir.Node | onnx.NodeProto) -> bool:
    """Tell whether a node computes on levels, of whatever domain: QLinearConv, QGemm and their like."""
    return node.op_type.startswith("QLinear") or node.op_type == "QGemm"


def is_dequantise(node: ir.Node | None) -> TypeGuard[ir.Node]:
    """Tell whether a node is a DequantizeLinear."""
    return node is not None and node.op_type == "DequantizeLinear" and not node.domain


def is_move(node: ir.Node | None) -> bool:
    """Tell whether a node only moves elements."""
    if node is None or node.domain:
        return False
    return node.op_type in MOVES or (node.op_type == "Resize" and attribute(node, "mode", "nearest") == "nearest"
                                     and attribute(node, "coordinate_transformation_mode", "") != "tf_crop_and_resize")


def is_constant(value: ir.Value | None) -> bool:
    """Tell whether a value is a constant of the model that nobody feeds."""
    return value is not None and value.const_value is not None


def constant(value: ir.Value | None) -> np.ndarray | None:
    """Return the value of a constant; None of what is none."""
    return None if value is None or value.const_value is None else np.asarray(value.const_value.numpy())


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """Return an attribute of a node, ``default`` where it does not state it."""
    return node.attributes[name].value if name in node.attributes else default


def readers(value: ir.Value) -> list[ir.Node]:
    """Return the nodes that read a value, once for each input that does."""
    return [use.node for use in value.uses()]


def data_inputs(node: ir.Node) -> list[ir.Value | None]:
    """Return the inputs whose elements a move or a choice hands on."""
    return list(node.inputs if node.op_type == "Concat" else node.inputs[:1])


def zero_type(node: ir.Node) -> np.dtype | None:
    """Return the type of the levels of a Q or DQ that states its zero point; None of another."""
    zero = node.inputs[2] if len(node.inputs) > 2 else None
    if zero is None or zero.const_value is None:
        return None
    return np.dtype(zero.const_value.dtype.numpy())


def parameters(node: ir.Node) -> Hashable | None:
    """Return what two Q or DQ of equal parameters share; None where it is computed, or the zero point is not stated."""
    if len(node.inputs) < 3:
        return None
    scale, zero = constant(node.inputs[1]), constant(node.inputs[2])
    if scale is None or zero is None:
        return None
    axis = attribute(node, "axis", 1) if scale.ndim else None
    return (scale.tobytes(), zero.tobytes(), str(scale.dtype), str(zero.dtype), scale.shape, axis,
            attribute(node, "block_size", 0))


def same_parameters(node: ir.Node | None, other: ir.Node | None) -> bool:
    """Tell whether two Q or DQ are known to have equal parameters."""
    if node is None or other is None:
        return False
    known = parameters(node)
    return known is not None and known == parameters(other)


def per_tensor(node: ir.Node | None) -> bool:
    """Tell whether a Q or DQ has one scale and zero point that are known."""
    if node is None or len(node.inputs) < 3:
        return False
    return all(value is not None and value.const_value is not None and len(value.const_value.shape) == 0
               for value in node.inputs[1:3])


def source(value: ir.Value | None) -> ir.Node | None:
    """Return the DQ, with one scale, of computed levels that makes ``value``; None where there is none."""
    node = None if value is None else value.producer()
    return node if is_dequantise(node) and per_tensor(node) and not is_constant(node.inputs[0]) else None


def levels_behind(value: ir.Value | None) -> ir.Node | None:
    """Return the DQ of constant levels and parameters that makes ``value``; None where there is none."""
    node = None if value is None else value.producer()
    if not is_dequantise(node) or not all(each is None or is_constant(each) for each in node.inputs[:3]):
        return None
    return node


def weight_axis(node: ir.Node, rank: int) -> int:
    """Return the axis of output channels of the constant that a node of ``WEIGHTS`` multiplies by."""
    if node.op_type == "Gemm" and attribute(node, "transB", 0):
        return 0
    return WEIGHTS[node.op_type] % max(rank, 1)
