"""Constants among levels, joined by a Concat or chosen by a Where, are added to levels with zeros in their place."""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.constant_levels import ConstantLevels, quantised, real_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.forms.ranks import sizes_of
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

_PADS_ARE_AN_INPUT = 11
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
                or rest.dtype != np.float32 or np.isnan(rest).any():
            continue
        factor = edit.constant(keeps.astype(np.float32), f"{node.outputs[0].name}:mask")
        kept, added = edit.insert(node, "Mul", [chosen, factor]), np.where(keeps, np.float32(0), rest)
        return _plus(edit, node, edit.quantised(kept, levels, node) if added.any() else kept, added, after)
    return False


@dataclass(frozen=True, slots=True)
class _Parts:
    """Inputs of a Concat along ``axis``: constants, then computed values of ``extent`` elements, then constants."""

    axis: int
    before: list[np.ndarray]
    computed: list[ir.Value]
    extent: int
    behind: list[np.ndarray]


def _apply_parts(edit: Edit) -> int:
    return sum(_padded(edit, node) for node in edit.nodes() if node.op_type == "Concat" and not node.domain)


def _padded(edit: Edit, node: ir.Node) -> bool:
    """Replace a Concat of levels and constants by a Pad and an Add; tell whether it is one."""
    parts = _parts(node) if edit.opset >= _PADS_ARE_AN_INPUT else None
    after = None if parts is None else _quantise_behind(edit, node) or _levels_of_all(parts)
    if after is None or parts is None:
        return _split(edit, node)
    fixed = [*parts.before, *parts.behind]
    dims = list(fixed[0].shape)
    begins, ends = ([0] * len(dims), [0] * len(dims))
    begins[parts.axis] = sum(each.shape[parts.axis] for each in parts.before)
    ends[parts.axis] = sum(each.shape[parts.axis] for each in parts.behind)
    dims[parts.axis] = parts.extent
    whole = np.concatenate([*parts.before, np.zeros(dims, np.float32), *parts.behind], parts.axis)
    values = [each if same_parameters(source(each), after) else edit.quantised(each, after, node)
              for each in parts.computed]
    value = values[0] if len(values) == 1 else edit.quantised(
        edit.insert(node, "Concat", values, {"axis": parts.axis}), after, node)
    pads = edit.constant(np.array([*begins, *ends], np.int64), f"{node.outputs[0].name}:pads")
    return _plus(edit, node, edit.quantised(edit.insert(node, "Pad", [value, pads]), after, node), whole, after)


def _split(edit: Edit, node: ir.Node) -> bool:
    """Join what stands before the last of some constants in the middle first; tell whether there are such."""
    after, arrays = _quantise_behind(edit, node), [real_constant(each) for each in node.inputs]
    computed = [index for index, each in enumerate(arrays) if each is None]
    inner = [index for index, each in enumerate(arrays) if each is not None and computed[:1] < [index] < computed[-1:]]
    if after is None or not inner or not all(source(node.inputs[each]) for each in computed):
        return False
    stop = next(index for index in range(inner[0], len(arrays)) if arrays[index] is None)
    joined = edit.insert(node, "Concat", node.inputs[:stop], {"axis": attribute(node, "axis", 1)})
    rest = [edit.quantised(joined, after, node), *node.inputs[stop:]]
    new = edit.insert(node, "Concat", rest, {"axis": attribute(node, "axis", 1)})
    new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
    edit.replace(node, new)
    return True


def _levels_of_all(parts: _Parts) -> ir.Node | None:
    """Return the DQ whose parameters all parts share, constants too; None if there is none."""
    first = source(parts.computed[0])
    if first is None or not all(same_parameters(source(each), first) for each in parts.computed[1:]):
        return None
    scale, zero = constant(first.inputs[1]), constant(first.inputs[2])
    for array in (*parts.before, *parts.behind):
        levels = quantised(first, array)
        if levels is None or scale is None or zero is None \
                or not np.array_equal(ConstantLevels(levels, scale, zero).real, array):
            return None
    return first


def _parts(node: ir.Node) -> _Parts | None:
    """Return what a Concat joins; None if nothing computed, no constant or one in the middle is among it."""
    arrays = [real_constant(each) for each in node.inputs]
    open_ = [index for index, each in enumerate(arrays) if each is None]
    fixed = [each for each in arrays if each is not None]
    if not open_ or not fixed or len(open_) != open_[-1] - open_[0] + 1 or any(
            each.dtype != np.float32 or each.ndim != fixed[0].ndim or not np.isfinite(each).all() for each in fixed):
        return None
    axis = attribute(node, "axis", 1) % fixed[0].ndim
    values = [value for value in node.inputs[open_[0]:open_[-1] + 1] if value is not None]
    sizes = [sizes_of(value) for value in values]
    known = [each[axis] for each in sizes if each is not None and len(each) > axis]
    extents = [each for each in known if each is not None]
    if len(extents) != len(node.inputs[open_[0]:open_[-1] + 1]) or not all(map(source, values)):
        return None
    before = [each for each in arrays[:open_[0]] if each is not None]
    return _Parts(axis, before, values, sum(extents), [each for each in arrays[open_[-1]:] if each is not None])


MASKS = Rule("masks", "A Where by a constant mask, of levels and a constant, is their product with 0 and 1 plus the "
             "constant where the mask is 0", "levels are finite: x · 1 is x, and x · 0 is 0; a sum with 0 is the other",
             _apply_masks)

PARTS = Rule("parts", "A Concat of levels and constants is the levels, padded with 0, plus the constants; with "
             "constants in the middle it is two", "0 is a level, and a sum with 0 is the other", _apply_parts)
