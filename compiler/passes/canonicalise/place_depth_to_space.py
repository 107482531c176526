"""DepthToSpace becomes places: each of the b² parts of the channels is stored to its phase of the output.

Output pixel (b y + i, b x + j) has channels (i b + j) C .. of input pixel (y, x) in ONNX's mode DCR; in mode CRD, which
is PyTorch's PixelShuffle, channel c is number c b² + i b + j of the input, whose channels are put in order first.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.move_operators import QInterleave, QSlice
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxDepthToSpace
from tilewright.compiler.graph.permute_channels import permuted
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["PlaceDepthToSpace"]


class PlaceDepthToSpace(Pass):
    """Replace ``DepthToSpace(x)`` of integers by a QInterleave of QSlices of x."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, OnnxDepthToSpace) and graph.tensors[node.output].quantised:
                now = graph.producer(node.output)
                if now is not None and graph.tensors[now.inputs[0]].quantised:
                    graph = _placed(graph, now, node.operator)
        return graph


def _placed(graph: Graph, node: Node, operator: OnnxDepthToSpace) -> Graph:
    x, y = graph.tensors[node.inputs[0]], graph.tensors[node.output]
    block = int(operator.blocksize)
    if x.shape is None or y.shape is None or len(x.shape) != 4 or x.shape[0] != 1 or block < 1 \
            or y.shape != (1, x.shape[1] // block**2, x.shape[2] * block, x.shape[3] * block):
        return graph
    channels, size = y.shape[1], x.shape[2:]
    if operator.mode == "CRD" and channels > 1:
        ordered = replace(x, name=f"{y.name}:ordered")
        move = node.with_(output=ordered.name)
        graph = graph.with_tensors(ordered).replaced((node,), move, node.with_(inputs=(ordered.name,)))
        order = np.arange(x.shape[1]).reshape(channels, block**2).T.ravel()
        graph = permuted(graph, [move], x.name, ordered.name, order, ())
        x = graph.tensors[ordered.name]
    parts = [replace(x, name=f"{y.name}:phase {index}", shape=(1, channels, *size)) for index in range(block**2)]
    slices = [Node(QSlice((channels * index, 0, 0)), (x.name,), part.name, node.onnx_nodes)
              for index, part in enumerate(parts)]
    new = Node(QInterleave((block, block)), tuple(part.name for part in parts), y.name, node.onnx_nodes)
    return graph.with_tensors(*parts).replaced((node,), *slices, new)
