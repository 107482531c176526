"""Functions whose results are nowhere below 0, and the constant bounds of a Clip."""

import math

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxClip, OnnxRelu

__all__ = ["clip_bounds", "is_rectifier"]


def clip_bounds(graph: Graph, node: Node) -> tuple[float | None, float | None] | None:
    """Return the bounds of a Clip, each None where there is none; None in all if one is computed, or they cross."""
    operator = node.operator
    assert isinstance(operator, OnnxClip)
    found: list[float | None] = []
    for position, stated in ((1, operator.min), (2, operator.max)):
        name = node.inputs[position] if len(node.inputs) > position else ""
        if name and (name not in graph.constants or graph.constants[name].size != 1):
            return None
        found.append(float(graph.constants[name].reshape(())) if name else stated)
    low, high = found
    if any(bound is not None and math.isnan(bound) for bound in found):
        return None
    return (low, high) if low is None or high is None or low <= high else None


def is_rectifier(graph: Graph, node: Node) -> bool:
    """Tell whether a node is a Relu, or a Clip from 0 or more on."""
    if isinstance(node.operator, OnnxClip):
        bounds = clip_bounds(graph, node)
        return bounds is not None and bounds[0] is not None and bounds[0] >= 0
    return isinstance(node.operator, OnnxRelu)
