"""Carry scales and zero points over operators that do not change them: ``QMaxPool``, ``QConcat``, ``Transpose`` …."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.core_operators import CoreIntegerSoftmax
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_nodes import moved_type
from tilewright.compiler.graph.integer_operators import QClamp, QInterpolate, QMaxPool
from tilewright.compiler.graph.move_operators import IntegerMove, QConcat, QReshape
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxConcat, OnnxMoving
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["SpreadQuantisation"]

_MOVING = QMaxPool | QClamp | QReshape | IntegerMove
"""Integer operators whose output is quantised as their input."""


class SpreadQuantisation(Pass):
    """Give input and output of such operators the quantisation of either, forwards and backwards.

    The integer form of ONNX states quantisation only where there is arithmetic.
    """

    def apply(self, graph: Graph) -> Graph:
        moves = [(source, node.output) for node in graph.nodes
                 if _moves(node) or isinstance(node.operator, OnnxMoving)
                 for source in (node.inputs if isinstance(node.operator, QConcat | OnnxConcat) else node.inputs[:1])
                 if source not in graph.constants and graph.tensors[node.output].dtype in quantisation.INTEGERS]
        graph = _spread(graph, moves)
        for node in graph.nodes:
            alone = node.inputs[:1] if _moves(node) else (
                node.inputs[0], node.output) if isinstance(node.operator, CoreIntegerSoftmax) else ()
            for name in alone:
                if not (tensor := graph.tensors[name]).quantised:
                    # Nothing tells what these integers stand for, so they stand for themselves.
                    graph = graph.with_tensors(replace(tensor, scale=np.float32(1), zero_point=0))
                    graph = _spread(graph, moves)
        return graph


def _moves(node: Node) -> bool:
    operator = node.operator
    return isinstance(operator, _MOVING) or (isinstance(operator, QInterpolate) and operator.direct)


def _spread(graph: Graph, moves: list[tuple[str, str]]) -> Graph:
    known = -1
    # What one part of a Split is read as tells what the others are: on the next way forwards.
    while known < (known := sum(tensor.quantised for tensor in graph.tensors.values())):
        for source, target in [*moves, *((b, a) for a, b in reversed(moves))]:
            if graph.tensors[source].quantised:
                graph = quantisation.with_types(graph, moved_type(graph, source, target))
    return graph
