"""Move operators that treat channels separately before a concatenation: ``pool(concat(a, b))`` to its inputs.

Maxima and bounds commute with joining channels. Before the concatenation they may end the layers that compute a and b,
which then write less; behind it they are a layer of their own, which reads everything again.
"""

from dataclasses import dataclass, replace

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import Bounded, QClamp, QMaxPool
from tilewright.compiler.graph.move_operators import QConcat
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.passes.fuse.fuse_pool import takes_pool

__all__ = ["RaiseAboveConcat"]


@dataclass(frozen=True, slots=True)
class RaiseAboveConcat(Pass):
    """Replace ``op(QConcat(a, b, ...))`` by ``QConcat(op(a), op(b), ...)`` where a layer before it can take an ``op``.

    Attributes
    ----------
    moved : type
        Which operators move: QClamp, or QMaxPool, which follows the layers' other fusions.
    """

    moved: type[QClamp | QMaxPool]

    @property
    def name(self) -> str:
        return f"raise {self.moved.__name__} above concat"

    def apply(self, graph: Graph) -> Graph:
        pending = list(graph.nodes)
        while pending:
            node = pending.pop()
            if not isinstance(node.operator, self.moved):
                continue
            concat = graph.producer(node.inputs[0])
            if concat is not None and isinstance(concat.operator, QConcat) \
                    and graph.only_reader(concat.output) is node and self._pays(graph, concat, concat.operator, node):
                graph, parts = _raised(graph, concat, node)
                pending += parts  # concatenations may be nested
        return graph

    def _pays(self, graph: Graph, concat: Node, operator: QConcat, node: Node) -> bool:
        shapes = {len(graph.tensors[name].shape or ()) for name in concat.inputs}
        if isinstance(node.operator, QMaxPool) and (operator.axis != 0 or shapes != {4}):
            return False
        return any(self._takes(graph, name, concat) for name in concat.inputs)

    def _takes(self, graph: Graph, name: str, concat: Node) -> bool:
        source = graph.producer(name)
        if source is None or graph.only_reader(name) is not concat:
            return False
        return takes_pool(source) if self.moved is QMaxPool else isinstance(source.operator, Bounded)


def _raised(graph: Graph, concat: Node, node: Node) -> tuple[Graph, list[Node]]:
    after = graph.tensors[node.output]
    parts = []
    for index, name in enumerate(concat.inputs):
        before = graph.tensors[name].shape or ()
        shape = (*before[:2], *(after.shape or ())[2:]) if isinstance(node.operator, QMaxPool) else before
        part = replace(after, name=f"{node.output}:part{index}", shape=shape)
        graph = graph.with_tensors(part)
        parts.append(Node(node.operator, (name,), part.name, node.onnx_nodes))
    joined = concat.with_(inputs=tuple(part.output for part in parts), output=node.output)
    return graph.replaced((concat, node), *parts, joined), parts
