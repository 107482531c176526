"""A PRelu with the same slope for all channels as one with a single slope: a function of each element, so a table."""

import numpy as np

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node

__all__ = ["with_one_slope"]


def with_one_slope(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with a PRelu whose slopes are all the same given one; None where they differ or are computed."""
    slope = quantisation.fixed_numbers(graph, node.inputs[1])
    single = node.inputs[1] in graph.constants and graph.constants[node.inputs[1]].size == 1
    if slope is None or not slope.size or single or np.any(slope != slope.flat[0]):
        return None
    name = f"{node.output}:slope"
    graph = graph.with_constants({name: np.array(slope.flat[0])})
    return graph.replaced((node,), node.with_(inputs=(node.inputs[0], name)))
