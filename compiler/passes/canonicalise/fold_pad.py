"""Padding becomes the window's own: ``QConv(QPad(x))`` becomes ``QConv(x)`` with larger pads.

A convolution pads with its input's zero point, a max pooling with what never wins, and neither is a copy.
"""

from dataclasses import replace

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import QConv, QMaxPool
from tilewright.compiler.graph.move_operators import QPad
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["FoldPad"]


class FoldPad(Pass):
    """Replace ``QConv(QPad(x))`` where the padding is of zeros, and ``QMaxPool(QPad(x))`` where it is the least."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if not isinstance(node.operator, QPad):
                continue
            reader = graph.only_reader(node.output)
            if reader is not None and reader.inputs[0] == node.output \
                    and isinstance(reader.operator, QConv | QMaxPool) \
                    and _takes(graph, reader.operator, node, node.operator):
                window = reader.operator.exact_window
                top, left, bottom, right = (a + b for a, b in zip(window.pads, node.operator.pads, strict=True))
                operator = replace(reader.operator, window=replace(window, pads=(top, left, bottom, right)))
                graph = graph.replaced((node, reader), reader.with_(
                    operator=operator, inputs=(node.inputs[0], *reader.inputs[1:]),
                    onnx_nodes=node.onnx_nodes + reader.onnx_nodes))
        return graph


def _takes(graph: Graph, reader: QConv | QMaxPool, node: Node, pad: QPad) -> bool:
    if isinstance(reader, QConv):
        return bool(pad.value == graph.tensors[node.inputs[0]].zero_point)
    # A window that lies in the padding altogether would have no greatest value.
    window = reader.exact_window
    fits = all(before + more < extent for before, more, extent in zip(
        window.pads, pad.pads, (*window.kernel,) * 2, strict=True))
    return pad.value == -128 and fits
