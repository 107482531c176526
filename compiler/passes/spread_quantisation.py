"""Carry scales and zero points over operators that do not change them: ``QMaxPool``, ``QConcat``, ``Transpose`` …."""

from tilewright.compiler.graph import Graph
from tilewright.compiler.passes import quantisation
from tilewright.compiler.passes.base import Pass
from tilewright.compiler.passes.integer_ops import MOVING, PLACED, moved_type
from tilewright.compiler.passes.leave_to_core import MOVERS

_SPREADING = frozenset({*MOVING, *PLACED, *MOVERS})


class SpreadQuantisation(Pass):
    """Give input and output of such operators the quantisation of either, forwards and then backwards.

    The integer form of ONNX states quantisation only where there is arithmetic.
    """

    def apply(self, graph: Graph) -> Graph:
        moves = [(source, node.output) for node in graph.nodes if node.op in _SPREADING
                 for source in (node.inputs if node.op in ("QConcat", "Concat") else node.inputs[:1])
                 if graph.tensors[node.output].dtype in quantisation.INTEGERS]
        for source, target in [*moves, *((b, a) for a, b in reversed(moves))]:
            if graph.tensors[source].quantised:
                graph = quantisation.with_types(graph, moved_type(graph, source, target))
        return graph
