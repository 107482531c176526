"""Axes of reductions: which they are, and the shape that a result has without them."""

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxReduction
from tilewright.compiler.passes.recognise.equivalents.replacement import Replacement

__all__ = ["reduced_axes", "restored"]


def reduced_axes(graph: Graph, node: Node, operator: OnnxReduction) -> set[int] | None:
    """Return the axes, from 0, that a reduction of a tensor of known shape is along; None if they are not constant."""
    rank = len(graph.tensors[node.inputs[0]].shape or ()) if node.inputs[0] in graph.tensors else 0
    axes = operator.axes
    if len(node.inputs) > 1 and node.inputs[1]:
        if node.inputs[1] not in graph.constants:
            return None
        axes = tuple(int(axis) for axis in graph.constants[node.inputs[1]].ravel())
    if not rank:
        return None
    return {int(axis) % rank for axis in axes} if axes else set(range(rank))


def restored(parts: Replacement, name: str, known: tuple[int, ...] | None, shape: tuple[int, ...], axes: set[int], *,
             keep: bool) -> str:
    """Return the name of a result in the shape that a reduction of a tensor of ``shape`` along ``axes`` has."""
    stated = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape) if keep or axis not in axes)
    return parts.reshaped(name, known or stated)
