"""Remove nodes that compute nothing: ``Identity(x)``, ``Dropout(x)``, ``x + 0`` and ``x * 1`` become ``x``.

And ``Relu(Relu(x))`` becomes one Relu.
"""

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxDiv,
    OnnxDropout,
    OnnxIdentity,
    OnnxMul,
    OnnxPad,
    OnnxRelu,
    OnnxSub,
)
from tilewright.compiler.graph.rewrite import Pass, PassError

__all__ = ["RemoveIdentity"]

_OF_ALL = {"Max", "Mean", "Min", "Sum"}     # of any number of tensors, and of one it is that one
_TRAINING = 2   # the input of Dropout that tells it to drop


class RemoveIdentity(Pass):
    """Replace every reader's ``Identity(x)`` and what is one, by ``x``; dropout acts in training only.

    Sums with 0 and products by 1 are identities but for the sign of a zero, which ONNX Runtime leaves out too. One
    between an input and an output of the model stays as an Identity with a reason, one between two outputs makes these
    one value.
    """

    def apply(self, graph: Graph) -> Graph:
        again = {node.output for node in graph.nodes if _repeats(graph, node)}
        for output in [node.output for node in graph.nodes if _is_left(graph, node) or node.output in again]:
            node = graph.producer(output)
            assert node is not None
            _check(graph, node)
            source = _operand(graph, node) or node.inputs[0]
            if output not in graph.outputs:
                graph = graph.removed(node).replace_all_uses(output, source)
            elif output in again:
                continue    # two outputs of the model: each is computed
            elif graph.producer(source) is not None and source not in graph.outputs:
                graph = graph.removed(node).renamed(source, output)
            elif graph.producer(source) is not None:
                graph = graph.removed(node).replace_all_uses(output, source).with_output(output, source)
            else:
                kept = Node(OnnxIdentity(), (source,), output, node.onnx_nodes,
                            "it joins an input of the model to an output")
                graph = graph.replaced((node,), kept)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if _is_left(graph, node)]:
            raise PassError(f"Identities must all be removed, not left as {', '.join(left)}")


def _is_left(graph: Graph, node: Node) -> bool:
    return (isinstance(node.operator, OnnxIdentity | OnnxDropout) or _operand(graph, node) is not None) \
        and not node.reason


def _operand(graph: Graph, node: Node) -> str | None:
    """Return the tensor that a node leaves as it is; None if it computes something, or is an Identity by its name."""
    if len(node.inputs) == 1:
        return node.inputs[0] if node.op in _OF_ALL else None
    if isinstance(node.operator, OnnxPad):
        pads = graph.constants.get(node.inputs[1])
        return node.inputs[0] if pads is not None and not pads.any() else None
    neutral = 0 if isinstance(node.operator, OnnxAdd | OnnxSub) else 1
    sides = 2 if isinstance(node.operator, OnnxAdd | OnnxMul) else int(isinstance(node.operator, OnnxSub | OnnxDiv))
    for name, other in ((node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0]))[:sides]:
        value = graph.constants.get(other)
        if value is not None and name not in graph.constants and bool(np.all(value == neutral)) \
                and graph.tensors[name].shape == graph.tensors[node.output].shape is not None:
            return name
    return None


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
