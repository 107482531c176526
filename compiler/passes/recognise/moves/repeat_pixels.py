"""A Tile or Expand of one pixel to an image becomes a Resize, which stores the pixel as often as it is there."""

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxExpand, OnnxResize, OnnxTile
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["RepeatPixels"]

_IMAGE_RANK = 4


class RepeatPixels(Pass):
    """Replace ``Tile(x)`` and ``Expand(x)`` of integers (1, channels, 1, 1) by a nearest Resize of x."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, OnnxTile | OnnxExpand) and node.inputs[0] in graph.tensors:
                graph = _resized(graph, node)
        return graph


def _resized(graph: Graph, node: Node) -> Graph:
    x, result = graph.tensors[node.inputs[0]], graph.tensors[node.output]
    before, behind = x.shape or (), result.shape or ()
    if x.dtype not in ("int8", "uint8") or len(before) != _IMAGE_RANK or len(behind) != _IMAGE_RANK \
            or before[0] != 1 or before[2:] != (1, 1) or before[:2] != behind[:2] or min(behind) < 1:
        return graph
    scales = f"{node.output}:scales"
    operator = OnnxResize({"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"})
    graph = graph.with_constants({scales: np.array([1, 1, *behind[2:]], np.float32)})
    return graph.replaced((node,), node.with_(operator=operator, inputs=(node.inputs[0], "", scales)))
