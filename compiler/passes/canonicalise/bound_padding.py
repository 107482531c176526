"""Padding of more columns than a load can write becomes an image that has it: ``QConv(x)`` becomes ``QConv(QPad(x))``.

Rows of padding are written by commands of their own, as many as there are.
"""

from dataclasses import replace

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import QAverage, QConv
from tilewright.compiler.graph.move_operators import QPad
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.isa.limits import MAX_PADDING

__all__ = ["BoundPadding"]


class BoundPadding(Pass):
    """Put what is too much before a QConv or QAverage, and before a QPad, into QPads of their own."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            current = node
            while _excess(current) > 0:
                graph, current = _moved(graph, current)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if _excess(node) > 0]:
            raise PassError(f"Padding of columns must be within {MAX_PADDING}, not that of {', '.join(left)}")


def _excess(node: Node) -> int:
    """Return by how many columns the padding of ``node`` is too much on its worse side."""
    match node.operator:
        case QConv() | QAverage() as windowed:
            pads = windowed.exact_window.pads
        case QPad(pads):
            pass
        case _:
            return 0
    return max(pads[1], pads[3]) - MAX_PADDING


def _moved(graph: Graph, node: Node) -> tuple[Graph, Node]:
    """Return the graph with columns of padding before ``node``, as many as a QPad takes, and the node with the rest."""
    operator, x = node.operator, graph.tensors[node.inputs[0]]
    assert isinstance(operator, QConv | QAverage | QPad)
    top, left, bottom, right = operator.pads if isinstance(operator, QPad) else operator.exact_window.pads
    before, after = (min(MAX_PADDING, max(0, each - MAX_PADDING)) for each in (left, right))
    rest = (top, left - before, bottom, right - after)
    value = operator.value if isinstance(operator, QPad) else x.parameters[1]
    batch, channels, height, width = x.shape or ()
    width += before + after
    wider = replace(x, name=f"{node.output}:padded to {width}", shape=(batch, channels, height, width))
    pad = Node(QPad((0, before, 0, after), value), (x.name,), wider.name, node.onnx_nodes)
    kept = node.with_(inputs=(wider.name, *node.inputs[1:]), operator=replace(operator, pads=rest) if isinstance(
        operator, QPad) else replace(operator, window=replace(operator.exact_window, pads=rest)))
    return graph.with_tensors(wider).replaced((node,), pad, kept), kept
