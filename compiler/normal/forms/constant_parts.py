"""Constants among levels are levels too where a Concat joins them, and are added where a Where chooses them."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.constant_levels import ConstantLevels, quantised, real_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    attribute,
    constant,
    is_dequantise,
    is_quantise,
    per_tensor,
    readers,
    same_parameters,
    source,
)

__all__ = ["MASKS", "PARTS"]

_FLOATS = np.finfo(np.float32)


def _quantise_behind(edit: Edit, node: ir.Node) -> ir.Node | None:
    """Return a Q that reads a node's result, if there is nothing else that does but Q of equal parameters."""
    after = readers(node.outputs[0])
    if not after or edit.is_output(node.outputs[0]) or not all(
            is_quantise(each) and per_tensor(each) and same_parameters(each, after[0]) for each in after):
        return None
    return after[0]


def _plus(edit: Edit, node: ir.Node, value: ir.Value, array: np.ndarray, like: ir.Node) -> bool:
    """Replace a node by ``value`` plus a constant, as levels with the parameters of the Q or DQ ``like``."""
    levels = quantised(like, np.clip(array, _FLOATS.min, _FLOATS.max).astype(np.float32))
    if levels is None:
        return False
    new = value
    if array.any():
        added = edit.insert(node, "DequantizeLinear", [
            edit.constant(levels, f"{node.outputs[0].name}:constants"), *like.inputs[1:3]])
        new = edit.insert(node, "Add", [value, added])
    if is_dequantise(like):
        new = edit.quantised(new, like, node)
    new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
    edit.replace(node, new)
    return True


def _apply_masks(edit: Edit) -> int:
    return sum(_masked(edit, node) for node in edit.nodes() if node.op_type == "Where" and not node.domain)


def _masked(edit: Edit, node: ir.Node) -> bool:
    """Replace a Where of levels and a constant by a Mul and an Add; tell whether it is one."""
    mask, after = constant(node.inputs[0]), _quantise_behind(edit, node)
    if mask is None or mask.dtype != np.bool_ or after is None:
        return False
    for chosen, other, keeps in ((node.inputs[1], node.inputs[2], mask), (node.inputs[2], node.inputs[1], ~mask)):
        levels, rest = source(chosen), real_constant(other)
        if chosen is None or levels is None or len(levels.inputs) < 3 or rest is None \
                or rest.dtype != np.float32 or np.isnan(rest).any() or (keeps.all() and _may_be_all(chosen, node)):
            continue
        keeps = np.broadcast_to(keeps, np.broadcast_shapes(keeps.shape, rest.shape))
        factor = edit.constant(keeps.astype(np.float32), f"{node.outputs[0].name}:mask")
        kept, added = edit.insert(node, "Mul", [chosen, factor]), np.where(keeps, np.float32(0), rest)
        return _plus(edit, node, edit.quantised(kept, levels, node) if added.any() else kept, added, after)
    return False


def _may_be_all(chosen: ir.Value, node: ir.Node) -> bool:
    """Tell whether a Where that takes all of ``chosen`` may be that, as far as shapes are known yet."""
    shapes = [each.shape for each in (chosen, node.outputs[0])]
    return None in shapes or list(shapes[0] or ()) == list(shapes[1] or ())


def _apply_parts(edit: Edit) -> int:
    return sum(_joined(edit, node) for node in edit.nodes() if node.op_type == "Concat" and not node.domain)


def _joined(edit: Edit, node: ir.Node) -> bool:
    """Give the constants and levels that a Concat joins the parameters of its result; tell whether some had others."""
    arrays = [real_constant(each) for each in node.inputs]
    computed = [each for each, array in zip(node.inputs, arrays, strict=True) if array is None]
    fixed = [each for each in arrays if each is not None]
    if not computed or not fixed or not all(map(source, computed)) or any(
            each.dtype != np.float32 or not np.isfinite(each).all() for each in fixed):
        return False
    after = _quantise_behind(edit, node) or _levels_of_all(computed, fixed)
    if after is None or all(each is not None and is_dequantise(each.producer()) and same_parameters(
            each.producer(), after) for each in node.inputs):
        return False
    values: list[ir.Value | None] = []
    for index, (each, array) in enumerate(zip(node.inputs, arrays, strict=True)):
        if array is None:
            assert each is not None
            values.append(each if same_parameters(source(each), after) else edit.quantised(each, after, node))
            continue
        levels = quantised(after, array)
        if levels is None:
            return False
        values.append(edit.insert(node, "DequantizeLinear", [
            edit.constant(levels, f"{node.outputs[0].name}:constant {index}"), *after.inputs[1:3]]))
    new = edit.insert(node, "Concat", values, {"axis": attribute(node, "axis", 1)})
    if is_dequantise(after):
        new = edit.quantised(new, after, node)
    new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
    edit.replace(node, new)
    return True


def _levels_of_all(computed: Sequence[ir.Value | None], fixed: Sequence[np.ndarray]) -> ir.Node | None:
    """Return the DQ whose parameters all parts share, constants too; None if there is none."""
    first = source(computed[0])
    if first is None or not all(same_parameters(source(each), first) for each in computed[1:]):
        return None
    scale, zero = constant(first.inputs[1]), constant(first.inputs[2])
    for array in fixed:
        levels = quantised(first, array)
        if levels is None or scale is None or zero is None \
                or not np.array_equal(ConstantLevels(levels, scale, zero).real, array):
            return None
    return first


MASKS = Rule("masks", "A Where by a constant mask, of levels and a constant, is their product with 0 and 1 plus the "
             "constant where the mask is 0", "levels are finite: x · 1 is x, and x · 0 is 0; a sum with 0 is the other",
             _apply_masks)

PARTS = Rule("parts", "What a Concat of levels and constants joins has the parameters of its result",
             "each element is rounded as the Q behind rounds it", _apply_parts)
