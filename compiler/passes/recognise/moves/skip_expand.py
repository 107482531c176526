"""Operands that an Expand repeats need not be: ``x · Expand(p)`` becomes ``x · p`` where the product itself repeats p.

So an exporter writes ``x * p.expand_as(x)``, the usual squeeze-and-excitation. A product by a vector of channels is a
depthwise convolution, and nothing is copied.
"""

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxArithmetic, OnnxDequantizeLinear, OnnxExpand
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["SkipExpand"]


class SkipExpand(Pass):
    """Let arithmetic read what is before an Expand, of floats or of integers that are dequantised behind it."""

    def apply(self, graph: Graph) -> Graph:
        found = graph
        for output in [node.output for node in graph.nodes if isinstance(node.operator, OnnxArithmetic)]:
            for position in (0, 1):
                found = _skipped(found, output, position)
        return found if found is graph else found.without_unread(lambda node: not isinstance(
            node.operator, OnnxExpand | OnnxDequantizeLinear))


def _skipped(graph: Graph, output: str, position: int) -> Graph:
    """Return the graph with one operand of what makes ``output`` as it was before an Expand, if there is one."""
    node = graph.producer(output)
    assert node is not None
    name = node.inputs[position]
    maker = graph.producer(name)
    dequantise = maker if maker is not None and isinstance(maker.operator, OnnxDequantizeLinear) else None
    expand = maker if dequantise is None else graph.producer(dequantise.inputs[0])
    if expand is None or not isinstance(expand.operator, OnnxExpand) or expand.inputs[0] not in graph.tensors \
            or not _repeats(graph, node, position, expand.inputs[0]):
        return graph
    source, before = expand.inputs[0], list[Node]()
    if dequantise is not None:
        real = f"{name}:before Expand"
        if graph.producer(real) is None:
            graph = graph.with_tensors(Tensor(real, graph.tensors[source].shape, "float32"))
            before.append(Node(dequantise.operator, (source, *dequantise.inputs[1:]), real))
        source = real
    inputs = list(node.inputs)
    inputs[position] = source
    return graph.replaced((node,), *before, node.with_(inputs=tuple(inputs)))


def _repeats(graph: Graph, node: Node, position: int, source: str) -> bool:
    """Tell whether the operator makes the shape of its result also of ``source``."""
    other = node.inputs[1 - position]
    shapes = [graph.constants[each].shape if each in graph.constants else graph.tensors[each].shape
              for each in (source, other, node.output)]
    if any(shape is None for shape in shapes):
        return False
    try:
        return bool(np.broadcast_shapes(*(shape or () for shape in shapes[:2])) == shapes[2])
    except ValueError:
        return False
