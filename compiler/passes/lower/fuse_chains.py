"""Operators that make floats of whole sums on the host core, element by element, become one loop.

``Relu(Add(Mul(Cast(sums), s), b))`` then loads each element once and stores it once: in main memory, that is what most
of the operators take longest for. Every step keeps its own rounding, so the values are the same.
"""

from dataclasses import dataclass

from tilewright.compiler.graph.core_operators import CoreChain
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import QConv
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxCast, OnnxOperator
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.kernels.levels.chain import MOST_STEPS, may_join
from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.compiler.passes.lower.build_core import core_layer, is_core

__all__ = ["FuseChains"]


class FuseChains(Pass):
    """Replace a Cast of whole sums, and operators behind it that alone read what lies between, by a CoreChain."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if not isinstance(node.operator, OnnxCast) or not _is_step(graph, node) or not _sums(graph, node.inputs[0]):
                continue
            steps = [node]
            while len(steps) < MOST_STEPS and (following := _following(graph, steps[-1])) is not None:
                steps.append(following)
            if len(steps) > 1:
                graph = graph.replaced(steps, _chain(graph, steps))
        return graph


@dataclass(frozen=True, slots=True)
class _ChainInputs:
    """Names of a chain's inputs, each once."""

    names: list[str]

    def position(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)


def _sums(graph: Graph, name: str) -> bool:
    """Tell whether a tensor is the whole sums of a product."""
    source = graph.producer(name)
    return source is not None and isinstance(source.operator, QConv) and source.operator.whole


def _is_step(graph: Graph, node: Node) -> bool:
    """Tell whether a node may be a step of a chain: all of its inputs are there, and its shape and type known."""
    tensor = graph.tensors.get(node.output)
    return (is_core(node) and isinstance(node.operator, OnnxOperator) and may_join(CORE_KERNELS.get(node.op))
            and all(node.inputs) and len(node.inputs) <= 2 and tensor is not None and bool(tensor.shape)
            and not tensor.quantised)


def _following(graph: Graph, node: Node) -> Node | None:
    """Return the step behind a step: it alone reads the result, once, and gives one of the same shape."""
    following = graph.only_reader(node.output)
    if following is None or not _is_step(graph, following):
        return None
    return following if graph.tensors[following.output].shape == graph.tensors[node.output].shape else None


def _chain(graph: Graph, steps: list[Node]) -> Node:
    """Return the node that stands for ``steps``."""
    use = _ChainInputs([])
    listed = []
    before = ""
    exact = True
    for step in steps:
        assert isinstance(step.operator, OnnxOperator)
        positions = [-1 if name == before else use.position(name) for name in step.inputs]
        attributes = [each for pair in step.operator.attributes.items() for each in pair]
        listed.append([step.op, positions, attributes])
        exact = exact and core_layer(graph, step, step.output).exact
        before = step.output
    names = tuple(dict.fromkeys(name for step in steps for name in step.onnx_nodes))
    return Node(CoreChain(attributes={"steps": listed}, exact=exact), tuple(use.names), steps[-1].output, names,
                steps[-1].reason)
