"""Weights of nine bits become two of eight: ``QConv(x, w)`` becomes ``QConv([x, x], [a, b])`` with w = a + b.

uint8 weights less their zero point reach from -255 to 255. Their sum of products is that over the input twice, once
with what of them fits int8 and once with the rest: the same int32, at twice the cost. 255 itself takes three. The
same holds for a QConvTranspose.

Most often a few input channels have a rest at all. Where a convolution makes them, it makes those a second time, as
output channels of the same weights; who else reads its result reads a part of the larger one.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import ExactWindow, QConv, QConvTranspose
from tilewright.compiler.graph.move_operators import QConcat, QSlice
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass, PassError

__all__ = ["SplitWeights"]


_Weighted = QConv | QConvTranspose


class SplitWeights(Pass):
    """Replace int16 weights of each QConv and QConvTranspose by int8 ones on an input that is there as often as needed.

    Without groups, that is a concatenation. With groups, each must have its channels so often, which takes a 1x1
    convolution with one 1 per output channel.
    """

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, _Weighted) and _is_wide(graph, node):
                graph = _split(graph, node, node.operator)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if _is_wide(graph, node)]:
            raise PassError(f"Weights must all be int8, not those of {', '.join(left)}")


def _is_wide(graph: Graph, node: Node) -> bool:
    return isinstance(node.operator, _Weighted) and graph.constants[node.inputs[1]].dtype == np.int16


def _parts(weights: np.ndarray) -> list[np.ndarray]:
    """Return int8 arrays, two or three, whose sum is ``weights``, int16."""
    parts: list[np.ndarray] = []
    while not parts or weights.any():
        parts.append(np.clip(weights, -128, 127).astype(np.int8))
        weights = weights - parts[-1]
    return parts


def _joined(parts: list[np.ndarray], operator: _Weighted) -> np.ndarray:
    """Return the weights of all parts, those of a group next to each other, along the axis of input channels."""
    if isinstance(operator, QConv):
        return np.concatenate(parts, axis=1)
    groups = [part.reshape(operator.groups, -1, *part.shape[1:]) for part in parts]
    return np.concatenate(groups, axis=1).reshape(-1, *parts[0].shape[1:])


def _maker(graph: Graph, node: Node, operator: _Weighted) -> Node | None:
    """Return the convolution that makes the input of ``node``; None if there is none, or it may not make more."""
    source = graph.producer(node.inputs[0])
    if source is None or node.inputs[0] in graph.outputs or not isinstance(operator, QConv) or operator.groups > 1:
        return None
    return source if isinstance(source.operator, QConv) and source.operator.groups == 1 else None


def _made_twice(graph: Graph, node: Node, source: Node, parts: list[np.ndarray]) -> Graph:
    """Return the graph in which ``source`` makes those channels again that have a weight in parts behind the first."""
    x = graph.tensors[node.inputs[0]]
    batch, channels, *size = x.shape or ()
    again = [np.flatnonzero(part.any(axis=(0, *range(2, part.ndim)))) for part in parts[1:]]
    order = np.concatenate([np.arange(channels), *again])
    wider = replace(x, name=f"{node.output}:input with more channels", shape=(batch, len(order), *size))
    kernels = [part[:, chosen] for part, chosen in zip(parts[1:], again, strict=True)]
    constants = {f"{node.output}:parts": np.concatenate([parts[0], *kernels], axis=1)}
    names = []
    for what, name in zip(("weights", "scale", "bias"), source.inputs[1:4], strict=False):
        values = graph.constants[name] if name else None
        if values is not None and values.shape[:1] == (channels,):
            name = f"{wider.name}:{what}"
            constants[name] = np.ascontiguousarray(values[order])
        names.append(name)
    made = source.with_(inputs=(source.inputs[0], *names, *source.inputs[4:]), output=wider.name)
    reader = node.with_(inputs=(wider.name, f"{node.output}:parts", *node.inputs[2:]))
    graph = graph.with_tensors(wider).with_constants(constants).replaced((node,), reader)
    return graph.replaced((source,), made, Node(QSlice((0, 0, 0)), (wider.name,), x.name, source.onnx_nodes))


def _split(graph: Graph, node: Node, operator: _Weighted) -> Graph:
    x, groups = graph.tensors[node.inputs[0]], operator.groups
    shape = x.shape or ()
    parts = _parts(graph.constants[node.inputs[1]])
    if (source := _maker(graph, node, operator)) is not None:
        return _made_twice(graph, node, source, parts)
    times, channels, repeated = len(parts), shape[1], f"{node.output}:input repeated"
    constants: dict[str, np.ndarray] = {f"{node.output}:parts": _joined(parts, operator)}
    if groups == 1:
        copy = Node(QConcat(0), (x.name,) * times, repeated, node.onnx_nodes)
    else:
        order = np.arange(channels).reshape(groups, 1, -1).repeat(times, axis=1).ravel()
        ones = np.zeros((times * channels, channels, 1, 1), np.int8)
        ones[np.arange(times * channels), order] = 1
        names = (f"{repeated}:weights", f"{repeated}:scale")
        constants |= {names[0]: ones, names[1]: np.ones(1, np.float32)}
        copy = Node(QConv(window=ExactWindow()), (x.name, *names, ""), repeated, node.onnx_nodes)
    new = node.with_(inputs=(repeated, f"{node.output}:parts", *node.inputs[2:]))
    wider = replace(x, name=repeated, shape=(shape[0], times * channels, *shape[2:]))
    return graph.with_tensors(wider).with_constants(constants).replaced((node,), copy, new)
