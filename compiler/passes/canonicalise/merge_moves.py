"""Merge chains of transposes and reshapes of integers into their net effect: none, or a permutation of channels.

Tensors lie as NHWC, so between (1, H, W, C) of a model's border and (1, C, H, W) no byte moves; nor does it when a
tensor is flattened in NHWC. A shuffle of channels (reshape, transpose, reshape) is an order of weights.
"""

import math

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import Dequantize, Quantize
from tilewright.compiler.graph.move_operators import IntegerMove, QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxMoving, OnnxTranspose, OnnxView
from tilewright.compiler.graph.permute_channels import permuted
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["MergeMoves"]

_MAX_ELEMENTS = 2**23


class MergeMoves(Pass):
    """Replace such chains by a QAlias, or by ``permuted``; others stay the host core's."""

    def apply(self, graph: Graph) -> Graph:
        for each in graph.nodes:
            node = graph.producer(each.output) if _is_move(graph, each) else None
            if node is None or not _is_move(graph, node):
                continue
            reader = graph.only_reader(node.output)
            if reader is not None and _is_move(graph, reader):
                continue
            chain = _chain(graph, node)
            source = graph.producer(chain[0].inputs[0])
            if source is not None and isinstance(source.operator, OnnxMoving) and graph.only_reader(source.output):
                continue    # a movement, too: the places of both together say more than a view of its copy
            graph = self._merged(graph, chain)
        return graph

    @staticmethod
    def _merged(graph: Graph, chain: list[Node]) -> Graph:
        x, y = graph.tensors[chain[0].inputs[0]], graph.tensors[chain[-1].output]
        if x.shape is None or y.shape is None or math.prod(x.shape) > _MAX_ELEMENTS:
            return graph
        names = tuple(name for node in chain for name in node.onnx_nodes)
        before = np.arange(math.prod(x.shape), dtype=np.int32).reshape(x.shape)
        after = before
        for node in chain:
            after = _moved(graph, node, after)
        if _can_be_placed(graph, x.name) and _can_be_placed(graph, y.name):
            for flat in _layouts(graph, x, y):
                if np.array_equal(_in_memory(before, x.name in flat), _in_memory(after, y.name in flat)):
                    return graph.replaced(chain, Node(QAlias(flat), (x.name,), y.name, names))
        if x.shape == y.shape and len(x.shape) == 4 and x.shape[0] == 1 and x.quantised:
            order = after[0, :, 0, 0] // math.prod(x.shape[2:])
            if np.array_equal(before[0, order], after[0]):
                return permuted(graph, chain, x.name, y.name, order, names)
        return graph


def _is_move(graph: Graph, node: Node) -> bool:
    return (isinstance(node.operator, OnnxView | OnnxTranspose) and node.inputs[0] in graph.tensors
            and graph.tensors[node.inputs[0]].dtype == "int8")


def _chain(graph: Graph, last: Node) -> list[Node]:
    chain = [last]
    while True:
        source = graph.producer(chain[-1].inputs[0])
        if source is None or not _is_move(graph, source) or graph.only_reader(source.output) is not chain[-1]:
            return chain[::-1]
        chain.append(source)


def _moved(graph: Graph, node: Node, array: np.ndarray) -> np.ndarray:
    if isinstance(node.operator, OnnxTranspose):
        return np.transpose(array, node.operator.perm)
    return array.reshape(graph.tensors[node.output].shape or ())


def _in_memory(array: np.ndarray, flat: bool) -> np.ndarray:
    """Return the elements in the order in which they lie in memory."""
    return array.transpose(0, 2, 3, 1).ravel() if array.ndim == 4 and array.shape[0] == 1 and not flat \
        else array.ravel()


def _layouts(graph: Graph, x: Tensor, y: Tensor) -> list[frozenset[str]]:
    """Return which of the two tensors may lie row by row: those of the border, that no layer looks at."""
    source = graph.producer(x.name)
    free_x = x.name not in graph.outputs and len(graph.readers(x.name)) == 1 and (
        source is None or isinstance(source.operator, Quantize))
    free_y = all(isinstance(reader.operator, Dequantize) for reader in graph.readers(y.name))
    return [frozenset(), *([frozenset({x.name})] if free_x else []), *([frozenset({y.name})] if free_y else [])]


def _can_be_placed(graph: Graph, name: str) -> bool:
    """Tell whether nothing else decides where a tensor lies: neighbours, or that it is a batch of images.

    A reader of the same bytes by another scale (`passes.recognise.reread_levels`) decides nothing.
    """
    shape = graph.tensors[name].shape or ()
    if len(shape) == 4 and shape[0] != 1:
        return False
    source = graph.producer(name)
    others = [node for node in graph.readers(name)
              if node.operator != QAlias() or graph.tensors[node.output].shape != shape]
    return not any(node is not None and isinstance(node.operator, IntegerMove | QAlias) for node in (source, *others))
