"""Carry scales and zero points over operators that do not change them: ``QMaxPool``, ``QConcat``, ``Transpose`` …."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_ops import MOVING, PLACED, moved_type
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.passes.recognise.leave_to_core import MOVERS

_SPREADING = frozenset({*MOVING, *PLACED, *MOVERS})


class SpreadQuantisation(Pass):
    """Give input and output of such operators the quantisation of either, forwards and backwards.

    The integer form of ONNX states quantisation only where there is arithmetic.
    """

    def apply(self, graph: Graph) -> Graph:
        moves = [(source, node.output) for node in graph.nodes if node.op in _SPREADING
                 for source in (node.inputs if node.op in ("QConcat", "Concat") else node.inputs[:1])
                 if graph.tensors[node.output].dtype in quantisation.INTEGERS]
        graph = _spread(graph, moves)
        for node in [node for node in graph.nodes if node.op in (*MOVING, *PLACED)]:
            if not (tensor := graph.tensors[node.inputs[0]]).quantised:
                # Nothing tells what these integers stand for, so they stand for themselves.
                graph = graph.with_(tensors={
                    **graph.tensors, tensor.name: replace(tensor, scale=np.float32(1), zero_point=0)})
                graph = _spread(graph, moves)
        return graph


def _spread(graph: Graph, moves: list[tuple[str, str]]) -> Graph:
    known = -1
    # What one part of a Split is read as tells what the others are: on the next way forwards.
    while known < (known := sum(tensor.quantised for tensor in graph.tensors.values())):
        for source, target in [*moves, *((b, a) for a, b in reversed(moves))]:
            if graph.tensors[source].quantised:
                graph = quantisation.with_types(graph, moved_type(graph, source, target))
    return graph
