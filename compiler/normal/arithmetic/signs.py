"""Sums and differences of what is negated."""

import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import is_constant

__all__ = ["SIGNS"]

_OTHER = {"Add": "Sub", "Sub": "Add"}


def _apply(edit: Edit) -> int:
    return sum(_without_sign(edit, node) for node in edit.nodes() if node.op_type in _OTHER and not node.domain)


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


SIGNS = Rule("signs", "A Neg is not added or taken away: what it negates is taken away or added",
             "a + (−b) is a − b, and a − (−b) is a + b, rounded once", _apply)
