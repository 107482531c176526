"""Means, differences from them, variances and deviations of rows, recognised in a graph of floats.

Mean squares stand for variances too, of rows that are not centred, and so does the square of a row's length. A tensor
may be transposed between any two steps, so what is found says how its axes lie in the tensor that the rows are of.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxArithmetic,
    OnnxClip,
    OnnxDiv,
    OnnxExpand,
    OnnxGlobalAveragePool,
    OnnxMax,
    OnnxMul,
    OnnxOperator,
    OnnxPow,
    OnnxReduceMean,
    OnnxReduction,
    OnnxSub,
    OnnxTranspose,
)
from tilewright.compiler.passes.recognise.equivalents.axes import reduced_axes

__all__ = [
    "RowStatistics", "centred", "deviation", "mean", "number", "operands", "reciprocal", "untransposed", "variance",
]

_Perm = tuple[int, ...]

_LEAST_SQUARE = 1e-10
"""To which a sum of squares that is no less may as well be added: only rows of zeros show it."""


@dataclass(frozen=True, slots=True)
class RowStatistics:
    """Values of a tensor that belong to the rows of ``x`` along ``axes``.

    Axis i of the tensor lies along axis ``perm[i]`` of x. Of variances, ``factor`` and ``epsilon`` are those in
    factor · variance + epsilon; the variance is about 0 if it is not ``centred``.
    """

    x: str
    axes: frozenset[int]
    perm: _Perm
    factor: float = 1.0
    epsilon: float = 0.0
    centred: bool = True

    def of_same(self, other: "RowStatistics | None") -> bool:
        """Tell whether another tensor is of the same rows, and lies in the same way."""
        return other is not None and (self.x, self.axes, self.perm, self.centred) == (
            other.x, other.axes, other.perm, other.centred)

    def transposed(self, perm: _Perm) -> "RowStatistics":
        """Return what the transposed tensor tells."""
        return replace(self, perm=_composed(self.perm, perm))


def _composed(inner: _Perm, outer: _Perm) -> _Perm:
    return tuple(inner[axis] for axis in outer)


def untransposed(graph: Graph, name: str) -> tuple[str, _Perm]:
    """Return the tensor that ``name`` is a transposition of, and by which: itself where it is of none."""
    perm = tuple(range(len(graph.tensors[name].shape or ()))) if name in graph.tensors else ()
    while (node := graph.producer(name)) is not None and isinstance(node.operator, OnnxTranspose):
        perm = _composed(node.operator.perm or tuple(reversed(range(len(perm)))), perm)
        name = node.inputs[0]
    return name, perm


def mean(graph: Graph, name: str) -> RowStatistics | None:
    """Return of what a tensor is the mean, its axes kept; None where it is none."""
    made, outer = untransposed(graph, name)
    node = graph.producer(made)
    if node is None:
        return None
    axes: set[int] | None = None
    if isinstance(node.operator, OnnxGlobalAveragePool):
        axes = set(range(2, len(outer)))
    elif isinstance(node.operator, OnnxReduceMean) and node.operator.keepdims:
        axes = reduced_axes(graph, node, node.operator)
    if not axes:
        return None
    x, perm = untransposed(graph, node.inputs[0])
    return RowStatistics(x, frozenset(perm[axis] for axis in axes), _composed(perm, outer))


def centred(graph: Graph, name: str) -> RowStatistics | None:
    """Return the rows that a tensor is, less their mean."""
    made, outer = untransposed(graph, name)
    for x, average in operands(graph.producer(made), OnnxSub):
        rows = mean(graph, average)
        if rows is not None and untransposed(graph, x) == (rows.x, rows.perm):
            return rows.transposed(outer)
    return None


def deviation(graph: Graph, name: str) -> RowStatistics | None:
    """Return the rows whose deviation a tensor is: a square root, or a power of a half."""
    return _powered(graph, name, "Sqrt", 0.5) or _length(graph, name)


def reciprocal(graph: Graph, name: str) -> RowStatistics | None:
    """Return the rows of whose deviation a tensor is the reciprocal."""
    made, outer = untransposed(graph, name)
    node, found = graph.producer(made), None
    if node is None:
        return None
    if node.op == "Reciprocal":
        found = deviation(graph, node.inputs[0])
    elif isinstance(node.operator, OnnxDiv) and number(graph, node.inputs[0]) == 1:
        found = deviation(graph, node.inputs[1])
    elif node.op == "Sqrt":
        inner = graph.producer(node.inputs[0])
        found = _padded(graph, inner.inputs[0]) if inner is not None and inner.op == "Reciprocal" else None
    else:
        found = _powered(graph, made, "", -0.5)
    return found.transposed(outer) if found is not None else None


def _powered(graph: Graph, name: str, op: str, exponent: float) -> RowStatistics | None:
    """Return the rows whose padded variance a tensor is a function of: ``op``, or a power."""
    made, outer = untransposed(graph, name)
    node = graph.producer(made)
    power = node is not None and isinstance(node.operator, OnnxPow) and number(graph, node.inputs[1]) == exponent
    if node is None or not (node.op == op or power):
        return None
    found = _padded(graph, node.inputs[0])
    return found.transposed(outer) if found is not None else None


def _padded(graph: Graph, name: str) -> RowStatistics | None:
    """Return the rows whose variance plus a constant a tensor is, or no less than a small one."""
    made, outer = untransposed(graph, name)
    bounded, least = _bounded(graph, made)
    if least is not None and least <= _LEAST_SQUARE and (rows := variance(graph, bounded)) is not None:
        return replace(rows, epsilon=least).transposed(outer)
    for other, constant in operands(graph.producer(made), OnnxAdd):
        epsilon = number(graph, constant)
        rows = variance(graph, other) if epsilon else None
        if rows is not None and epsilon is not None:
            return replace(rows, epsilon=epsilon).transposed(outer)
    return None


def variance(graph: Graph, name: str) -> RowStatistics | None:
    """Return the rows whose variance a tensor is, perhaps times a factor, as n / (n - 1)."""
    made, outer = untransposed(graph, name)
    node = graph.producer(made)
    for other, constant in operands(node, OnnxMul, OnnxDiv):
        value = number(graph, constant)
        rows = variance(graph, other) if value else None
        if rows is not None and value and node is not None:
            factor = value if isinstance(node.operator, OnnxMul) else 1 / value
            return replace(rows, factor=rows.factor * factor).transposed(outer)
    return _of_squares(graph, made, node, outer)


def _of_squares(graph: Graph, made: str, node: Node | None, outer: _Perm) -> RowStatistics | None:
    """Return the rows of whose squares a tensor tells the mean or the sum, about their own mean or 0."""
    squares = mean(graph, made)
    if squares is not None:
        first, second = (centred(graph, each) for each in _squared(graph, squares.x))
        if first is None or not first.of_same(second) or \
                first.axes != frozenset(first.perm[axis] for axis in squares.axes):
            about = _about_zero(graph, squares, *_squared(graph, squares.x))
            return about.transposed(outer) if about is not None else None
        return first.transposed(_composed(squares.perm, outer))
    if (sums := _summed_squares(graph, node)) is not None:
        return sums.transposed(outer)
    for left, right in operands(node, OnnxSub):
        if (rows := _less_square(graph, left, right)) is not None:
            return rows.transposed(outer)
    return None


def _about_zero(graph: Graph, of: RowStatistics, left: str, right: str) -> RowStatistics | None:
    """Return the rows of whose squares ``of`` tells, where both factors of these are one tensor."""
    sources = {untransposed(graph, each) for each in (left, right)}
    x, perm = sources.pop()
    if sources or not perm:
        return None
    return replace(of, x=x, axes=frozenset(perm[axis] for axis in of.axes), perm=_composed(perm, of.perm),
                   centred=False)


def _summed_squares(graph: Graph, node: Node | None) -> RowStatistics | None:
    """Return the rows whose squares a node adds up: their mean square times their length."""
    if node is None or not isinstance(node.operator, OnnxOperator) or node.op not in ("ReduceSum", "ReduceSumSquare"):
        return None
    rows = _reduced(graph, node)
    if rows is None or node.op == "ReduceSumSquare":
        return rows
    return _about_zero(graph, rows, *_squared(graph, rows.x))


def _length(graph: Graph, name: str) -> RowStatistics | None:
    """Return the rows whose length a tensor is, perhaps no less than a constant, and repeated along them."""
    made, outer = untransposed(graph, name)
    made, least = _bounded(graph, made)
    node = graph.producer(made)
    if node is not None and node.op == "ReduceL2" and isinstance(node.operator, OnnxReduction):
        rows = _reduced(graph, node)
    else:
        rows = _powered(graph, made, "Sqrt", 0.5) if least is not None else None
        rows = rows if rows is not None and not rows.centred and not rows.epsilon else None
    if rows is None or (least is not None and least**2 > _LEAST_SQUARE):
        return None
    return replace(rows, epsilon=(least or 0.0)**2).transposed(outer)


def _reduced(graph: Graph, node: Node) -> RowStatistics | None:
    """Return the rows that a reduction goes along, as those of sums of squares about 0."""
    axes = reduced_axes(graph, node, node.operator) if isinstance(node.operator, OnnxReduction) \
        and node.operator.keepdims else None
    x, perm = untransposed(graph, node.inputs[0])
    shape = graph.tensors[node.inputs[0]].shape if node.inputs[0] in graph.tensors else None
    if not axes or shape is None:
        return None
    return RowStatistics(x, frozenset(perm[axis] for axis in axes), perm, math.prod(shape[axis] for axis in axes),
                         centred=False)


def _bounded(graph: Graph, name: str) -> tuple[str, float | None]:
    """Return what a tensor is no less than a constant of, and that constant; itself and None where there is none.

    An Expand, which repeats what a quotient would repeat itself, is looked through.
    """
    node = graph.producer(name)
    if node is not None and isinstance(node.operator, OnnxExpand):
        name, node = node.inputs[0], graph.producer(node.inputs[0])
    if node is not None and isinstance(node.operator, OnnxClip) and "".join(node.inputs[2:3]) == "":
        least = number(graph, node.inputs[1]) if len(node.inputs) > 1 else node.operator.attributes.get("min")
        return (node.inputs[0], float(least)) if least is not None and least > 0 else (name, None)
    if node is not None and isinstance(node.operator, OnnxMax) and len(node.inputs) == 2:
        for other, constant in (node.inputs, reversed(node.inputs)):
            if (least := number(graph, constant)) is not None and least > 0:
                return other, least
    return name, None


def _less_square(graph: Graph, squares: str, square: str) -> RowStatistics | None:
    """Return the rows whose variance is one tensor, the mean of their squares, less another, their mean's square."""
    average, of_squares = (mean(graph, each) for each in (_squared(graph, square)[0], squares))
    if average is None or of_squares is None or not average.of_same(mean(graph, _squared(graph, square)[1])):
        return None
    sources = {untransposed(graph, each) for each in _squared(graph, of_squares.x)}
    if len(sources) != 1:
        return None
    x, perm = sources.pop()
    axes = frozenset(perm[axis] for axis in of_squares.axes) if perm else frozenset()
    same = average.of_same(RowStatistics(x, axes, _composed(perm, of_squares.perm))) if perm else False
    return average if same else None


def _squared(graph: Graph, name: str) -> tuple[str, str]:
    """Return the two tensors whose product a tensor is, by a product or a power; two empty names for others."""
    node = graph.producer(name)
    if node is not None and isinstance(node.operator, OnnxMul):
        return node.inputs[0], node.inputs[1]
    if node is not None and isinstance(node.operator, OnnxPow) and number(graph, node.inputs[1]) == 2:
        return node.inputs[0], node.inputs[0]
    return "", ""


def operands(node: Node | None, *kinds: type[OnnxArithmetic]) -> Iterator[tuple[str, str]]:
    """Yield the operands of a node of one of these kinds, in both orders where they may change places."""
    if node is not None and isinstance(node.operator, kinds):
        yield node.inputs[0], node.inputs[1]
        if isinstance(node.operator, OnnxAdd | OnnxMul):
            yield node.inputs[1], node.inputs[0]


def number(graph: Graph, name: str) -> float | None:
    """Return a constant of one element; None for others."""
    value = graph.constants.get(name)
    return float(value.reshape(())) if value is not None and value.size == 1 else None
