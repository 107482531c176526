"""Constants: an operator of constants alone is one, and one that was levels stays levels, wherever it is moved."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.constant_levels import ConstantLevels, of_constant, quantised, real_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.folding import ELEMENTWISE, folds, result
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    WEIGHTS,
    constant,
    is_constant,
    is_dequantise,
    is_move,
    is_of_levels,
    is_quantise,
    levels_behind,
)

__all__ = ["CONSTANTS"]

_INT8 = np.iinfo(np.int8)
_OF_NUMBERS = frozenset({*WEIGHTS, "BatchNormalization", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual",
                         "PRelu", "Pow", "Where"})
"""Operators that are something else by the numbers that they read."""
_OF_SIZES = frozenset({"Expand", "Gather", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Unsqueeze"})
"""Operators whose results have another shape by the numbers that they read behind their data."""
_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


def _apply(edit: Edit) -> int:
    return _not_fed(edit) + sum(_fold(edit, node) for node in edit.nodes() if node.inputs and len(node.outputs) == 1)


def _not_fed(edit: Edit) -> int:
    """Let no constant be an input of the model too, as in old formats; return how many were."""
    fed = [value for value in edit.graph.inputs if value.is_initializer()]
    for value in fed:
        edit.graph.inputs.remove(value)
    return len(fed)


def _fold(edit: Edit, node: ir.Node) -> bool:
    """Replace a node of constants by a constant, or by a DequantizeLinear of constants; tell whether it was one."""
    quantises = is_quantise(node)
    if edit.is_output(node.outputs[0]) or is_dequantise(node) or not (quantises or folds(node)):
        return False
    if not all(each is None or is_constant(each) or levels_behind(each) is not None for each in node.inputs):
        return False
    _put_levels_first(node)
    behind = levels_behind(node.inputs[0])
    if not quantises and behind is None and not _reaches_levels(node):
        return False    # A shape, or floats: the cleaning of the reader folds them.
    if quantises:
        values = real_constant(node.inputs[0])
        levels = None if values is None else quantised(node, values)
        return levels is not None and _replaced(edit, node, edit.constant(levels, node.outputs[0].name))
    held = of_constant(node.inputs[0])
    if held is not None and (made := _moved(edit, node, held)) is not None:
        return _replaced(edit, node, made)
    arrays = [None if each is None else real_constant(each) for each in node.inputs]
    if any(each is not None and array is None for each, array in zip(node.inputs, arrays, strict=True)):
        return False
    value = result(node, arrays, edit.opset)
    return value is not None and _replaced(edit, node, edit.constant(value, node.outputs[0].name))


def _put_levels_first(node: ir.Node) -> None:
    """Let a sum or product of a constant and of levels read the levels first."""
    if node.op_type in ("Add", "Mul") and levels_behind(node.inputs[0]) is None:
        first, second = node.inputs[:2]
        if levels_behind(second) is not None:
            node.replace_input_with(0, second)
            node.replace_input_with(1, first)


def _reaches_levels(node: ir.Node) -> bool:
    """Tell whether a product or an operator on levels reads what is made of a node's constant, perhaps through such.

    Or an operator that takes sizes from it: other rules ask for shapes.
    """
    todo, seen = [node], 0
    while todo and seen < 64:
        seen += 1
        for use in (use for output in todo.pop().outputs for use in output.uses()):
            reader = use.node
            if use.idx and not reader.domain and reader.op_type in _OF_SIZES:
                return True
            if is_quantise(reader) or is_dequantise(reader) or is_of_levels(reader) or (
                    not reader.domain and reader.op_type in _OF_NUMBERS):
                return True
            if folds(reader):
                todo.append(reader)
    return False


def _moved(edit: Edit, node: ir.Node, held: ConstantLevels) -> ir.Value | None:
    """Return a new DequantizeLinear of what a node makes of levels; None where that is no float on their scale.

    Levels without their zero point are int8 if they fit, int32 if they were, and else, of 8 bits, they keep it.
    """
    rest = [constant(each) for each in node.inputs[1:]]
    if any(each is not None and array is None for each, array in zip(node.inputs[1:], rest, strict=True)):
        return None
    if is_move(node):
        moved = [result(node, [np.broadcast_to(each, held.levels.shape), *rest], edit.opset)
                 for each in (held.levels, held.scale, held.zero)]
        if moved[0] is None or moved[1] is None or moved[2] is None:
            return None
        new = ConstantLevels(moved[0], moved[1], moved[2])
    elif node.op_type in ELEMENTWISE:
        new = held
        value = result(node, [held.real, *rest], edit.opset)
        if value is None or value.dtype != np.float32 or value.shape != held.levels.shape \
                or not bool((value == held.real).all()):
            return None
    else:
        return None
    difference, kind = new.difference, held.levels.dtype
    fits = bool(difference.size == 0 or (difference.min() >= _INT8.min and difference.max() <= _INT8.max))
    if fits and kind != np.int32:
        new = ConstantLevels(difference.astype(np.int8), new.scale, np.zeros((), np.int32))
    elif kind == np.int32:    # Sums of biases.
        new = ConstantLevels(difference, new.scale, np.zeros((), np.int32))
    elif kind not in _BYTES:
        return None
    parameters = new.axis_of_parameters()
    if parameters is None:
        return None
    scale, zero, axis = parameters
    name = node.outputs[0].name
    return edit.insert(node, "DequantizeLinear", [
        edit.constant(new.levels, f"{name}:levels"), edit.constant(scale, f"{name}:scale"),
        edit.constant(zero, f"{name}:zero")], {} if axis is None else {"axis": axis}, like=name)


def _replaced(edit: Edit, node: ir.Node, new: ir.Value) -> bool:
    edit.redirect(node.outputs[0], new)
    edit.drop(node)
    return True


CONSTANTS = Rule(
    "constants", "No Q, move or elementwise operator reads constants alone, and none is an input too; a DQ of "
    "constants is moved as levels",
    "each is computed once, by ONNX's formula in float32; levels are kept only if they give the same floats to the bit",
    _apply)
