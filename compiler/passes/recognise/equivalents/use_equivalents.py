"""Operators between quantised tensors that the datapath lacks become those that it has, with the same result.

Maxima of tensors, and along axes, are max pooling; mirrored and repeated pads, and nearest pixels, are Gathers; means
of rows are means of images; squares are products; products of many matrices are grouped convolutions; channels
that come last are rows. What they move
on the way, later passes make a matter of addresses.
"""

from collections.abc import Callable

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxMatMul,
    OnnxMax,
    OnnxOperator,
    OnnxPad,
    OnnxPow,
    OnnxPRelu,
    OnnxReduceMax,
    OnnxReduceMean,
    OnnxReduceSum,
    OnnxResize,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.passes.recognise.equivalents.batched_products import product_of_each
from tilewright.compiler.passes.recognise.equivalents.flat_rows import normalised_as_rows
from tilewright.compiler.passes.recognise.equivalents.maxima import largest_along, largest_of
from tilewright.compiler.passes.recognise.equivalents.means import mean_of_image, mean_of_mean
from tilewright.compiler.passes.recognise.equivalents.nearest import nearest_by_gathers
from tilewright.compiler.passes.recognise.equivalents.padding import cropped, padded_as_image, padded_by_gathers
from tilewright.compiler.passes.recognise.equivalents.powers import squared
from tilewright.compiler.passes.recognise.equivalents.slopes import with_one_slope

__all__ = ["UseEquivalents"]

_Rule = Callable[[Graph, Node], Graph | None]

_RULES: tuple[tuple[type[OnnxOperator], _Rule], ...] = (
    (OnnxMax, largest_of), (OnnxReduceMax, largest_along), (OnnxPad, padded_by_gathers), (OnnxPad, cropped),
    (OnnxPad, padded_as_image), (OnnxResize, nearest_by_gathers), (OnnxPRelu, with_one_slope),
    (OnnxReduceMean, mean_of_mean), (OnnxReduceMean, mean_of_image), (OnnxReduceSum, mean_of_image), (OnnxPow, squared),
    (OnnxMatMul, product_of_each), (OnnxOperator, normalised_as_rows))


class UseEquivalents(Pass):
    """Apply each rule of an operator once to every node of it."""

    def apply(self, graph: Graph) -> Graph:
        for kind, rule in _RULES:
            for output in [node.output for node in graph.nodes if isinstance(node.operator, kind)]:
                node = graph.producer(output)
                if node is not None and node.inputs[0] in graph.tensors:
                    graph = rule(graph, node) or graph
        return graph
