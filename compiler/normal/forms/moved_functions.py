"""Functions of one tensor, and constants per channel, stand at once behind a product, before what moves its result."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.constant_levels import of_constant, real_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    ARITHMETIC,
    FUNCTIONS_OF_ONE,
    WEIGHTS,
    attribute,
    constant,
    is_move,
    readers,
    source,
    weight_axis,
)

__all__ = ["FUNCTIONS"]

_NORMALISATION = "BatchNormalization"


def _apply(edit: Edit) -> int:
    return sum(_raised(edit, node) for node in edit.nodes()
               if not node.domain and node.op_type in FUNCTIONS_OF_ONE | ARITHMETIC | {_NORMALISATION})


def _raised(edit: Edit, node: ir.Node) -> bool:
    """Let a function and the move before it change places; tell whether a product of levels is before the move."""
    place = 1 if node.op_type in ARITHMETIC and real_constant(node.inputs[0]) is not None else 0
    moved = node.inputs[place]
    move = None if moved is None else moved.producer()
    if moved is None or move is None or not is_move(move) or move.op_type == "Concat" or len(move.outputs) > 1 \
            or len(readers(moved)) > 1 or edit.is_output(moved):
        return False
    value = move.inputs[0]
    maker = None if value is None else value.producer()
    if value is None or maker is None or maker.domain or maker.op_type not in WEIGHTS or len(readers(value)) > 1 \
            or edit.is_output(value) or source(maker.inputs[0]) is None:
        return False
    inputs = _inputs(edit, node, place, move)
    if inputs is None:
        return False
    inputs[place] = value
    attributes = {name: each.value for name, each in node.attributes.items()}
    inner = edit.insert(move, node.op_type, inputs, attributes, like=node.name)
    inner.type, inner.shape = value.type, value.shape
    move.replace_input_with(0, inner)
    edit.replace(node, moved)
    return True


def _inputs(edit: Edit, node: ir.Node, place: int, move: ir.Node) -> list[ir.Value | None] | None:
    """Return a function's constant inputs as they lie before ``move``; None if one is none, or cannot be moved."""
    if node.op_type in FUNCTIONS_OF_ONE:
        known = all(constant(each) is not None for each in node.inputs[1:] if each is not None)
        return list(node.inputs) if known else None
    if node.op_type == _NORMALISATION:
        return list(node.inputs) if min(_axes(move), default=0) > 1 else None
    held = real_constant(node.inputs[1 - place])
    moved = None if held is None else _before(held, move)
    if moved is None:
        return None
    other = edit.constant(moved, node.inputs[1 - place].name)
    return [other, None] if place else [None, other]


def _before(held: np.ndarray, move: ir.Node) -> np.ndarray | None:
    """Return a constant operand as it lies before a move of a product's result; None where that is not known."""
    product = None if move.inputs[0] is None else move.inputs[0].producer()
    weights = None if product is None else of_constant(product.inputs[1])
    if held.size == 1:
        return held.reshape(())
    if product is None or weights is None:
        return None
    rank, axes = weights.levels.ndim, _axes(move)
    if product.op_type in ("Conv", "ConvTranspose") and axes and min(axes) >= 0 and held.ndim <= rank - len(axes):
        full = held.reshape([1] * (rank - len(axes) - held.ndim) + list(held.shape))
        return np.expand_dims(full, tuple(axes))
    rows = constant(move.inputs[1]) if move.op_type == "Reshape" else None
    columns = weights.levels.shape[weight_axis(product, rank)]
    if product.op_type in ("Gemm", "MatMul") and rows is not None and rows.size and rows[-1] == columns \
            and held.size == columns == held.shape[-1]:
        return held.ravel()
    return None


def _axes(move: ir.Node) -> list[int]:
    """Return the axes that a Squeeze states; none of another move."""
    if move.op_type != "Squeeze":
        return []
    stated = constant(move.inputs[1]) if len(move.inputs) > 1 else attribute(move, "axes", [])
    return [int(each) for each in np.ravel(stated if stated is not None else [])]


FUNCTIONS = Rule("functions", "A function of one tensor, or arithmetic with a constant, stands before what moves the "
                 "result of a product of levels", "it computes each element by itself", _apply)
