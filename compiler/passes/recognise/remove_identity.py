"""Remove nodes that compute nothing: ``Identity(x)`` and ``Dropout(x)`` become ``x``, ``Relu(Relu(x))`` one Relu."""

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxDropout, OnnxIdentity, OnnxRelu
from tilewright.compiler.graph.rewrite import Pass, PassError

__all__ = ["RemoveIdentity"]

_TRAINING = 2   # the input of Dropout that tells it to drop


class RemoveIdentity(Pass):
    """Replace every reader's ``Identity(x)`` and ``Dropout(x)`` by ``x``; dropout acts in training only.

    One between an input and an output, or two outputs, of the model stays as an Identity with a reason.
    """

    def apply(self, graph: Graph) -> Graph:
        again = {node.output for node in graph.nodes if _repeats(graph, node)}
        for output in [node.output for node in graph.nodes if _is_left(node) or node.output in again]:
            node = graph.producer(output)
            assert node is not None
            _check(graph, node)
            source = node.inputs[0]
            if output not in graph.outputs:
                graph = graph.removed(node).replace_all_uses(output, source)
            elif output in again:
                continue    # two outputs of the model: each is computed
            elif graph.producer(source) is not None and source not in graph.outputs:
                graph = graph.removed(node).renamed(source, output)
            else:
                kept = Node(OnnxIdentity(), (source,), output, node.onnx_nodes,
                            "it joins an input or output of the model to an output")
                graph = graph.replaced((node,), kept)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if _is_left(node)]:
            raise PassError(f"Identities must all be removed, not left as {', '.join(left)}")


def _is_left(node: Node) -> bool:
    return isinstance(node.operator, OnnxIdentity | OnnxDropout) and not node.reason


def _repeats(graph: Graph, node: Node) -> bool:
    """Tell whether ``node`` is a Relu of a Relu."""
    before = graph.producer(node.inputs[0]) if isinstance(node.operator, OnnxRelu) else None
    return before is not None and isinstance(before.operator, OnnxRelu)


def _check(graph: Graph, node: Node) -> None:
    """Raise :exc:`UnsupportedNodeError` for a Dropout that drops, or may."""
    has_flag = isinstance(node.operator, OnnxDropout) and len(node.inputs) > _TRAINING
    training = node.inputs[_TRAINING] if has_flag else ""
    if training and bool(np.any(graph.constants.get(training, True))):
        raise UnsupportedNodeError(node.name, node.op, "it drops values, as in training",
                                   "export the model for inference")
