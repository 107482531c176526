"""Padding by what is there as Gather along each axis, by less than nothing as Slice; of rows as that of an image."""

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxGather, OnnxPad, OnnxQuantizeLinear, OnnxSlice
from tilewright.compiler.passes.recognise.equivalents.replacement import Replacement, is_of_levels, levels_of

__all__ = ["cropped", "padded_as_image", "padded_by_gathers"]

_TO_IMAGE, _TO_ROWS = (0, 3, 1, 2), (0, 2, 3, 1)

_MODES = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}
"""ONNX's, and NumPy's of the same meaning."""


def padded_by_gathers(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with such a Pad of quantised elements as Gathers; None where it is not such."""
    assert isinstance(node.operator, OnnxPad)
    x = node.inputs[0]
    shape, mode = graph.tensors[x].shape, _MODES.get(node.operator.mode)
    if shape is None or mode is None or not (is_of_levels(graph, x) or _is_quantised_next(graph, node)):
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


def _is_quantised_next(graph: Graph, node: Node) -> bool:
    """Tell whether a Pad is of a float input of the model, and its result is quantised and nothing else."""
    reader = graph.only_reader(node.output)
    return node.inputs[0] in graph.inputs and reader is not None and isinstance(reader.operator, OnnxQuantizeLinear)


def cropped(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with a Pad of quantised elements by a constant that cuts some off as a Slice and a Pad."""
    assert isinstance(node.operator, OnnxPad)
    x = node.inputs[0]
    shape = graph.tensors[x].shape
    pads = None if shape is None or not is_of_levels(graph, x) or node.operator.mode != "constant" else \
        _pads(graph, node, node.operator, len(shape))
    if shape is None or pads is None or min(min(pair) for pair in pads) >= 0:
        return None
    cut = [(max(0, -before), extent - max(0, -behind)) for (before, behind), extent in zip(pads, shape, strict=True)]
    if any(start >= end for start, end in cut):
        return None
    parts = Replacement(graph, node)
    bounds = [parts.constant(what, np.array(values, np.int64)) for what, values in (
        ("starts", [start for start, _ in cut]), ("ends", [end for _, end in cut]), ("axes", range(len(shape))))]
    kept = parts.add(OnnxSlice(), (x, *bounds), tuple(end - start for start, end in cut),
                     graph.tensors[x].dtype or "float32")
    if any(max(pair) > 0 for pair in pads):
        levels = levels_of(graph, x)
        if levels is not None:
            kept = parts.rounded(kept, levels.inputs[1:], levels.inputs[0])
        more = [max(0, pair[side]) for side in (0, 1) for pair in pads]
        attributes = {name: value for name, value in node.operator.attributes.items() if name != "pads"}
        parts.add(OnnxPad(attributes), (kept, parts.constant("pads", np.array(more, np.int64)), *node.inputs[2:3]),
                  graph.tensors[node.output].shape or (), graph.tensors[x].dtype or "float32")
    return parts.finished()


def padded_as_image(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with a Pad of quantised rows by a constant as one of an image, whose pixels are the rows.

    Of (1, rows, channels), as TensorFlow's convolutions over one dimension read it; what is padded along the last axis
    alone is an image of one row, (1, channels, 1, length). None for tensors of other ranks.
    """
    assert isinstance(node.operator, OnnxPad)
    x = node.inputs[0]
    shape = graph.tensors[x].shape
    if shape is None or len(shape) != 3 or shape[0] != 1 or not is_of_levels(graph, x) \
            or node.operator.mode != "constant":
        return None
    pads = _pads(graph, node, node.operator, len(shape))
    if pads is None or any(pads[0]) or min(min(pair) for pair in pads) < 0:
        return None
    parts, dtype = Replacement(graph, node), graph.tensors[x].dtype or "float32"
    attributes = {name: value for name, value in node.operator.attributes.items() if name != "pads"}
    first, second = (extent + sum(pair) for extent, pair in zip(shape[1:], pads[1:], strict=True))
    along_rows = any(pads[1])
    image = (1, 1, *shape[1:]) if along_rows else (1, shape[1], 1, shape[2])
    wider = (1, second, 1, first) if along_rows else (1, first, 1, second)
    around = ((0, 0), pads[2], (0, 0), pads[1]) if along_rows else ((0, 0), (0, 0), (0, 0), pads[2])
    name = parts.reshaped(x, image, dtype)
    if along_rows:
        name = parts.transposed(name, _TO_IMAGE, dtype)
    constant = parts.constant("pads", np.array([pair[side] for side in (0, 1) for pair in around], np.int64))
    name = parts.add(OnnxPad(attributes), (name, constant, *node.inputs[2:3]), wider, dtype)
    if along_rows:
        name = parts.transposed(name, _TO_ROWS, dtype)
    parts.reshaped(name, (1, first, second), dtype)
    return parts.finished()


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
