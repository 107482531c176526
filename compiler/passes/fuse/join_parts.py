"""Convolutions of one tensor whose results only stand side by side are one: ``concat(conv(x), conv(x))``.

Tools that split a layer by its output channels, and branches of equal windows, write this. Each sum stays what it is;
as one layer it loads its input once.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import QConv
from tilewright.compiler.graph.move_operators import QConcat
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["JoinParts"]

_INPUTS = 4
"""x, weights, their scale and bias, which may be absent."""


class JoinParts(Pass):
    """Replace neighbours in a QConcat of channels by one QConv, if all that tells them apart is constants."""

    def apply(self, graph: Graph) -> Graph:
        for concat in [node for node in graph.nodes if isinstance(node.operator, QConcat) and node.operator.axis == 0]:
            graph = _joined(graph, concat)
        return graph


def _joined(graph: Graph, concat: Node) -> Graph:
    """Return ``graph`` with the parts of one concatenation joined."""
    kinds = [_kind(graph, concat, name) or (place,) for place, name in enumerate(concat.inputs)]
    runs = [[name for name, _ in run]
            for _, run in groupby(zip(concat.inputs, kinds, strict=True), lambda each: each[1])]
    if len(runs) == len(concat.inputs):
        return graph
    names, new, old = [], [], []
    for run in runs:
        parts = list(_producers(graph, run)) if len(run) > 1 else []
        if not parts:
            names += run
            continue
        output = concat.output if len(runs) == 1 else f"{run[0]}:joined"
        node, constants = _one(graph, parts, output)
        first = graph.tensors[run[0]]
        shape = graph.tensors[concat.output].shape if len(runs) == 1 else _shape(graph, run)
        graph = graph.with_constants(constants).with_tensors(replace(first, name=output, shape=shape))
        names.append(output)
        new.append(node)
        old += parts
    if len(runs) > 1:
        new.append(concat.with_(inputs=tuple(names)))
    return graph.replaced((*old, concat), *new)


def _kind(graph: Graph, concat: Node, name: str) -> tuple[object, ...] | None:
    """Return what a part and its neighbour must have in common to be one; None for what is no such part."""
    node = graph.producer(name)
    if node is None or not isinstance(node.operator, QConv) or graph.only_reader(name) is not concat:
        return None
    operator, tensor, before = node.operator, graph.tensors[name], graph.tensors[node.inputs[0]]
    constant = len(node.inputs) == _INPUTS and all(each in graph.constants for each in node.inputs[1:] if each)
    plain = operator.table is None and operator.stage is None and operator.residual is None and operator.pool is None
    whole = operator.groups == 1 and not operator.own_output and len(tensor.shape or ()) == len(before.shape or ())
    same = tensor.same_quantisation(graph.tensors[concat.output])
    if not (constant and plain and whole and same):
        return None
    kernel = graph.constants[node.inputs[1]].shape[1:]
    return node.inputs[0], operator, kernel, tensor.unsigned


def _producers(graph: Graph, names: list[str]) -> Iterator[Node]:
    for name in names:
        node = graph.producer(name)
        if node is None or not isinstance(node.operator, QConv):
            return
        yield node


def _one(graph: Graph, parts: list[Node], output: str) -> tuple[Node, dict[str, np.ndarray]]:
    """Return the node that stands for ``parts``, and its constants by name."""
    arrays = [[graph.constants[name] if name else np.zeros(1, np.int32) for name in part.inputs[1:]] for part in parts]
    counts = [len(weights) for weights, _, _ in arrays]
    joined = [np.concatenate([weights for weights, _, _ in arrays]),
              *(np.concatenate([np.broadcast_to(each[index].reshape(-1), (count,))
                                for each, count in zip(arrays, counts, strict=True)]) for index in (1, 2))]
    names = [f"{output}:{what}" for what in ("joined weights", "joined scale", "joined bias")]
    nodes = tuple(dict.fromkeys(name for part in parts for name in part.onnx_nodes))
    return (Node(parts[0].operator, (parts[0].inputs[0], *names), output, nodes, parts[0].reason),
            dict(zip(names, joined, strict=True)))


def _shape(graph: Graph, names: list[str]) -> tuple[int, ...] | None:
    shapes = [graph.tensors[name].shape or () for name in names]
    return (shapes[0][0], sum(shape[1] for shape in shapes), *shapes[0][2:])
