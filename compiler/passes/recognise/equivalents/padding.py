"""Padding by what is there, mirrored, repeated or from the other end, as Gather along each axis."""

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxGather, OnnxPad
from tilewright.compiler.passes.recognise.equivalents.replacement import Replacement, is_of_levels

__all__ = ["padded_by_gathers"]

_MODES = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}
"""ONNX's, and NumPy's of the same meaning."""


def padded_by_gathers(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with such a Pad of quantised elements as Gathers; None where it is not such."""
    assert isinstance(node.operator, OnnxPad)
    x = node.inputs[0]
    shape, mode = graph.tensors[x].shape, _MODES.get(node.operator.mode)
    if shape is None or mode is None or not is_of_levels(graph, x):
        return None
    pads = _pads(graph, node, node.operator, len(shape))
    if pads is None or min(min(pair) for pair in pads) < 0:
        return None
    parts = Replacement(graph, node)
    new = list(shape)
    for axis, (before, behind) in enumerate(pads):
        if not before and not behind:
            continue
        if shape[axis] < 1 or (mode == "reflect" and max(before, behind) >= shape[axis]):
            return None
        indices = np.pad(np.arange(shape[axis], dtype=np.int64), (before, behind), mode=mode)  # type: ignore[call-overload]
        new[axis] = indices.size
        x = parts.add(OnnxGather({"axis": axis}), (x, parts.constant("indices", indices)), tuple(new),
                      graph.tensors[node.inputs[0]].dtype or "float32")
    return parts.finished() if parts.nodes else None


def _pads(graph: Graph, node: Node, operator: OnnxPad, rank: int) -> list[tuple[int, int]] | None:
    """Return the pads before and behind each axis; None if they are not constant."""
    stated = operator.attributes.get("pads")
    names = (*node.inputs[1:], "", "", "")[:3]
    if names[0]:
        stated = graph.constants[names[0]].ravel() if names[0] in graph.constants else None
    if stated is None or (names[2] and names[2] not in graph.constants):
        return None
    axes = [int(axis) % rank for axis in graph.constants[names[2]].ravel()] if names[2] else list(range(rank))
    if len(stated) != 2 * len(axes):
        return None
    pads = [(0, 0)] * rank
    for index, axis in enumerate(axes):
        pads[axis] = int(stated[index]), int(stated[index + len(axes)])
    return pads
