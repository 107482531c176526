"""Drop what computes nothing: ``Identity(x)`` and ``Dropout(x)`` become ``x``."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph.graph import Graph, Node
from tilewright.compiler.graph.rewrite import Pass, PassError

_IDENTITIES = ("Identity", "Dropout")
_TRAINING = 2   # the input of Dropout that tells it to drop


class RemoveIdentity(Pass):
    """Replace every reader's ``Identity(x)`` and ``Dropout(x)`` by ``x``; dropout acts in training only.

    One between an input and an output, or two outputs, of the model stays as an Identity with a reason.
    """

    def apply(self, graph: Graph) -> Graph:
        while (node := next((n for n in graph.nodes if n.op in _IDENTITIES and not n.reason), None)) is not None:
            _check(graph, node)
            if node.output not in graph.outputs:
                graph = rename(graph, {node.output: node.inputs[0]}, without=node)
            elif graph.producer(node.inputs[0]) is not None and node.inputs[0] not in graph.outputs:
                graph = rename(graph, {node.inputs[0]: node.output}, without=node)
            else:
                kept = Node("Identity", node.inputs[:1], node.output, {}, node.onnx_nodes,
                            "it joins an input or output of the model to an output")
                graph = graph.replaced((node,), kept)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if node.op in _IDENTITIES and not node.reason]:
            raise PassError(f"Identities must all be removed, not left as {', '.join(left)}")


def _check(graph: Graph, node: Node) -> None:
    """Raise :exc:`UnsupportedNodeError` for a Dropout that drops, or may."""
    training = node.inputs[_TRAINING] if node.op == "Dropout" and len(node.inputs) > _TRAINING else ""
    if training and bool(np.any(graph.constants.get(training, True))):
        raise UnsupportedNodeError(node.name, node.op, "it drops values, as in training",
                                   "export the model for inference")


def rename(graph: Graph, names: dict[str, str], *, without: Node) -> Graph:
    """Return ``graph`` without one node and with some tensors called by other names."""
    nodes = tuple(
        replace(node, inputs=tuple(names.get(name, name) for name in node.inputs),
                output=names.get(node.output, node.output))
        for node in graph.nodes if node is not without)
    return graph.with_(nodes=nodes)
