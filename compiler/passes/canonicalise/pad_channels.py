"""Channels that a Pad puts beside those of an image become a 1x1 convolution, which computes all of them.

Weights of one 1 per channel copy those that are there, and the bias is what the others hold: exact, and many times as
fast as moving bytes on the host core.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import ExactWindow, QConv
from tilewright.compiler.graph.move_operators import QPad
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass, PassError

__all__ = ["PadChannels"]


class PadChannels(Pass):
    """Replace ``QPad(x)`` of channels by ``QConv(x)``, and a QPad behind it of the rows and columns that there are."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, QPad) and any(node.operator.channels):
                graph = _computed(graph, node, node.operator)
        return graph

    def ensures(self, graph: Graph) -> None:
        left = [node.name for node in graph.nodes if isinstance(node.operator, QPad) and any(node.operator.channels)]
        if left:
            raise PassError(f"Padding of channels must be replaced, not left in {', '.join(left)}")


def _computed(graph: Graph, node: Node, pad: QPad) -> Graph:
    """Return the graph with all channels of ``node`` computed."""
    x = graph.tensors[node.inputs[0]]
    channels, (before, behind) = (x.shape or ())[1], pad.channels
    weights = np.zeros((before + channels + behind, channels, 1, 1), np.int8)
    bias = np.full(len(weights), pad.value - x.parameters[1], np.int32)
    kept = slice(before, before + channels)
    weights[kept, :, 0, 0] = np.eye(channels, dtype=np.int8)
    bias[kept] = 0
    constants: dict[str, np.ndarray] = {
        f"{node.output}:weights": weights, f"{node.output}:scale": np.ones(1, np.float32),
        f"{node.output}:bias": bias}
    conv = Node(QConv(window=ExactWindow()), (x.name, *constants), node.output, node.onnx_nodes)
    graph = graph.with_constants(constants)
    if not any(pad.pads):
        return graph.replaced((node,), conv)
    wider = replace(x, name=f"{node.output}:channels", shape=(1, len(weights), *(x.shape or ())[2:]))
    rest = node.with_(operator=replace(pad, channels=(0, 0)), inputs=(wider.name,))
    return graph.with_tensors(wider).replaced((node,), conv.with_(output=wider.name), rest)
