"""An Einsum of one or two operands is Transposes, a product and a sum, as its equation says."""

import math
from dataclasses import dataclass

import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.inserted_moves import reshaped, summed, transposed, with_axes, without_axes
from tilewright.compiler.normal.ranks import sizes_of
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, is_constant, levels_behind

__all__ = ["EINSUM"]


@dataclass(frozen=True, slots=True)
class _Axes:
    """The letters of two operands by what becomes of them; each list in the order in which they are laid out."""

    batch: list[str]
    rows: list[str]
    summed: list[str]
    columns: list[str]


def _apply(edit: Edit) -> int:
    return sum(_expanded(edit, node) for node in edit.nodes() if node.op_type == "Einsum" and not node.domain)


def _expanded(edit: Edit, node: ir.Node) -> bool:
    """Replace an Einsum by other operators; tell whether it could be."""
    equation = "".join(str(attribute(node, "equation", "")).split())
    left, _, result = equation.partition("->")
    terms = left.split(",")
    if "->" not in equation:
        result = "".join(sorted(letter for letter in set(left) - {","} if left.count(letter) == 1))
    values = list(node.inputs)
    if len(values) != len(terms) or len(values) not in (1, 2) or None in values \
            or any(not each.isalpha() or len(set(each)) < len(each) for each in (*terms, result or "a")):
        return False
    if len(values) == 2 and _swaps(values, terms, result):
        terms, values = terms[::-1], values[::-1]
    operands = [(value, term) for value, term in zip(values, terms, strict=True) if value is not None]
    new = _alone(edit, node, *operands[0], result) if len(operands) == 1 else _product(edit, node, operands, result)
    if new is None:
        return False
    new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
    edit.replace(node, new)
    return True


def _is_fixed(value: ir.Value | None) -> bool:
    return is_constant(value) or levels_behind(value) is not None


def _swaps(values: list[ir.Value | None], terms: list[str], result: str) -> bool:
    """Tell whether a product had better be of the second operand by the first: constants come last, and columns do."""
    fixed = [_is_fixed(each) for each in values]
    return fixed == [True, False] or (fixed == [False, False] and bool(result) and result[-1] not in terms[1])


def _alone(edit: Edit, node: ir.Node, value: ir.Value, term: str, result: str) -> ir.Value | None:
    """Return the sum of ``value`` over the letters that the result has not, turned into the order of the result."""
    if set(result) - set(term):
        return None
    new = summed(edit, node, value, [term.index(each) for each in term if each not in result])
    kept = [each for each in term if each in result]
    new = transposed(edit, node, new, [kept.index(each) for each in result])
    return edit.insert(node, "Identity", [new]) if new is value else new


def _product(edit: Edit, node: ir.Node, operands: list[tuple[ir.Value, str]], result: str) -> ir.Value | None:
    (a, first), (b, second) = operands
    if set(result) - {*first, *second}:
        return None
    sizes = _sizes(operands)
    gone = [[each for each in term if each not in other and each not in result]
            for term, other in ((first, second), (second, first))]
    axes = _Axes([each for each in result if each in first and each in second],
                 [each for each in first if each in result and each not in second],
                 [each for each in first if each in second and each not in result],
                 [each for each in second if each in result and each not in first])
    shapes = _shapes(axes, sizes) if axes.summed else None
    if axes.summed and shapes is None:
        return None
    a = summed(edit, node, a, [first.index(each) for each in gone[0]])
    b = summed(edit, node, b, [second.index(each) for each in gone[1]])
    kept = [[each for each in term if each not in left] for term, left in zip((first, second), gone, strict=True)]
    a = transposed(edit, node, a, [kept[0].index(each) for each in axes.batch + axes.rows + axes.summed])
    b = transposed(edit, node, b, [kept[1].index(each) for each in axes.batch + axes.summed + axes.columns])
    new = _pointwise(edit, node, a, b, axes) if shapes is None else _matrices(edit, node, a, b, axes, shapes)
    order = axes.batch + axes.rows + axes.columns
    return transposed(edit, node, new, [order.index(each) for each in result])


