"""Sums and differences of what is negated."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import constant, is_constant

__all__ = ["SIGNS"]

_OTHER = {"Add": "Sub", "Sub": "Add"}


def _apply(edit: Edit) -> int:
    return sum(_without_sign(edit, node) or _positive(edit, node) for node in edit.nodes()
               if node.op_type in _OTHER and not node.domain)


def _without_sign(edit: Edit, node: ir.Node) -> bool:
    """Add what is negated and taken away, or take away what is negated and added; tell whether there is such."""
    for place in (1, 0) if node.op_type == "Add" else (1,):
        other, negated = node.inputs[1 - place], node.inputs[place]
        maker = None if negated is None else negated.producer()
        if maker is None or maker.domain or maker.op_type != "Neg" or other is None or is_constant(other):
            continue
        new = edit.insert(node, _OTHER[node.op_type], [other, maker.inputs[0]])
        new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
        edit.replace(node, new)
        return True
    return False


def _positive(edit: Edit, node: ir.Node) -> bool:
    """Add the negative of a constant of negative numbers that is taken away; tell whether there is such."""
    held = constant(node.inputs[1]) if node.op_type == "Sub" else None
    if held is None or held.dtype != np.float32 or not held.size or not bool((held < 0).all()):
        return False
    new = edit.insert(node, "Add", [node.inputs[0], edit.constant(-held, node.outputs[0].name)])
    new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
    edit.replace(node, new)
    return True


SIGNS = Rule("signs", "A Neg is not added or taken away, and constants of negative numbers are not taken away: what "
             "is negated is taken away or added",
             "a + (−b) is a − b, and a − (−b) is a + b, rounded once", _apply)
