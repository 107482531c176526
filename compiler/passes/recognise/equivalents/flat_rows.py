"""Normalisations and softmaxes of the last axis of four are those of rows that lie one after the other.

A tensor of four dimensions lies as an image does, its second axis innermost, and one of three row by row. So the
channels of an image, transposed for a LayerNormalization as in ConvNeXt and Swin, lie in one run without being moved,
and so do the distances of a detector's boxes, of which a Reshape makes (1, places, 4, bins).
"""

import math

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxOperator, OnnxQuantizeLinear, OnnxReshape, OnnxSoftmax
from tilewright.compiler.passes.recognise.equivalents.replacement import Replacement, levels_of

__all__ = ["normalised_as_rows"]

_NORMALISATIONS = ("LayerNormalization", "RMSNormalization")
_IMAGE_RANK = 4
_ALONG_ONE_AXIS = 13
"""The opset from which on a softmax goes along one axis, and not all from it on."""


def normalised_as_rows(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with a normalisation of quantised (1, height, width, channels) as one of (1, rows, channels).

    Also a softmax behind a Reshape, which makes no such image. None for other operators, axes and tensors.
    """
    operator, shape = node.operator, graph.tensors[node.inputs[0]].shape
    softmax = isinstance(operator, OnnxSoftmax)
    if not (softmax or node.op in _NORMALISATIONS) or not isinstance(operator, OnnxOperator) or shape is None \
            or len(shape) != _IMAGE_RANK or shape[0] != 1 or operator.attributes.get("axis", -1) not in (-1, 3):
        return None
    source, quantise = levels_of(graph, node.inputs[0]), graph.only_reader(node.output)
    quantised = quantise is not None and isinstance(quantise.operator, OnnxQuantizeLinear)
    if source is None or not (quantised or softmax) or (
            softmax and (graph.opset < _ALONG_ONE_AXIS or not _is_reshaped(graph, source))):
        return None
    parts = Replacement(graph, node)
    rows = parts.reshaped(node.inputs[0], (1, math.prod(shape[:3]), shape[3]))
    flat = type(operator)({**operator.attributes, "axis": -1}, node.op)
    normal = parts.add(flat, (rows, *node.inputs[1:]), (1, math.prod(shape[:3]), shape[3]))
    if quantise is not None and quantised:
        normal = parts.rounded(normal, quantise.inputs[1:], quantise.output)
    parts.reshaped(normal, shape)
    return parts.finished()


def _is_reshaped(graph: Graph, source: Node) -> bool:
    """Tell whether a Reshape makes the levels that ``source`` dequantises, before or behind their quantisation."""
    maker = graph.producer(source.inputs[0])
    if maker is not None and isinstance(maker.operator, OnnxQuantizeLinear):
        maker = graph.producer(maker.inputs[0])
    return maker is not None and isinstance(maker.operator, OnnxReshape)
