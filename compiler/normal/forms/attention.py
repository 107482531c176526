"""Attention of one operator is the products and the softmax that it joins: scores of heads, their weights, and values.

Source: ONNX, Attention (opsets 23 to 25): Y = Softmax(Q Kᵀ · scale + mask) V for each head. Whether the scale counts
before or behind the product is a matter of rounding. What an attention without a past sees is known beforehand: keys
up to the query's place (is_causal), or from left_window_size before it to right_window_size behind.
"""

import math

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.inserted_moves import transposed
from tilewright.compiler.normal.ranks import sizes_of
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, constant

__all__ = ["ATTENTION", "MASKED"]

MASKED = -1e4
"""Added to a score that does not count: its exponential is 0 in float32 beside any other."""

_TOLD = {"is_causal", "kv_num_heads", "left_window_size", "q_num_heads", "qk_matmul_output_mode", "right_window_size",
         "scale", "softcap", "softmax_precision"}
"""Attributes that are read here; qk_matmul_output_mode says what an output is that nobody reads."""

_HEADS_BESIDE = 4
"""The rank of operands with an axis for heads."""


def _apply(edit: Edit) -> int:
    return sum(_taken_apart(edit, node) for node in edit.nodes()
               if node.domain in ("", "ai.onnx") and node.op_type == "Attention")


def _taken_apart(edit: Edit, node: ir.Node) -> bool:
    """Replace an attention without a past, whose shapes are known; tell whether it was one."""
    given = [*node.inputs, *[None] * 4]
    shapes = [sizes_of(value) for value in given[:3]]
    if not _is_plain(edit, node) or any(
            shape is None or None in shape[1:] or len(shape) != len(shapes[0] or ()) for shape in shapes):
        return False
    query, keys, _ = [[each or 1 for each in shape or ()] for shape in shapes]
    flat = len(query) < _HEADS_BESIDE
    heads, groups = ((int(attribute(node, f"{name}_num_heads", 0)) for name in ("q", "kv")) if flat
                     else (query[1], keys[1]))
    if not heads or not groups or heads % groups or (flat and query[2] % heads):
        return False
    tokens, size = (query[1], query[2] // heads) if flat else (query[2], query[3])
    mask = _mask(edit, node, given[3], (tokens, keys[1] if flat else keys[2]))
    if mask is False:
        return False
    q, k, v = (_by_heads(edit, node, value, count if flat else 0, heads // groups if value is not given[0] else 1)
               for value, count in zip(given[:3], (heads, groups, groups), strict=True))
    scores = edit.insert(node, "MatMul", [q, transposed(edit, node, k, [0, 1, 3, 2])])
    scale = float(attribute(node, "scale", 1 / math.sqrt(size)))
    scores = edit.insert(node, "Mul", [scores, edit.constant(np.array(scale, np.float32), f"{node.name}:scale")])
    if isinstance(mask, ir.Value):
        scores = edit.insert(node, "Add", [scores, mask])
    mixed = edit.insert(node, "MatMul", [edit.insert(node, "Softmax", [scores], {"axis": -1}), v])
    if flat:
        mixed = _reshaped(edit, node, transposed(edit, node, mixed, [0, 2, 1, 3]), [0, 0, -1])
    mixed.type, mixed.shape = node.outputs[0].type, node.outputs[0].shape
    edit.replace(node, mixed)
    return True


def _is_plain(edit: Edit, node: ir.Node) -> bool:
    """Tell whether an attention is of floats, without a past, and nothing that its products do not tell."""
    return (set(node.attributes) <= _TOLD and not any(value is not None for value in node.inputs[4:])
            and not any(value.uses() or edit.is_output(value) for value in node.outputs[1:])
            and all(value is not None and value.dtype == ir.DataType.FLOAT for value in node.inputs[:3])
            and not float(attribute(node, "softcap", 0.0))
            and attribute(node, "softmax_precision", ir.DataType.FLOAT) == ir.DataType.FLOAT)


def _by_heads(edit: Edit, node: ir.Node, value: ir.Value | None, heads: int, repeats: int) -> ir.Value:
    """Return an operand with an axis for heads, each of which is there ``repeats`` times in a row."""
    assert value is not None
    if heads:
        value = transposed(edit, node, _reshaped(edit, node, value, [0, 0, heads, -1]), [0, 2, 1, 3])
    if repeats == 1:
        return value
    count = heads or (sizes_of(value) or [0, 1])[1] or 1
    places = edit.constant(np.repeat(np.arange(count), repeats), f"{node.name}:heads")
    return edit.insert(node, "Gather", [value, places], {"axis": 1})


def _reshaped(edit: Edit, node: ir.Node, value: ir.Value, shape: list[int]) -> ir.Value:
    return edit.insert(node, "Reshape", [value, edit.constant(np.array(shape, np.int64), f"{node.name}:shape")])


def _mask(edit: Edit, node: ir.Node, given: ir.Value | None, shape: tuple[int, int]) -> ir.Value | bool | None:
    """Return what is added to scores, None if nothing is; False where only the operator itself can tell.

    That is a mask of conditions that are computed, one that leaves out keys, and a query that sees none: its result
    is 0, which no softmax is.
    """
    seen = _seen(node, shape)
    known = None if given is None else constant(given)
    if given is not None and (sizes_of(given) or [None])[-1] != shape[1]:
        return False
    if given is not None and known is None:
        return given if seen.all() and given.dtype == ir.DataType.FLOAT else False
    added = np.zeros(shape) if known is None else np.where(known, 0, MASKED) if known.dtype == bool else known
    added = np.maximum(np.where(seen, added, MASKED), MASKED).astype(np.float32)
    if (added == MASKED).all(axis=-1).any():
        return False
    return edit.constant(added, f"{node.name}:mask") if added.any() else None


def _seen(node: ir.Node, shape: tuple[int, int]) -> np.ndarray:
    """Return which keys each query sees, as bools of ``shape``: queries by keys, both counted from the same place."""
    behind = np.subtract.outer(-np.arange(shape[0]), -np.arange(shape[1]))
    left, right = (int(attribute(node, f"{side}_window_size", -1)) for side in ("left", "right"))
    if attribute(node, "is_causal", 0):
        right = 0
    return ((behind >= -left) | (left < 0)) & ((behind <= right) | (right < 0))


ATTENTION = Rule("attention", "An Attention is the MatMuls, the Mul by its scale, the Add of its mask and the Softmax "
                 "that it joins", "that is its definition (ONNX, Attention), which leaves open where the scale counts",
                 _apply)
