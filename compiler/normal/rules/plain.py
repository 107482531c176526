"""Every Q and DQ states a zero point, and one scale is a scalar, which has no axis."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, constant, is_constant, is_dequantise, is_quantise

__all__ = ["PLAIN"]

_IDLE = ("output_dtype", "saturate", "precision")
"""Attributes that say nothing beside a stated zero point of integers."""


def _apply(edit: Edit) -> int:
    return sum(_plain(edit, node) for node in edit.nodes() if is_quantise(node) or is_dequantise(node))


def _plain(edit: Edit, node: ir.Node) -> bool:
    scale = constant(node.inputs[1]) if len(node.inputs) > 1 else None
    given = node.inputs[2] if len(node.inputs) > 2 else None
    if scale is None or attribute(node, "block_size", 0) or (given is not None and not is_constant(given)):
        return False
    zero = _zero(node, scale) if given is None else constant(given)
    if zero is None or zero.dtype.kind not in "iuV" or (zero.shape != scale.shape and zero.size != scale.size):
        return False
    changed = given is None
    computed = not is_constant(node.inputs[0])
    one = scale.size == 1 or (computed and scale.size > 0 and bool((scale == scale.flat[0]).all())
                              and bool((zero == zero.flat[0]).all()))
    if one and (scale.ndim or zero.ndim):
        scale, zero, changed = scale.flat[0].reshape(()), np.asarray(zero.flat[0]), True
    if changed:
        if len(node.inputs) < 3:
            node.resize_inputs(3)
        node.replace_input_with(1, edit.constant(scale, node.inputs[1].name if node.inputs[1] else None))
        node.replace_input_with(2, edit.constant(zero, f"{node.outputs[0].name}:zero"))
    idle = [name for name in (*_IDLE, *(("axis",) if scale.ndim == 0 else ())) if name in node.attributes]
    if not changed and "axis" not in idle:
        return False
    for name in idle:
        del node.attributes[name]
    return True


def _zero(node: ir.Node, scale: np.ndarray) -> np.ndarray | None:
    """Return the zero point that a node without one has; None where its type is not known."""
    if is_quantise(node):
        stated = attribute(node, "output_dtype", 0)
        kind = ir.DataType(stated) if stated else node.outputs[0].dtype or ir.DataType.UINT8
    else:
        levels = node.inputs[0]
        kind = None if levels is None else levels.dtype
        maker = None if levels is None else levels.producer()
        if kind is None and is_quantise(maker) and (len(maker.inputs) < 3 or maker.inputs[2] is None):
            kind = ir.DataType.UINT8
    if kind is None or not kind.is_integer():
        return None
    return np.zeros(scale.shape, kind.numpy())


PLAIN = Rule("plain", "Each Q and DQ states a zero point, and a single scale, however it is written, is a scalar "
             "without an axis", "0 is the zero point of one that states none (ONNX, QuantizeLinear)", _apply)
