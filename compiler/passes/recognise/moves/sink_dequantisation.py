"""Move integers, and dequantise only the result: ``Transpose(DQ(x))`` becomes ``DQ(Transpose(x))``.

At the end of a model, where the host dequantises, nothing of it is the core's then. What quantises the result in the
same way gives the integers that were moved.
"""

from tilewright.compiler.errors import CompileError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.passes.recognise.equivalents.replacement import levels_of
from tilewright.compiler.passes.recognise.function_tables import same_parameters
from tilewright.compiler.passes.recognise.moves.float_movements import (
    elements,
    is_movement,
    is_undone,
    moved_inputs,
)

__all__ = ["SinkDequantisation"]


class SinkDequantisation(Pass):
    """Replace ``f(DQ(x), …)`` by ``DQ(f(x, …))`` where f moves, all have one scale, and the result is not more."""

    def apply(self, graph: Graph) -> Graph:
        changed = False
        for node in graph.nodes:
            sources = _dequantised(graph, node) if is_movement(graph, node) else []
            if sources and graph.tensors[node.output].shape is not None and _is_worth_it(graph, node):
                graph = _sunk(graph, node, sources)
                changed = True
        return graph.without_unread() if changed else graph


def _dequantised(graph: Graph, node: Node) -> list[Node]:
    """Return what dequantises the inputs of a movement, all in one way; none if something else is among it."""
    found: list[Node] = []
    for name in moved_inputs(node):
        source = levels_of(graph, name)
        if source is None or not same_parameters(graph, source.inputs[1:], (found or [source])[0].inputs[1:]):
            return []
        found.append(source)
    return found


def _is_worth_it(graph: Graph, node: Node) -> bool:
    """Tell whether no more is dequantised on the core than before."""
    before = sum(elements(graph, name) for name in moved_inputs(node))
    return node.output in graph.outputs or elements(graph, node.output) <= before or all(
        is_movement(graph, reader) for reader in graph.readers(node.output))


def _sunk(graph: Graph, node: Node, sources: list[Node]) -> Graph:
    first = sources[0]
    try:
        kind = quantisation.activation(graph, first, first.inputs[0], first.inputs[1], (*first.inputs, "")[2])
    except CompileError:
        return graph
    inner = Tensor(f"{node.output}:integer", graph.tensors[node.output].shape, kind.dtype, kind.scale, kind.zero_point)
    inputs = (*(source.inputs[0] for source in sources), *node.inputs[len(sources):])
    after = Node(first.operator, (inner.name, *first.inputs[1:]), node.output)
    graph = graph.with_tensors(inner).replaced((node,), node.with_(inputs=inputs, output=inner.name), after)
    for reader in graph.readers(node.output):
        if is_undone(graph, reader, after):
            graph = graph.removed(reader).replace_all_uses(reader.output, inner.name)
    return graph
