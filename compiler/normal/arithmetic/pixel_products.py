"""A matrix product of the channels of each pixel, which a Transpose puts last for it, is a Conv of single pixels."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.constant_levels import ConstantLevels, of_constant, real_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, levels_behind, readers

__all__ = ["PIXEL_PRODUCTS"]

_LAST, _FIRST = [0, 2, 3, 1], [0, 3, 1, 2]


def _apply(edit: Edit) -> int:
    return sum(_convolved(edit, node) for node in edit.nodes() if node.op_type == "MatMul" and not node.domain)


def _convolved(edit: Edit, node: ir.Node) -> bool:
    """Replace such a product, and what is added to each channel behind it, by a Conv between Transposes."""
    turn, held = _maker(node.inputs[0]), of_constant(node.inputs[1])
    if turn is None or turn.op_type != "Transpose" or list(attribute(turn, "perm", ())) != _LAST or held is None \
            or held.levels.ndim != 2 or levels_behind(node.inputs[1]) is None or _turned_back(edit, node) is None:
        return False
    arrays = [np.broadcast_to(each, held.levels.shape).T[:, :, np.newaxis, np.newaxis]
              for each in (held.levels, held.scale, held.zero)]
    parameters = ConstantLevels(*arrays).axis_of_parameters()
    if parameters is None:
        return False
    name = f"{node.outputs[0].name}:pixels"
    given = [edit.constant(np.ascontiguousarray(each), name) for each in (arrays[0], *parameters[:2])]
    weights = edit.insert(node, "DequantizeLinear", given, {} if parameters[2] is None else {"axis": parameters[2]})
    last, offset = _turned_back(edit, node) or (node, None)
    value = edit.insert(node, "Conv", [turn.inputs[0], weights, *([] if offset is None else [offset])], like=node.name)
    new = edit.insert(last, "Transpose", [value], {"perm": _LAST})
    new.type, new.shape = last.outputs[0].type, last.outputs[0].shape
    edit.replace(last, new)
    if last is not node:
        edit.drop(node)
    return True


def _maker(value: ir.Value | None) -> ir.Node | None:
    node = None if value is None else value.producer()
    return None if node is None or node.domain else node


def _turned_back(edit: Edit, node: ir.Node) -> tuple[ir.Node, ir.Value | None] | None:
    """Return a product, or the Add of a number for each channel behind it and that; None if no Transpose undoes it."""
    last, offset = node, None
    after = readers(node.outputs[0])
    if len(after) == 1 and after[0].op_type == "Add" and not after[0].domain and not edit.is_output(node.outputs[0]):
        other = next((each for each in after[0].inputs if each is not node.outputs[0]), None)
        held = real_constant(other)
        if held is not None and held.ndim == 1:
            last, offset = after[0], other
    value, seen = last.outputs[0], 0
    while len(after := readers(value)) == 1 and not edit.is_output(value) and seen < _MOST_BETWEEN:
        if after[0].op_type == "Transpose" and not after[0].domain:
            return (last, offset) if list(attribute(after[0], "perm", ())) == _FIRST else None
        if after[0].domain or after[0].op_type not in _BETWEEN:
            return None
        value, seen = after[0].outputs[0], seen + 1
    return None


_MOST_BETWEEN = 8
_BETWEEN = frozenset({"Relu", "Clip", "LeakyRelu", "HardSwish", "Sigmoid", "QuantizeLinear", "DequantizeLinear"})

PIXEL_PRODUCTS = Rule(
    "pixel products", "A MatMul by a constant matrix between Transposes that put the channels last and first again is "
    "a Conv of single pixels", "each output is the same sum", _apply)
