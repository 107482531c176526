"""Means, differences from them, variances and deviations of rows, recognised in a graph of floats.

A tensor may be transposed between any two steps, so what is found says how its axes lie in the tensor that the rows
are of.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxArithmetic,
    OnnxDiv,
    OnnxGlobalAveragePool,
    OnnxMul,
    OnnxPow,
    OnnxReduceMean,
    OnnxSub,
    OnnxTranspose,
)
from tilewright.compiler.passes.recognise.equivalents.axes import reduced_axes

__all__ = [
    "RowStatistics", "centred", "deviation", "mean", "number", "operands", "reciprocal", "untransposed", "variance",
]

_Perm = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RowStatistics:
    """Values of a tensor that belong to the rows of ``x`` along ``axes``.

    Axis i of the tensor lies along axis ``perm[i]`` of x. Of variances, ``factor`` and ``epsilon`` are those in
    factor · variance + epsilon.
    """

    x: str
    axes: frozenset[int]
    perm: _Perm
    factor: float = 1.0
    epsilon: float = 0.0

    def of_same(self, other: "RowStatistics | None") -> bool:
        """Tell whether another tensor is of the same rows, and lies in the same way."""
        return other is not None and (self.x, self.axes, self.perm) == (other.x, other.axes, other.perm)

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
    return _powered(graph, name, "Sqrt", 0.5)


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
    """Return the rows whose variance plus a constant a tensor is."""
    made, outer = untransposed(graph, name)
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
    squares = mean(graph, made)
    if squares is not None:
        first, second = (centred(graph, each) for each in _squared(graph, squares.x))
        if first is None or not first.of_same(second) or \
                first.axes != frozenset(first.perm[axis] for axis in squares.axes):
            return None
        return first.transposed(_composed(squares.perm, outer))
    for left, right in operands(node, OnnxSub):
        if (rows := _less_square(graph, left, right)) is not None:
            return rows.transposed(outer)
    return None


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
