"""A product has its activation on the left, rows first: one of constants by it is that of both transposed, turned."""

import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.forms.gains import scaled_constant
from tilewright.compiler.normal.inserted_moves import reshaped, transposed
from tilewright.compiler.normal.ranks import rank_of, sizes_of
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, is_constant, levels_behind, readers

__all__ = ["TURNED_PRODUCTS"]

_MATRIX = 2


def _apply(edit: Edit) -> int:
    return sum(_turned(edit, node) for node in edit.nodes()
               if not node.domain and node.op_type in ("Gemm", "MatMul") and len(node.inputs) > 1)


def _turned(edit: Edit, node: ir.Node) -> bool:
    a, b = node.inputs[:2]
    if a is None or b is None or (_is_fixed(a) and _is_fixed(b)):
        return False
    if _is_fixed(a):
        return _swapped(edit, node, a, b) if node.op_type == "MatMul" else _as_matmul(edit, node, a, b)
    if node.op_type == "MatMul" and _is_fixed(b):
        return _by_column(edit, node, a, b)
    if node.op_type == "MatMul" or not attribute(node, "transA", 0) or _are_columns(a, b):
        return False
    node.replace_input_with(0, transposed(edit, node, a, [1, 0]))
    del node.attributes["transA"]
    return True


def _by_column(edit: Edit, node: ir.Node, x: ir.Value, weights: ir.Value) -> bool:
    """Let a product by a constant vector be one by a matrix of one column, without the axis of which it makes one."""
    rank, sizes = rank_of(x), sizes_of(weights)
    if rank is None or rank < _MATRIX or sizes is None or len(sizes) != 1:
        return False
    column = edit.insert(node, "MatMul", [x, reshaped(edit, node, weights, [-1, 1])], like=node.name)
    new = reshaped(edit, node, column, [0] * (rank - 1))
    new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
    edit.replace(node, new)
    return True


def _are_columns(a: ir.Value, b: ir.Value) -> bool:
    """Tell whether a is more columns than one times constants: columns of an image, which are read where they lie."""
    sizes = sizes_of(a)
    return _is_fixed(b) and sizes is not None and sizes[-1] != 1


def _is_fixed(value: ir.Value) -> bool:
    return is_constant(value) or levels_behind(value) is not None


def _as_matmul(edit: Edit, node: ir.Node, weights: ir.Value, x: ir.Value) -> bool:
    """Replace a Gemm of a constant on the left by a MatMul, and an Add if it has a bias; tell whether it could be."""
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    alpha = float(attribute(node, "alpha", 1.0))
    factor = weights if alpha == 1 else scaled_constant(edit, node, weights, alpha)
    if factor is None or (bias is not None and attribute(node, "beta", 1.0) != 1):
        return False
    turns = [[1, 0] if attribute(node, name, 0) else [0, 1] for name in ("transA", "transB")]
    new = edit.insert(node, "MatMul", [transposed(edit, node, factor, turns[0]), transposed(edit, node, x, turns[1])],
                      like=node.name)
    if bias is not None:
        new = edit.insert(node, "Add", [new, bias])
    new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
    edit.replace(node, new)
    return True


def _swapped(edit: Edit, node: ir.Node, weights: ir.Value, x: ir.Value) -> bool:
    """Let a MatMul read its constant second, and what an Add adds to each of its rows with it; tell whether it does.

    A constant may be a matrix for each of several: queries that a network has learnt.
    """
    rank, sizes = rank_of(x), sizes_of(weights)
    if rank is None or sizes is None or len(sizes) < _MATRIX or (rank < _MATRIX < len(sizes)):
        return False
    new = edit.insert(node, "MatMul", [transposed(edit, node, x, _turn(rank)),
                                       transposed(edit, node, weights, _turn(len(sizes)))], like=node.name)
    last, offset = _sum_behind(edit, node, sizes[0]) if len(sizes) == _MATRIX else (node, None)
    if last is not node and offset is not None:
        new = edit.insert(last, "Add", [new, reshaped(edit, last, offset, [-1])])
    new = transposed(edit, last, new, _turn(max(rank, len(sizes)) if rank > 1 else 1))
    new.type, new.shape = last.outputs[0].type, last.outputs[0].shape
    edit.replace(last, new)
    if last is not node:
        edit.drop(node)
    return True


def _turn(rank: int) -> list[int]:
    """Return the axes of tensors of matrices, each of which is transposed."""
    return [*range(rank - 2), rank - 1, rank - 2] if rank > 1 else [0]


def _sum_behind(edit: Edit, node: ir.Node, rows: int | None) -> tuple[ir.Node, ir.Value | None]:
    """Return the Add of a constant per row behind a product, and that constant; the product itself if there is none."""
    after = readers(node.outputs[0])
    if len(after) != 1 or edit.is_output(node.outputs[0]) or after[0].op_type != "Add" or after[0].domain:
        return node, None
    other = next((each for each in after[0].inputs if each is not node.outputs[0]), None)
    if other is None or not _is_fixed(other):
        return node, None
    sizes = sizes_of(other) or []
    per_row = len(sizes) >= _MATRIX and sizes[-2:] == [rows, 1] and all(each == 1 for each in sizes[:-2])
    return (after[0], other) if per_row else (node, None)


TURNED_PRODUCTS = Rule("turned products", "A product reads its constant second and its activation as it is: a MatMul "
                       "by a constant on the left, or a Gemm with transA, stands between Transposes, and a "
                       "constant vector is a column",
                       "A · B is the transposed product of B and A transposed, of the same sums", _apply)
