"""A softmax in whole numbers, operator by operator, becomes one of the host core's."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.compiler.graph.core_operators import CoreIntegerSoftmax
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxCast, OnnxQuantizeLinear
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.kernels.levels.softmax.softmax_steps import integer_softmax

__all__ = ["FuseSoftmax"]

_LEAST = -128


class FuseSoftmax(Pass):
    """Replace what `kernels.levels.softmax.softmax_steps` puts, up to the levels, by one operator."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, OnnxQuantizeLinear):
                graph = _fused(graph, node)
        return graph


def _fused(graph: Graph, quantise: Node) -> Graph:
    cast = graph.producer(quantise.inputs[0])
    scale, zero = (graph.constants.get(name) for name in (*quantise.inputs[1:], "")[:2])
    if cast is None or not isinstance(cast.operator, OnnxCast) or scale is None or zero is None \
            or scale.size != 1 or zero.size != 1 or float(scale.reshape(())) != 1 or int(zero.reshape(())) != _LEAST \
            or zero.dtype != "int8":
        return graph
    found = _softmax_before(graph, cast.inputs[0])
    if found is None or graph.tensors[found.x].dtype != "int8":
        return graph
    nodes = (*found.nodes, cast, quantise)
    inner = {node.output for node in nodes[:-1]}
    if any(reader not in nodes for name in inner for reader in graph.readers(name)):
        return graph
    names = tuple(dict.fromkeys(name for node in nodes for name in node.onnx_nodes))
    operator = CoreIntegerSoftmax(attributes={"axis": found.axis, "terms": found.terms.tolist()})
    return graph.replaced(nodes, Node(operator, (found.x,), quantise.output, names, quantise.reason))


@dataclass(frozen=True, slots=True)
class _Found:
    """A softmax in a graph: its nodes, the levels that it reads, its axis and its terms, int64 of (256,)."""

    nodes: tuple[Node, ...]
    x: str
    axis: int
    terms: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class _Template:
    op: str
    inputs: tuple[Any, ...]


_X, _TERMS = "x", "terms"
_RESULT: _Template = integer_softmax(lambda op, *inputs: _Template(op, inputs), _X, _TERMS)


class _Match:
    """The tensors that stand for the template's, and their nodes, as far as a graph has been found to have them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names: dict[Any, str] = {}
        self.nodes: dict[str, Node] = {}

    def holds(self, step: Any, name: str) -> bool:
        """Tell whether a tensor is what a step of the template gives."""
        if isinstance(step, int):
            value = self.graph.constants.get(name)
            return value is not None and value.size == 1 and value.dtype == np.int64 and int(value.reshape(())) == step
        if self.names.setdefault(step, name) != name:
            return False
        if step in (_X, _TERMS) or name in self.nodes:
            return True
        node = self.graph.producer(name)
        if node is None or node.op != step.op or len(node.inputs) < len(step.inputs):
            return False
        self.nodes[name] = node
        return self.graph.tensors[name].dtype in ("int64", "bool") and all(
            self.holds(before, given) for before, given in zip(step.inputs, node.inputs, strict=False))


def _softmax_before(graph: Graph, name: str) -> _Found | None:
    """Return the softmax whose result a tensor is; None if it is anything else."""
    match = _Match(graph)
    names, nodes = match.names, match.nodes
    if not match.holds(_RESULT, name):
        return None
    shape, terms = graph.tensors[names[_X]].shape, graph.constants.get(names[_TERMS])
    rows = {graph.tensors[each.output].shape for each in nodes.values() if each.op.startswith("Reduce")}
    if shape is None or terms is None or terms.shape != (256,) or terms.dtype != np.int64 or len(rows) != 1:
        return None
    (row,) = rows
    along = [axis for axis, extent in enumerate(shape) if row is not None and len(row) == len(shape)
             and row == (*shape[:axis], 1, *shape[axis + 1:])]
    return _Found(tuple(nodes.values()), names[_X], along[-1], terms) if along else None
