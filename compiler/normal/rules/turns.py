"""Two Transposes that undo each other are not there, whatever changes each element by itself stands between them.

And one behind a softmax stands before it if that makes channels of what the softmax goes along: rows lie together then.
So does one that turns floats, which a softmax makes of levels: levels are moved by the datapath.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    ARITHMETIC,
    CLAMPS,
    FUNCTIONS_OF_ONE,
    attribute,
    constant,
    is_dequantise,
    is_quantise,
    per_tensor,
    readers,
)

__all__ = ["TURNS"]

_SCALES, _SIZES = 2, 3
_SOFTMAX = ("Softmax", "LogSoftmax")
_ONE_AXIS = 13
"""Version of ONNX from which on a softmax goes along one axis."""
_CHANNELS, _IMAGE = 1, 4


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
            return bool(between) and _dropped(edit, [node], between, last)
        if _is_of_turned(node):
            return _dropped(edit, [each.producer() for each in node.inputs if each is not None], [*between, node], last)
        if not _is_pointwise(node):
            return (_goes_along_channels(edit, node, last) or (not between and _turns_floats(edit, node, last))) \
                and _raised(edit, node, between, last)
        between.append(node)
        value = node.inputs[0]
    return False


def _is_pointwise(node: ir.Node) -> bool:
    """Tell whether a node gives the same elements, whichever way its input is turned; a Resize with other factors."""
    if node.domain:
        return False
    if is_quantise(node) or is_dequantise(node):
        return per_tensor(node)
    if node.op_type in ARITHMETIC:
        return _scalar_beside(node)
    return node.op_type in CLAMPS | FUNCTIONS_OF_ONE or (node.op_type == "Resize" and _factors(node) is not None)


def _scalar_beside(node: ir.Node) -> bool:
    """Tell whether the second operand is one constant number, so that the first gives the shape."""
    other = constant(node.inputs[1])
    return other is not None and other.ndim == 0


def _is_of_turned(node: ir.Node) -> bool:
    """Tell whether both operands of a node are turned, in the same way."""
    if node.domain or node.op_type not in ARITHMETIC:
        return False
    makers = [None if each is None else each.producer() for each in node.inputs]
    turns = [attribute(each, "perm") for each in makers if each is not None and _turns(each)]
    return len(turns) == 2 and list(turns[0]) == list(turns[1])


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


def _dropped(edit: Edit, firsts: Sequence[ir.Node], between: list[ir.Node], last: ir.Node) -> bool:
    """Take out the Transposes before and behind some nodes if the last undoes what each of the first does."""
    turn, back = list(attribute(firsts[0], "perm")), list(attribute(last, "perm"))
    if len(turn) != len(back) or [turn[axis] for axis in back] != list(range(len(turn))):
        return False
    for node in between:
        if node.op_type == "Resize":
            found = _factors(node)
            assert found is not None
            index, factors = found
            node.replace_input_with(index, edit.constant(factors[back], node.inputs[index].name))
        node.outputs[0].shape = None
    for index, first in enumerate(firsts):
        between[-1].replace_input_with(index, first.inputs[0])
    edit.replace(last, between[0].outputs[0])
    return True


def _goes_along_channels(edit: Edit, node: ir.Node, last: ir.Node) -> bool:
    """Tell whether a softmax goes along what a Transpose behind it makes the channels of an image."""
    if node.domain or node.op_type not in _SOFTMAX or edit.opset < _ONE_AXIS or edit.is_output(last.outputs[0]):
        return False
    turn = list(attribute(last, "perm"))
    axis = attribute(node, "axis", -1) % _IMAGE
    return len(turn) == _IMAGE and axis != _CHANNELS and turn.index(axis) == _CHANNELS


def _turns_floats(edit: Edit, node: ir.Node, last: ir.Node) -> bool:
    """Tell whether a Transpose turns what a softmax of levels leaves in float, which only the host core moves."""
    if node.domain or node.op_type not in _SOFTMAX or edit.opset < _ONE_AXIS:
        return False
    given = None if node.inputs[0] is None else node.inputs[0].producer()
    return is_dequantise(given) and not any(is_quantise(each) for each in readers(last.outputs[0]))


def _raised(edit: Edit, softmax: ir.Node, between: list[ir.Node], last: ir.Node) -> bool:
    """Put a Transpose before a softmax, and what changes each element between them behind both."""
    if any(node.op_type == "Resize" for node in between):
        return False
    turn = list(attribute(last, "perm"))
    turned = edit.insert(softmax, "Transpose", [softmax.inputs[0]], {"perm": turn})
    softmax.replace_input_with(0, turned)
    softmax.attributes["axis"] = ir.AttrInt64("axis", turn.index(attribute(softmax, "axis", -1) % len(turn)))
    for node in (softmax, *between):
        node.outputs[0].shape = None
    edit.replace(last, (between or [softmax])[0].outputs[0])
    return True


TURNS = Rule("turns", "No Transpose undoes another with nothing but Q, DQ, functions, arithmetic and Resize between "
             "them, makes channels of what a softmax goes along, or turns floats that a softmax makes of levels",
             "these treat every element alike, a Resize takes its factors in the other order, and a softmax takes its "
             "axis", _apply)
