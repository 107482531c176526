"""Quantise constants now, as ONNX Runtime folds them: ``QuantizeLinear`` of a constant becomes an integer constant.

The constant may be an integer one that is dequantised first, with another scale: a tensor that is quantised twice.
"""

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxDequantizeLinear, OnnxQuantizeLinear
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.passes.recognise.leave_to_core import dequantised

__all__ = ["FoldQuantize"]


class FoldQuantize(Pass):
    """Replace ``QuantizeLinear(w, scale, zero_point)`` by its value, all being constants, ``w`` dequantised or not."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if not isinstance(node.operator, OnnxQuantizeLinear):
                continue
            try:
                values = self._values(graph, node.inputs[0])
                if values is None:
                    continue
                folded = {node.output: self._quantise(graph, node, values, node.operator.axis)}
            except UnsupportedNodeError as error:
                graph = graph.replaced((node,), node.with_(reason=error.reason))
                continue
            graph = graph.with_constants(folded).removed(node)
        return graph

    @staticmethod
    def _values(graph: Graph, name: str) -> np.ndarray | None:
        """Return a constant, float as it is or dequantised from integers; None for what is no constant."""
        if name in graph.constants:
            return graph.constants[name]
        maker = graph.producer(name)
        if maker is None or not isinstance(maker.operator, OnnxDequantizeLinear) or maker.operator.block_size \
                or not graph.all_constant(each for each in maker.inputs if each):
            return None
        return dequantised(maker, maker.operator, graph.constants)

    @staticmethod
    def _quantise(graph: Graph, node: Node, values: np.ndarray, axis: int) -> np.ndarray:
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
