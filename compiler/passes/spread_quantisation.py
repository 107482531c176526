"""Carry scales and zero points over operators that do not change them: ``QMaxPool``, ``QClamp``, ``QReshape``."""

from tilewright.compiler.graph import Graph
from tilewright.compiler.passes import quantisation
from tilewright.compiler.passes.base import Pass
from tilewright.compiler.passes.integer_ops import MOVING, moved_type


class SpreadQuantisation(Pass):
    """Give input and output of such operators the quantisation of either, forwards and then backwards.

    The integer form of ONNX states quantisation only where there is arithmetic.
    """

    def apply(self, graph: Graph) -> Graph:
        moves = [(node.inputs[0], node.output) for node in graph.nodes if node.op in MOVING]
        for source, target in [*moves, *((b, a) for a, b in reversed(moves))]:
            if graph.tensors[source].quantised:
                graph = quantisation.with_types(graph, moved_type(graph, source, target))
        return graph
