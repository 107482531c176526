"""A bias in int32 counts in steps of input scale · weight scale, or is float; a Gemm's has a number for each column."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.constant_levels import of_constant, real_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import constant, levels_behind, source, weight_axis

__all__ = ["BIASES"]

_BIASED = ("Conv", "ConvTranspose", "Gemm")
_CLOSE = 1e-5
"""Relative; exporters compute the product of the scales in float32 or float64."""


def _apply(edit: Edit) -> int:
    found = [node for node in edit.nodes() if not node.domain and node.op_type in _BIASED]
    return sum(_in_a_row(edit, node) or _floated(edit, node) for node in found)


def _in_a_row(edit: Edit, node: ir.Node) -> bool:
    """Give a Gemm whose bias is one number a number for each of its columns.

    A row of two dimensions stays: ONNX Runtime computes such a Gemm in float32.
    """
    bias = node.inputs[2] if node.op_type == "Gemm" and len(node.inputs) > 2 else None
    real, weights = real_constant(bias), of_constant(node.inputs[1])
    if bias is None or real is None or weights is None or weights.levels.ndim != 2 or real.dtype != np.float32:
        return False
    columns = weights.levels.shape[weight_axis(node, 2)]
    if real.size != 1 or columns == 1:
        return False
    node.replace_input_with(2, edit.constant(np.array(np.broadcast_to(real.ravel(), columns)), f"{bias.name}:row"))
    return True


def _floated(edit: Edit, node: ir.Node) -> bool:
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    maker, x, weights = levels_behind(bias), source(node.inputs[0]), levels_behind(node.inputs[1])
    if bias is None or maker is None or x is None or weights is None:
        return False
    held, factors = of_constant(bias), constant(weights.inputs[1])
    scale = constant(x.inputs[1])
    if held is None or factors is None or scale is None or held.levels.shape[-1:] != (held.levels.size,):
        return False
    steps = scale.astype(np.float64) * factors.ravel().astype(np.float64)
    given = np.broadcast_to(held.scale, held.levels.shape).astype(np.float64).ravel()
    if steps.size not in (1, given.size) or bool((np.abs(given - steps) <= _CLOSE * np.abs(steps)).all()):
        return False
    node.replace_input_with(2, edit.constant(held.real, f"{bias.name}:float"))
    return True


BIASES = Rule("biases", "An int32 bias whose own scale is not input scale · weight scale is a float bias, and a Gemm's "
              "is a number for each column", "ONNX Runtime takes the levels of an int32 bias without looking at its "
              "scale; the floats are the file's", _apply)
