"""Quantise constants now: ``QuantizeLinear(constant)`` becomes an integer constant, as ONNX Runtime folds it."""

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxQuantizeLinear
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["FoldQuantize"]


class FoldQuantize(Pass):
    """Replace ``QuantizeLinear(w, scale, zero_point)`` by its value where all three are constants."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, OnnxQuantizeLinear) and node.inputs[0] in graph.constants:
                try:
                    folded = {node.output: self._quantise(graph, node, node.operator.axis)}
                except UnsupportedNodeError as error:
                    graph = graph.replaced((node,), node.with_(reason=error.reason))
                    continue
                graph = graph.with_constants(folded).removed(node)
        return graph

    @staticmethod
    def _quantise(graph: Graph, node: Node, axis: int) -> np.ndarray:
        values = graph.constants[node.inputs[0]]
        scale = quantisation.scales(graph, node, node.inputs[1])
        zero = quantisation.zero_points(graph, node, "".join(node.inputs[2:]), scale.size,
                                        graph.tensors[node.output].dtype)
        shape = [1] * values.ndim
        if zero.dtype.name not in quantisation.INTEGERS or (scale.size > 1 and scale.size != values.shape[axis]):
            raise UnsupportedNodeError(node.name, node.op, "it quantises neither per tensor nor per channel",
                                       "quantise the weights when the model is written")
        if scale.size > 1:
            shape[axis] = -1
        bounds = np.iinfo(zero.dtype)
        levels = np.rint(values / scale.reshape(shape)) + zero.reshape(shape)
        return np.clip(levels, bounds.min, bounds.max).astype(zero.dtype)