def _sizes(operands: list[tuple[ir.Value, str]]) -> dict[str, int]:
    """Return the extents of the letters that are known."""
    return {letter: size for value, term in operands
            for letter, size in zip(term, sizes_of(value) or (), strict=False) if size is not None}


def _pointwise(edit: Edit, node: ir.Node, a: ir.Value, b: ir.Value, axes: _Axes) -> ir.Value:
    """Return the product of every element with those that share its batch."""
    start, rows, columns = len(axes.batch), len(axes.rows), len(axes.columns)
    a = with_axes(edit, node, a, range(start + rows, start + rows + columns))
    b = with_axes(edit, node, b, range(start, start + rows))
    return edit.insert(node, "Mul", [a, b])


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Shapes that Reshapes give two operands and their product; None where there is nothing to join."""

    first: list[int] | None
    second: list[int] | None
    product: list[int] | None


def _shapes(axes: _Axes, sizes: dict[str, int]) -> _Shapes | None:
    """Return the shapes with letters of one kind in one dimension; None where nothing tells how large that is.

    Rows may be several dimensions beside one matrix: a product of matrices repeats it.
    """
    batch = [[each] for each in axes.batch]
    rows = [axes.rows] if axes.batch and axes.rows else [[each] for each in axes.rows]
    columns = [axes.columns] if axes.columns else []
    joined = [_joined([*batch, *rows, axes.summed], sizes), _joined([*batch, axes.summed, *columns], sizes)]
    parts = batch + rows + columns
    apart = _apart(parts, sizes) if any(len(each) > 1 for each in parts) else []
    if None in joined or apart is None:
        return None
    return _Shapes(joined[0] or None, joined[1] or None, apart or None)


def _joined(parts: list[list[str]], sizes: dict[str, int]) -> list[int] | None:
    """Return the dimensions of a Reshape that makes one of each part; none if each is one; None if unknown."""
    first = next((index for index, each in enumerate(parts) if len(each) > 1), None)
    if first is None:
        return []
    dims = [0] * first + [math.prod(sizes[letter] for letter in part) if all(letter in sizes for letter in part) else -1
                          for part in parts[first:]]
    return dims if dims.count(-1) <= 1 else None


def _apart(parts: list[list[str]], sizes: dict[str, int]) -> list[int] | None:
    """Return the dimensions of a Reshape that takes the parts into letters again; None if unknown."""
    first = next(index for index, each in enumerate(parts) if len(each) > 1)
    dims = [0] * first + [sizes.get(letter, -1) for part in parts[first:] for letter in part]
    return dims if dims.count(-1) <= 1 else None


def _matrices(edit: Edit, node: ir.Node, a: ir.Value, b: ir.Value, axes: _Axes, shapes: _Shapes) -> ir.Value:
    """Return the product of matrices."""
    a = a if shapes.first is None else reshaped(edit, node, a, shapes.first)
    b = b if shapes.second is None else reshaped(edit, node, b, shapes.second)
    start = len(axes.batch)
    rows = min(len(axes.rows), 1) if axes.batch else len(axes.rows)
    a = a if axes.rows else with_axes(edit, node, a, [start])
    b = b if axes.columns else with_axes(edit, node, b, [start + 1])
    new = edit.insert(node, "MatMul", [a, b])
    new = without_axes(edit, node, new, [*([] if axes.rows else [start]),
                                         *([] if axes.columns else [start + max(1, rows)])])
    return new if shapes.product is None else reshaped(edit, node, new, shapes.product)


EINSUM = Rule("einsum", "An Einsum of one or two operands is a product of matrices, or of elements, between moves and "
              "sums", "its equation says so (ONNX, Einsum); ONNX leaves the order of sums open", _apply)
