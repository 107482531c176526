"""A bias counts in int32 steps of input scale · weight scale, or is no number of them; a Gemm's has one per column."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.constant_levels import levels_of_steps, of_constant, real_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, constant, levels_behind, source, weight_axis

__all__ = ["BIASES"]

_BIASED = ("Conv", "ConvTranspose", "Gemm")
_CLOSE = 1e-5
"""Relative; exporters compute the product of the scales in float32 or float64."""

_GAINS = ("alpha", "beta")
_MOST_STEPS = 2**22
"""Of a bias: float32 tells its steps, and halves of them, from their neighbours."""

_COUNTED = ("Conv", "Gemm")
"""Operators whose bias of floats ONNX Runtime rounds to such steps itself, where their sums are integers."""


def _apply(edit: Edit) -> int:
    found = [node for node in edit.nodes() if not node.domain and node.op_type in _BIASED]
    return sum(_in_a_row(edit, node) or _floated(edit, node) or _counted(edit, node) for node in found)


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


def _counted(edit: Edit, node: ir.Node) -> bool:
    """Give a product of levels whose floats of a bias are whole steps of its sums these, as int32 levels."""
    bias = node.inputs[2] if node.op_type in _COUNTED and len(node.inputs) > 2 else None
    floats, x, weights = constant(bias), source(node.inputs[0]), of_constant(node.inputs[1])
    if bias is None or floats is None or floats.dtype != np.float32 or floats.ndim != 1 or x is None or weights is None:
        return False
    scale, scales = constant(x.inputs[1]), weights.axis_of_scales()
    if scale is None or scales is None or scales[1] not in (None, weight_axis(node, weights.levels.ndim)) \
            or scales[0].size not in (1, floats.size) or {attribute(node, key, 1.0) for key in _GAINS} != {1.0}:
        return False
    alone = not scales[0].ndim
    found = levels_of_steps(floats.reshape((1, -1) if alone else (-1, 1)), np.ravel(scale * scales[0]), _MOST_STEPS)
    if found is None:
        return False
    levels, steps = found[0].ravel(), found[1].reshape(np.shape(scales[0]))
    node.replace_input_with(2, edit.insert(node, "DequantizeLinear", [
        edit.constant(levels, f"{bias.name}:levels"), edit.constant(steps, f"{bias.name}:scale"),
        edit.constant(np.zeros(steps.shape, np.int32), f"{bias.name}:zero")],
        {} if alone else {"axis": 0}, like=bias.name))
    return True



BIASES = Rule("biases", "An int32 bias whose own scale is not input scale · weight scale is a float bias, a float bias "
              "that is whole steps of that is an int32 one, and a Gemm's is a number for each column", "ONNX Runtime "
              "takes the levels of an int32 bias without looking at its scale, and rounds a float bias to them; the "
              "floats are the file's", _apply)
