"""Permute a tensor's channels: by reordering the rows of the weights before it, or else by a 1x1 convolution.

The convolution has one 1 per output channel, which is exact, and many times as fast as moving bytes on the host core.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import ExactWindow, QConv
from tilewright.compiler.graph.node import Node

__all__ = ["permuted"]


def permuted(graph: Graph, old: list[Node], x: str, y: str, order: np.ndarray, names: tuple[str, ...]) -> Graph:
    """Return ``graph`` with ``old`` replaced by nodes that make channel i of ``y`` from channel ``order[i]`` of ``x``.

    Both tensors have the same type but for their names and channels; ``old`` alone read one another.
    """
    source = graph.producer(x)
    if source is not None and isinstance(source.operator, QConv) and source.operator.groups == 1 \
            and graph.only_reader(x) is old[0]:
        return _folded(graph, source, old, y, order, names)
    weights = np.zeros((order.size, (graph.tensors[x].shape or ())[1], 1, 1), np.int8)
    weights[np.arange(order.size), order] = 1
    constants: dict[str, np.ndarray] = {f"{y}:weights": weights, f"{y}:scale": np.ones(1, np.float32)}
    new = Node(QConv(window=ExactWindow()), (x, *constants, ""), y, names)
    return graph.with_constants(constants).replaced(old, new)


def _folded(graph: Graph, conv: Node, old: list[Node], y: str, order: np.ndarray, names: tuple[str, ...]) -> Graph:
    constants, inputs = {}, [conv.inputs[0]]
    for name in conv.inputs[1:]:
        value = graph.constants[name] if name else None
        if value is None or value.size == 1:
            inputs.append(name)
            continue
        inputs.append(f"{y}:{len(inputs)}")
        constants[inputs[-1]] = np.ascontiguousarray(value[order])
    new = replace(conv, inputs=tuple(inputs), output=y, onnx_nodes=conv.onnx_nodes + names)
    return graph.with_constants(constants).replaced((conv, *old), new)
