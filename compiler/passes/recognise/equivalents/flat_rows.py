"""Normalisations of the last axis of images whose channels come last are those of rows that lie one after the other.

A tensor of four dimensions lies as an image does, its second axis innermost, and one of three row by row. So the
channels of an image, transposed for a LayerNormalization as in ConvNeXt and Swin, lie in one run without being moved.
"""

import math

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxOperator, OnnxQuantizeLinear
from tilewright.compiler.passes.recognise.equivalents.replacement import Replacement, levels_of

__all__ = ["normalised_as_rows"]

_NORMALISATIONS = ("LayerNormalization", "RMSNormalization")
_IMAGE_RANK = 4


def normalised_as_rows(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with a normalisation of quantised (1, height, width, channels) as one of (1, rows, channels).

    None for other operators, axes and tensors.
    """
    operator, shape = node.operator, graph.tensors[node.inputs[0]].shape
    if node.op not in _NORMALISATIONS or not isinstance(operator, OnnxOperator) or shape is None \
            or len(shape) != _IMAGE_RANK or shape[0] != 1 or operator.attributes.get("axis", -1) not in (-1, 3):
        return None
    source, quantise = levels_of(graph, node.inputs[0]), graph.only_reader(node.output)
    if source is None or quantise is None or not isinstance(quantise.operator, OnnxQuantizeLinear):
        return None
    parts = Replacement(graph, node)
    rows = parts.reshaped(node.inputs[0], (1, math.prod(shape[:3]), shape[3]))
    flat = type(operator)({**operator.attributes, "axis": -1}, node.op)
    normal = parts.add(flat, (rows, *node.inputs[1:]), (1, math.prod(shape[:3]), shape[3]))
    parts.reshaped(parts.rounded(normal, quantise.inputs[1:], quantise.output), shape)
    return parts.finished()
