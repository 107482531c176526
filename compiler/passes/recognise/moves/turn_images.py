"""Turn an image of bytes first, then compute: ``T(Q((DQ(x) - m) / d))`` becomes ``Q((DQ(T(x)) - m') / d')``.

Cameras give NHWC, and constants per channel then lie along the last axis, where the datapath has no channels. Between
an input of the model and a tensor of the network the turn itself costs nothing. Padding turns with it.
"""

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import Quantize
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxArithmetic,
    OnnxClip,
    OnnxDequantizeLinear,
    OnnxPad,
    OnnxQuantizeLinear,
    OnnxRelu,
    OnnxTranspose,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.graph.scales import INTEGERS

__all__ = ["TurnImages"]

_TO_NCHW, _RANK = (0, 3, 1, 2), 4
_Elementwise = OnnxArithmetic | OnnxRelu | OnnxClip


class TurnImages(Pass):
    """Replace such a Transpose from NHWC to NCHW by one of the input itself."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, OnnxTranspose) and node.operator.perm == _TO_NCHW:
                chain = _chain(graph, node)
                if chain:
                    graph = _turned(graph, node, chain)
        return graph


def _chain(graph: Graph, transpose: Node) -> list[Node]:
    """Return what computes a Transpose's input of integers at the model's border, in order; none if it is else.

    These are an input of the model, or what quantises one.
    """
    chain: list[Node] = []
    name = transpose.inputs[0]
    while name not in graph.inputs:
        node = graph.producer(name)
        kinds = _Elementwise | OnnxDequantizeLinear | OnnxQuantizeLinear | OnnxPad
        if chain and node is not None and isinstance(node.operator, Quantize | OnnxQuantizeLinear) \
                and node.inputs[0] in graph.inputs:
            break
        if node is None or not isinstance(node.operator, kinds) or graph.only_reader(name) is None:
            return []
        moving = [each for each in node.inputs if each and not _is_constant(graph, each)]
        if len(moving) != 1 or len(graph.tensors[name].shape or ()) != _RANK:
            return []
        if isinstance(node.operator, OnnxPad) and not _has_constant_pads(graph, node):
            return []
        if not isinstance(node.operator, OnnxArithmetic | OnnxPad) and any(
                graph.constants[each].size != 1 for each in node.inputs if each in graph.constants):
            return []
        chain.insert(0, node)
        name = moving[0]
    of_bytes = graph.tensors[name].dtype in INTEGERS
    return chain if of_bytes and chain and isinstance(chain[0].operator, OnnxDequantizeLinear | OnnxPad) else []


def _is_constant(graph: Graph, name: str) -> bool:
    """Tell whether ``name`` is a constant, or dequantises one by a single scale."""
    node = graph.producer(name)
    if node is None or not isinstance(node.operator, OnnxDequantizeLinear):
        return name in graph.constants
    return graph.all_constant(node.inputs) and all(graph.constants[each].size == 1 for each in node.inputs[1:])


def _has_constant_pads(graph: Graph, node: Node) -> bool:
    """Tell whether a Pad states all its pads in a constant, an axis after the other."""
    return (1 < len(node.inputs) < 4 and graph.all_constant(node.inputs[1:])
            and graph.constants[node.inputs[1]].size == 2 * _RANK)


def _turned(graph: Graph, transpose: Node, chain: list[Node]) -> Graph:
    source = next(name for name in chain[0].inputs if name not in graph.constants)
    kind = graph.tensors[source]
    name = f"{transpose.output}:image"
    graph = graph.with_tensors(Tensor(name, _permuted(kind.shape or ()), kind.dtype))
    nodes = [transpose.with_(inputs=(source,), output=name)]
    before = source
    for node in chain:
        inputs = []
        for each in node.inputs:
            new = each
            if each == before:
                new = nodes[-1].output
            elif isinstance(node.operator, OnnxArithmetic):
                new = f"{each}:turned for {node.output}"
                graph, dequantise = _turned_operand(graph, each, new)
                nodes[-1:-1] = dequantise
            elif isinstance(node.operator, OnnxPad) and each == node.inputs[1]:
                new = f"{each}:turned for {node.output}"
                graph = graph.with_constants({new: graph.constants[each].reshape(2, _RANK)[:, _TO_NCHW].ravel()})
            inputs.append(new)
        output = transpose.output if node is chain[-1] else f"{node.output}:turned"
        old = graph.tensors[node.output]
        graph = graph.with_tensors(Tensor(output, _permuted(old.shape or ()), old.dtype))
        nodes.append(node.with_(inputs=tuple(inputs), output=output))
        before = node.output
    return graph.replaced((*chain, transpose), *nodes)


def _permuted(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(shape[axis] for axis in _TO_NCHW)


def _turned_operand(graph: Graph, name: str, new: str) -> tuple[Graph, list[Node]]:
    """Return ``graph`` with the constant ``name``, turned, as ``new``, and the nodes that dequantise it, if any do."""
    dequantise = graph.producer(name)
    if dequantise is None:
        return graph.with_constants({new: _turned_constant(graph.constants[name])}), []
    integers, source = f"{new}:integers", dequantise.inputs[0]
    turned = _turned_constant(graph.constants[source])
    graph = graph.with_constants({integers: turned}).with_tensors(
        Tensor(new, turned.shape, graph.tensors[name].dtype))
    return graph, [dequantise.with_(inputs=(integers, *dequantise.inputs[1:]), output=new)]


def _turned_constant(value: np.ndarray) -> np.ndarray:
    """Return a constant that broadcasts to NCHW as ``value`` does to NHWC."""
    full = value.reshape((1,) * (_RANK - value.ndim) + value.shape)
    return full.reshape(()) if value.size == 1 else np.ascontiguousarray(full.transpose(_TO_NCHW))
