"""The order of nodes is that in which the outputs need them, whatever order the file has.

Layers are executed, chained and put into bands in the order of the graph's nodes, so that the same network in another
order would take other cycles. The order here follows from the structure alone, not from names: depth first from the
first output to the last, and from each node's last input to its first. So the first input, which a layer may find on
chip, is computed just before it, and a residual before that.
"""

from collections.abc import Iterator

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass, PassError

__all__ = ["OrderNodes"]


class OrderNodes(Pass):
    """Put each node behind those that compute its inputs, and these where the outputs need them first."""

    def apply(self, graph: Graph) -> Graph:
        needed = list(_as_needed(graph, graph.outputs))
        if len(needed) < len(graph.nodes):
            # What no output needs stands last: its nodes are told apart by what they read and by their order alone.
            known = {node.output for node in needed}
            rest = [node.output for node in graph.nodes if node.output not in known]
            needed = list(_as_needed(graph, (*graph.outputs, *rest)))
        if all(before is after for before, after in zip(graph.nodes, needed, strict=True)):
            return graph
        return graph.with_(nodes=tuple(needed))

    def ensures(self, graph: Graph) -> None:
        known: set[str] = set()
        for node in graph.nodes:
            for name in node.inputs:
                if name not in known and graph.producer(name) is not None:
                    raise PassError(f"Node {node.name!r} must come after the one that computes its input {name!r}")
            known.add(node.output)


def _as_needed(graph: Graph, ends: tuple[str, ...]) -> Iterator[Node]:
    """Yield the nodes that ``ends`` need, each once, behind those that it needs itself."""
    done: set[str] = set()
    for end in ends:
        waiting = [(end, iter(_inputs(graph, end)))]
        while waiting:
            name, inputs = waiting[-1]
            following = next((each for each in inputs if each not in done), None)
            if following is not None:
                waiting.append((following, iter(_inputs(graph, following))))
                continue
            waiting.pop()
            node = graph.producer(name)
            if node is not None and name not in done:
                yield node
            done.add(name)


def _inputs(graph: Graph, name: str) -> tuple[str, ...]:
    node = graph.producer(name)
    return () if node is None else node.inputs[::-1]
