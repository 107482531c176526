"""Moves that a rule puts in front of a node: Transpose, Reshape, and dimensions of one that come and go."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit

__all__ = ["reshaped", "summed", "transposed", "with_axes", "without_axes"]

_AXES_ARE_AN_INPUT = 13


def transposed(edit: Edit, node: ir.Node, value: ir.Value, turn: Sequence[int]) -> ir.Value:
    """Return ``value`` with its axes in the order ``turn``."""
    turn = list(turn)
    return value if turn == sorted(turn) else edit.insert(node, "Transpose", [value], {"perm": turn})


def reshaped(edit: Edit, node: ir.Node, value: ir.Value, dims: Sequence[int]) -> ir.Value:
    """Return ``value`` in the shape ``dims``, as a Reshape takes it: 0 keeps a dimension, -1 is what is left."""
    target = edit.constant(np.array(list(dims), np.int64), f"{value.name}:dims")
    return edit.insert(node, "Reshape", [value, target])


def with_axes(edit: Edit, node: ir.Node, value: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Return ``value`` with dimensions of one at ``axes`` of the result."""
    return _of_axes(edit, node, "Unsqueeze", value, axes)


def without_axes(edit: Edit, node: ir.Node, value: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Return ``value`` without its dimensions of one at ``axes``."""
    return _of_axes(edit, node, "Squeeze", value, axes)


def summed(edit: Edit, node: ir.Node, value: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Return the sum of ``value`` over ``axes``, which go."""
    return _of_axes(edit, node, "ReduceSum", value, axes, {"keepdims": 0})


def _of_axes(edit: Edit, node: ir.Node, op: str, value: ir.Value, axes: Sequence[int],
             attributes: dict[str, int] | None = None) -> ir.Value:
    if not axes:
        return value
    stated = dict(attributes or {})
    if edit.opset < _AXES_ARE_AN_INPUT:
        return edit.insert(node, op, [value], {"axes": list(axes), **stated})
    return edit.insert(node, op, [value, edit.constant(np.array(list(axes), np.int64), f"{value.name}:axes")], stated)
