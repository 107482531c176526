"""Bytes of an image that are cast to float are levels of scale 1."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, constant, is_dequantise, is_move, per_tensor, readers

__all__ = ["IMAGES"]

_BYTES = (ir.DataType.INT8, ir.DataType.UINT8)


def _apply(edit: Edit) -> int:
    return sum(_dequantised(edit, node) for node in edit.nodes() if _casts(node))


def _casts(node: ir.Node) -> bool:
    return not node.domain and node.op_type == "Cast" and attribute(node, "to") == ir.DataType.FLOAT


def _dequantised(edit: Edit, node: ir.Node) -> bool:
    x = node.inputs[0]
    if x is None or x.dtype not in _BYTES or not _is_image(x):
        return False
    parameters = [edit.constant(value, f"{x.name}:{what}")
                  for value, what in ((np.ones((), np.float32), "one"), (np.zeros((), x.dtype.numpy()), "zero"))]
    new = edit.insert(node, "DequantizeLinear", [x, *parameters])
    new.type, new.shape = ir.TensorType(ir.DataType.FLOAT), x.shape
    name, maker = node.name, new.producer()
    edit.replace(node, new)
    assert maker is not None
    maker.name = name
    return True


def _is_image(value: ir.Value) -> bool:
    """Tell whether a value is an input of the model, perhaps moved, that is only cast."""
    while all(_casts(each) or is_move(each) or _is_of_one(each) for each in readers(value)):
        node = value.producer()
        if node is None:
            return value.is_graph_input()
        if not is_move(node) or node.op_type == "Concat" or node.inputs[0] is None:
            return False
        value = node.inputs[0]
    return False


def _is_of_one(node: ir.Node) -> bool:
    """Tell whether a node is what this rule makes of a Cast."""
    return per_tensor(node) and is_dequantise(node) and constant(node.inputs[1]) == 1 and constant(node.inputs[2]) == 0


IMAGES = Rule("images", "A Cast of an input's bytes to float is a DQ of scale 1 and zero point 0",
              "(q - 0) · 1 is the same float", _apply)
