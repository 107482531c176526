"""Two Transposes that undo each other are not there, whatever changes each element by itself stands between them."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    CLAMPS,
    attribute,
    constant,
    is_dequantise,
    is_quantise,
    per_tensor,
    readers,
)

__all__ = ["TURNS"]

_SCALES, _SIZES = 2, 3


def _apply(edit: Edit) -> int:
    return sum(_straightened(edit, node) for node in edit.nodes() if _turns(node) and node.graph is not None)


def _turns(node: ir.Node | None) -> bool:
    return node is not None and not node.domain and node.op_type == "Transpose" and "perm" in node.attributes


def _straightened(edit: Edit, last: ir.Node) -> bool:
    """Drop a Transpose and the one before it that it undoes; tell whether there was one."""
    between: list[ir.Node] = []
    value = last.inputs[0]
    while value is not None and len(readers(value)) == 1 and not edit.is_output(value):
        node = value.producer()
        if node is None:
            return False
        if _turns(node):
            return bool(between) and _dropped(edit, node, between, last)
        if not _is_pointwise(node):
            return False
        between.append(node)
        value = node.inputs[0]
    return False


def _is_pointwise(node: ir.Node) -> bool:
    """Tell whether a node gives the same elements, whichever way its input is turned; a Resize with other factors."""
    if node.domain:
        return False
    if is_quantise(node) or is_dequantise(node):
        return per_tensor(node)
    return node.op_type in CLAMPS or (node.op_type == "Resize" and _factors(node) is not None)


def _factors(node: ir.Node) -> tuple[int, np.ndarray] | None:
    """Return the input of a Resize that has a constant for each axis, and that constant; None if it has other ones."""
    region = constant(node.inputs[1]) if len(node.inputs) > 1 else None
    if attribute(node, "axes") is not None or (region is not None and region.size):
        return None
    for index in (_SCALES, _SIZES):
        value = constant(node.inputs[index]) if len(node.inputs) > index else None
        if value is not None and value.size:
            return index, value
    return None


def _dropped(edit: Edit, first: ir.Node, between: list[ir.Node], last: ir.Node) -> bool:
    turn, back = list(attribute(first, "perm")), list(attribute(last, "perm"))
    if edit.is_output(last.outputs[0]) or len(turn) != len(back) \
            or [turn[axis] for axis in back] != list(range(len(turn))):
        return False
    for node in between:
        if node.op_type == "Resize":
            found = _factors(node)
            assert found is not None
            index, factors = found
            node.replace_input_with(index, edit.constant(factors[back], node.inputs[index].name))
        node.outputs[0].shape = None
    between[-1].replace_input_with(0, first.inputs[0])
    edit.redirect(last.outputs[0], between[0].outputs[0])
    edit.drop(last)
    edit.drop(first)
    return True


TURNS = Rule("turns", "No Transpose undoes another with nothing but Q, DQ, clamps and Resize between them",
             "these treat every element alike, and a Resize takes its factors in the other order", _apply)
