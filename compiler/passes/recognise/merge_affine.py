"""Several products and sums with constants between quantisations become one: ``Q((DQ(x) - m) / d)``.

The one is a BatchNormalization whose statistics change nothing, γ x + β, which becomes a depthwise convolution 1x1 with
one rounding. Alone between floats, each of them would be the host core's.
"""

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxArithmetic,
    OnnxBatchNormalization,
    OnnxClip,
    OnnxDequantizeLinear,
    OnnxQuantizeLinear,
    OnnxRelu,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.passes.recognise.fold_affine import affine_of

__all__ = ["MergeAffine"]

_Affine = OnnxArithmetic | OnnxBatchNormalization


class MergeAffine(Pass):
    """Replace two or more such operators that alone read one another by one."""

    def apply(self, graph: Graph) -> Graph:
        for each in graph.nodes:
            node = graph.producer(each.output)
            if node is not None and node is each and isinstance(node.operator, _Affine):
                graph = _merged(graph, node)
        return graph


def _merged(graph: Graph, first: Node) -> Graph:
    """Return the graph with the chain that ``first`` begins as one operator, if it stands between quantisations."""
    found = affine_of(graph, first)
    if found is None:
        return graph
    x, factor, offset = found
    source = graph.producer(x)
    shape = graph.tensors[x].shape
    if source is None or not isinstance(source.operator, OnnxDequantizeLinear) or shape is None or len(shape) < 2:
        return graph
    chain, end = [first], graph.only_reader(first.output)
    while end is not None and isinstance(end.operator, _Affine):
        then = affine_of(graph, end)
        if then is None or then[0] != chain[-1].output:
            break
        factor, offset = factor * then[1], offset * then[1] + then[2]
        chain.append(end)
        end = graph.only_reader(end.output)
    behind = graph.only_reader(end.output) if end is not None and isinstance(end.operator, OnnxRelu | OnnxClip) else end
    if len(chain) < 2 or behind is None or not isinstance(behind.operator, OnnxQuantizeLinear) \
            or not (np.isfinite(factor).all() and np.isfinite(offset).all()):
        return graph
    return _as_one(graph, chain, factor, offset, shape[1])


def _as_one(graph: Graph, chain: list[Node], factor: np.ndarray, offset: np.ndarray, channels: int) -> Graph:
    name = chain[-1].output
    vectors = {"factor": factor, "offset": offset, "mean": np.zeros(1), "variance": np.ones(1)}
    constants = {f"{name}:{what}": np.broadcast_to(value, channels).astype(np.float32)
                 for what, value in vectors.items()}
    x = next(each for each in chain[0].inputs if each not in graph.constants)
    names = tuple(each for node in chain for each in node.onnx_nodes)
    new = Node(OnnxBatchNormalization({"epsilon": 0.0}), (x, *constants), name, names)
    tensors = [Tensor(each, value.shape, "float32") for each, value in constants.items()]
    return graph.with_tensors(*tensors).with_constants(constants).replaced(chain, new)
