"""DepthToSpace becomes places: each of the b² parts of the channels is stored to its phase of the output.

Output pixel (b y + i, b x + j) has channels (i b + j) C .. of input pixel (y, x) in ONNX's mode DCR; in mode CRD, which
is PyTorch's PixelShuffle, channel c is number c b² + i b + j of the input, whose channels are put in order first.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph, Node
from tilewright.compiler.graph.permute_channels import permuted
from tilewright.compiler.graph.rewrite import Pass


class PlaceDepthToSpace(Pass):
    """Replace ``DepthToSpace(x)`` of integers by a QInterleave of QSlices of x."""

    def apply(self, graph: Graph) -> Graph:
        for output in [node.output for node in graph.nodes if node.op == "DepthToSpace"]:
            node = graph.producer(output)
            if node is not None and graph.tensors[node.inputs[0]].quantised and graph.tensors[output].quantised:
                graph = _placed(graph, node)
        return graph


def _placed(graph: Graph, node: Node) -> Graph:
    x, y = graph.tensors[node.inputs[0]], graph.tensors[node.output]
    block = int(node.attrs.get("blocksize", 0))
    if x.shape is None or y.shape is None or len(x.shape) != 4 or x.shape[0] != 1 or block < 1 \
            or y.shape != (1, x.shape[1] // block**2, x.shape[2] * block, x.shape[3] * block):
        return graph
    channels, size = y.shape[1], x.shape[2:]
    if node.attrs.get("mode", "DCR") == "CRD" and channels > 1:
        ordered = f"{y.name}:ordered"
        move = node.with_(output=ordered)
        node = node.with_(inputs=(ordered,), attrs={**node.attrs, "mode": "DCR"})
        nodes = tuple(new for each in graph.nodes for new in ((move, node) if each.output == y.name else (each,)))
        graph = graph.with_(nodes=nodes, tensors={**graph.tensors, ordered: replace(x, name=ordered)})
        order = np.arange(x.shape[1]).reshape(channels, block**2).T.ravel()
        graph = permuted(graph, [move], x.name, ordered, order, ())
        x = graph.tensors[ordered]
    parts, slices, tensors = [], [], dict(graph.tensors)
    for index in range(block**2):
        name = f"{y.name}:phase {index}"
        tensors[name] = replace(x, name=name, shape=(1, channels, *size))
        slices.append(Node("QSlice", (x.name,), name, {"starts": (channels * index, 0, 0), "steps": (1, 1)},
                           node.onnx_nodes))
        parts.append(name)
    new = Node("QInterleave", tuple(parts), y.name, {"steps": (block, block)}, node.onnx_nodes)
    nodes = tuple(each for old in graph.nodes for each in ((*slices, new) if old.output == y.name else (old,)))
    return graph.with_(nodes=nodes, tensors=tensors)
