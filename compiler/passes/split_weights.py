"""Weights of nine bits become two of eight: ``QConv(x, w)`` becomes ``QConv([x, x], [a, b])`` with w = a + b.

uint8 weights less their zero point reach from -255 to 255. Their sum of products is that over the input twice, once
with what of them fits int8 and once with the rest: the same int32, at twice the cost.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph import Graph, Node
from tilewright.compiler.passes.base import Pass, PassError
from tilewright.compiler.passes.quantisation import with_constants


class SplitWeights(Pass):
    """Replace each QConv with int16 weights by one with int8 weights on an input that is there twice.

    Without groups, that is a concatenation. With groups, each must have its channels twice, which takes a 1x1
    convolution with one 1 per output channel.
    """

    def apply(self, graph: Graph) -> Graph:
        for node in [node for node in graph.nodes if _is_wide(graph, node)]:
            graph = _split(graph, node)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if _is_wide(graph, node)]:
            raise PassError(f"Weights must all be int8, not those of {', '.join(left)}")


def _is_wide(graph: Graph, node: Node) -> bool:
    return node.op == "QConv" and graph.constants[node.inputs[1]].dtype == np.int16


def _split(graph: Graph, node: Node) -> Graph:
    x, groups = graph.tensors[node.inputs[0]], node.attrs["groups"]
    shape = x.shape or ()
    weights = graph.constants[node.inputs[1]]
    first = np.clip(weights, -128, 127)
    halves = np.concatenate([first, weights - first], axis=1).astype(np.int8)
    twice, channels = f"{node.output}:input twice", shape[1]
    constants: dict[str, np.ndarray] = {f"{node.output}:halves": halves}
    if groups == 1:
        copy = Node("QConcat", (x.name, x.name), twice, {"axis": 0}, node.onnx_nodes)
    else:
        order = np.arange(channels).reshape(groups, 1, -1).repeat(2, axis=1).ravel()
        ones = np.zeros((2 * channels, channels, 1, 1), np.int8)
        ones[np.arange(2 * channels), order] = 1
        names = (f"{twice}:weights", f"{twice}:scale")
        constants |= {names[0]: ones, names[1]: np.ones(1, np.float32)}
        attrs = {"low": -128, "high": 127, "kernel": (1, 1), "strides": (1, 1), "dilations": (1, 1),
                 "pads": (0, 0, 0, 0), "groups": 1}
        copy = Node("QConv", (x.name, *names, ""), twice, attrs, node.onnx_nodes)
    new = node.with_(inputs=(twice, f"{node.output}:halves", *node.inputs[2:]))
    tensors = {**graph.tensors, twice: replace(x, name=twice, shape=(shape[0], 2 * channels, *shape[2:]))}
    nodes = tuple(each for old in graph.nodes for each in ((copy, new) if old is node else (old,)))
    return with_constants(graph.with_(nodes=nodes, tensors=tensors), constants)
