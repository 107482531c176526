"""Activations of 2 and 4 bits are bytes between the ends of their own type: Q, Clip of levels, DQ."""

import ml_dtypes
import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import constant, is_dequantise, is_quantise, per_tensor, readers, zero_type

__all__ = ["NARROW"]

_INT8, _UINT8 = np.dtype(np.int8), np.dtype(np.uint8)
_NARROW = [np.dtype(each) for each in (ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.int4, ml_dtypes.uint4)]


def _apply(edit: Edit) -> int:
    found = [node for node in edit.nodes() if is_quantise(node) and per_tensor(node) and zero_type(node) in _NARROW]
    used = {zero_type(node) for node in edit.nodes() if is_quantise(node)} if found else set()
    kind = _UINT8 if _UINT8 in used and _INT8 not in used else _INT8
    return sum(_widened(edit, node, kind) for node in found)


def _widened(edit: Edit, node: ir.Node, kind: np.dtype) -> bool:
    """Let a Q that DQs alone read make bytes, and clamp these to what its own type holds; tell whether it did."""
    levels, zero, after = node.outputs[0], constant(node.inputs[2]), readers(node.outputs[0])
    if zero is None or not after or edit.is_output(levels) \
            or not all(is_dequantise(each) and per_tensor(each) and zero_type(each) == zero.dtype for each in after):
        return False
    held = ml_dtypes.iinfo(zero.dtype)
    shift = 128 if kind == _UINT8 and held.min < 0 else 0
    for each in (node, *after):
        point = constant(each.inputs[2])
        assert point is not None
        each.replace_input_with(2, edit.constant(np.asarray(int(point) + shift, kind), each.inputs[2].name))
    node.attributes.pop("output_dtype", None)
    levels.type = ir.TensorType(ir.DataType.from_numpy(kind))
    bounds = [edit.constant(np.asarray(end + shift, kind), f"{levels.name}:end") for end in (held.min, held.max)]
    clamped = edit.insert(node, "Clip", [levels, *bounds], after=True, like=levels.name)
    clamped.type, clamped.shape = levels.type, levels.shape
    edit.redirect(levels, clamped, keep=[each for each in readers(levels) if each is clamped.producer()])
    return True


NARROW = Rule("narrow", "Activations of 2 and 4 bits are bytes, which a Clip keeps within what those hold",
              "q - z is the same number, and the Clip saturates as the Q of few bits does", _apply)
