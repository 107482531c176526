"""Normalisations that were taken apart become LayerNormalization, or that of instances, groups or RMS, again.

What is normalised along other axes than the last ones is transposed there and back.
"""

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_names import onnx_operator
from tilewright.compiler.graph.onnx_operators import OnnxOperator, OnnxTranspose
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.passes.recognise.normalisations.channel_groups import with_groups_in_float
from tilewright.compiler.passes.recognise.normalisations.quantised_variance import with_quantised_variances
from tilewright.compiler.passes.recognise.normalisations.taken_apart import TakenApart, normalisations

__all__ = ["RebuildNormalisations", "Rebuilt", "rebuilt"]


class Rebuilt:
    """The operators that stand for a normalisation: nodes in order, their constants and the types of what they make."""

    def __init__(self, found: TakenApart, shape: tuple[int, ...]) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray] = {}
        self.tensors: list[Tensor] = []
        self._found = found
        self._names = tuple(name for node in found.nodes for name in node.onnx_nodes)
        rank = len(shape)
        if found.groups:
            self._channels(shape, "GroupNormalization", {"num_groups": found.groups})
            return
        if found.centred and rank > 2 and found.axes == tuple(range(2, rank)) and self._by_channel(found):
            self._channels(shape, "InstanceNormalization", {})
            return
        kept = tuple(axis for axis in range(rank) if axis not in found.axes)
        order = (*kept, *found.axes)
        x, moved = found.x, tuple(shape[axis] for axis in order)
        x = self._transposed(x, tuple(found.perm[axis] for axis in order), moved)
        extents = tuple(shape[axis] for axis in found.axes)
        vectors = [np.broadcast_to(each, [extent if axis in found.axes else 1 for axis, extent in enumerate(shape)]
                                   ).transpose(order).reshape(extents) for each in (found.gain, found.shift)]
        op = "LayerNormalization" if found.centred else "RMSNormalization"
        x = self._normalised(op, {"axis": len(kept) - rank, "epsilon": found.epsilon}, x, vectors,
                             moved)
        self._transposed(x, tuple(int(axis) for axis in np.argsort(order)), shape)
        self.nodes[-1] = self.nodes[-1].with_(output=found.output)

    @staticmethod
    def _by_channel(found: TakenApart) -> bool:
        return all(extent == 1 for each in (found.gain, found.shift) for extent in each.shape[2:])

    def _transposed(self, x: str, perm: tuple[int, ...], shape: tuple[int, ...]) -> str:
        return x if perm == tuple(range(len(perm))) else self._add(OnnxTranspose({"perm": perm}), (x,), shape)

    def _channels(self, shape: tuple[int, ...], op: str, attributes: dict[str, object]) -> None:
        vectors = [np.broadcast_to(each.ravel(), shape[1]) for each in (self._found.gain, self._found.shift)]
        x = self._transposed(self._found.x, self._found.perm, shape)
        self._normalised(op, attributes | {"epsilon": self._found.epsilon}, x, vectors, shape)
        self.nodes[-1] = self.nodes[-1].with_(output=self._found.output)

    def _normalised(self, op: str, attributes: dict[str, object], x: str, vectors: list[np.ndarray],
                    shape: tuple[int, ...]) -> str:
        names = (f"{self._found.output}:gain", f"{self._found.output}:shift")[:1 + self._found.centred]
        self.constants |= {name: np.ascontiguousarray(each, np.float32)
                           for name, each in zip(names, vectors, strict=False)}
        return self._add(onnx_operator(op, attributes), (x, *names), shape)

    def _add(self, operator: OnnxOperator, inputs: tuple[str, ...], shape: tuple[int, ...]) -> str:
        name = f"{self._found.output}:normalised {len(self.nodes)}"
        self.nodes.append(Node(operator, inputs, name, self._names))
        self.tensors.append(Tensor(name, shape, "float32"))
        return name


def rebuilt(graph: Graph) -> list[tuple[TakenApart, Rebuilt]]:
    """Return the normalisations of a graph that were taken apart, each with what stands for it."""
    return [(each, Rebuilt(each, each.shape(graph))) for each in normalisations(graph)]


class RebuildNormalisations(Pass):
    """Replace what makes the result of each, and drop what nothing reads then.

    Where the variance is quantised on the way it becomes our own operator of the host core.
    """

    def apply(self, graph: Graph) -> Graph:
        graph = with_groups_in_float(graph)
        for found, new in rebuilt(graph):
            last = graph.producer(found.output)
            assert last is not None
            graph = graph.with_tensors(*new.tensors).with_constants(new.constants).replaced((last,), *new.nodes)
            graph = _without_unread(graph, {node.output for node in found.nodes})
        return with_quantised_variances(graph)


def _without_unread(graph: Graph, outputs: set[str]) -> Graph:
    """Return the graph without those of the nodes that write ``outputs`` whose result nothing reads."""
    return graph.without_unread(lambda node: node.output not in outputs)
