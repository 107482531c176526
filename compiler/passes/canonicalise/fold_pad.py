"""Padding becomes the window's own: ``QConv(QPad(x))`` becomes ``QConv(x)`` with larger pads.

A convolution pads with its input's zero point, a max pooling with what never wins, and neither is a copy.
"""

from tilewright.compiler.graph.graph import Graph, Node
from tilewright.compiler.graph.rewrite import Pass


class FoldPad(Pass):
    """Replace ``QConv(QPad(x))`` where the padding is of zeros, and ``QMaxPool(QPad(x))`` where it is the least."""

    def apply(self, graph: Graph) -> Graph:
        for pad in [node for node in graph.nodes if node.op == "QPad"]:
            reader = graph.only_reader(pad.output)
            if reader is None or reader.inputs[0] != pad.output or not _takes(graph, reader, pad):
                continue
            pads = tuple(a + b for a, b in zip(reader.attrs["pads"], pad.attrs["pads"], strict=True))
            folded = reader.with_(inputs=(pad.inputs[0], *reader.inputs[1:]),
                                  onnx_nodes=pad.onnx_nodes + reader.onnx_nodes).with_attrs(pads=pads)
            graph = graph.replaced((pad, reader), folded)
        return graph


def _takes(graph: Graph, reader: Node, pad: Node) -> bool:
    value, zero = pad.attrs["value"], graph.tensors[pad.inputs[0]].zero_point
    if reader.op == "QConv":
        return bool(value == zero)
    # A window that lies in the padding altogether would have no greatest value.
    fits = all(before + more < extent for before, more, extent in zip(
        reader.attrs.get("pads", ()), pad.attrs["pads"], (*reader.attrs.get("kernel", ()),) * 2, strict=False))
    return reader.op == "QMaxPool" and value == -128 and fits
