"""Quantise between operators that neither round nor add: ``Q(MaxPool(Relu(DQ(x))))`` gets ``DQ(Q(·))`` in the middle.

All of them are monotonic and so is quantisation, hence they commute: with the scale and zero point of x, quantising
earlier changes nothing. The integer form of onnxruntime.quantization leaves such chains in float where
activations are symmetric, with what follows them: ``Q(AveragePool(Relu(DQ(x))))``. There too the ReLU gives what x can
be, but ONNX Runtime computes in float, and the operator is marked (``rounded``).
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxAveragePool,
    OnnxClip,
    OnnxConv,
    OnnxDequantizeLinear,
    OnnxGemm,
    OnnxGlobalAveragePool,
    OnnxGlobalMaxPool,
    OnnxMatMul,
    OnnxMaxPool,
    OnnxQuantizeLinear,
    OnnxReduceMean,
    OnnxRelu,
    OnnxView,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.passes.recognise.function_tables import same_parameters

__all__ = ["QuantiseBetween"]

_Exact = OnnxMaxPool | OnnxRelu | OnnxClip | OnnxView
_Largest = OnnxMaxPool | OnnxGlobalMaxPool
_WithoutBounds = OnnxMaxPool | OnnxRelu | OnnxView
_Computing = (OnnxConv | OnnxGemm | OnnxMatMul | OnnxAdd | OnnxAveragePool | OnnxGlobalAveragePool | OnnxReduceMean)


_LEVELS, _NEAR = 256, 1e-4


class QuantiseBetween(Pass):
    """Replace ``g(f(DQ(x)))`` by ``g(DQ(Q(f(DQ(x)))))`` where f and g are exact and g alone reads f.

    And where g computes, and f is no clip; and likewise behind what computes, ``Q(f(g(x)))`` by ``Q(f(DQ(Q(g(x)))))``.
    """

    def apply(self, graph: Graph) -> Graph:
        for output in [node.output for node in graph.nodes if isinstance(node.operator, _Largest)]:
            graph = _kept_levels(graph, output)
        for output in [node.output for node in graph.nodes if isinstance(node.operator, _Exact)]:
            graph = _quantised_before(graph, output)
        for output in [node.output for node in graph.nodes if isinstance(node.operator, _Computing)]:
            graph = _quantised_behind(graph, output)
        return graph


def _kept_levels(graph: Graph, output: str) -> Graph:
    """Return ``graph`` with the greatest of levels, which are levels, quantised as they are, whatever reads them.

    So is a pooling in float that two operators read, or one that quantises it in another way.
    """
    node = graph.producer(output)
    source = None if node is None else _levels_of(graph, node.inputs[0])
    readers = graph.readers(output)
    if node is None or source is None or not readers or _is_taken(graph, source, readers):
        return graph
    real, integer = f"{output}:greatest", f"{output}:levels"
    known = graph.tensors[output]
    graph = graph.with_tensors(replace(known, name=real),
                               Tensor(integer, known.shape, graph.tensors[source.inputs[0]].dtype))
    quantise = Node(OnnxQuantizeLinear(), (real, *source.inputs[1:]), integer)
    dequantise = Node(OnnxDequantizeLinear(), (integer, *source.inputs[1:]), output)
    return graph.replaced((node,), node.with_(output=real), quantise, dequantise)


def _levels_of(graph: Graph, name: str) -> Node | None:
    """Return the DequantizeLinear of computed integers, one scale for all, that makes ``name``; None for others."""
    source = graph.producer(name)
    if source is None or not isinstance(source.operator, OnnxDequantizeLinear) or source.operator.block_size \
            or source.inputs[0] in graph.constants:
        return None
    scalar = all(each in graph.constants and graph.constants[each].size == 1 for each in source.inputs[1:] if each)
    return source if scalar else None


def _is_taken(graph: Graph, source: Node, readers: tuple[Node, ...]) -> bool:
    """Tell whether what reads a pooling of levels makes it one of integers by itself."""
    if len(readers) != 1:
        return False
    (reader,) = readers
    if isinstance(reader.operator, OnnxQuantizeLinear):
        return same_parameters(graph, source.inputs[1:], reader.inputs[1:])
    return isinstance(reader.operator, _Exact | _Computing)


def _quantised_before(graph: Graph, output: str) -> Graph:
    """Return ``graph`` with the result of an exact operator quantised like its input."""
    node, reader = graph.producer(output), graph.only_reader(output)
    source = graph.producer(node.inputs[0]) if node is not None else None
    if node is None or source is None or not isinstance(source.operator, OnnxDequantizeLinear) or reader is None \
            or source.inputs[0] in graph.constants or output not in reader.inputs[:2]:
        return graph
    if isinstance(reader.operator, _Exact) and reader.inputs[0] == output \
            and (_keeps_levels(graph, source, node) or _ends_like(graph, source, _chain(graph, node)[-1])):
        return _bridged(graph, source, node, reader, reader)
    if isinstance(reader.operator, _Computing) and isinstance(node.operator, _WithoutBounds):
        return _bridged(graph, source, node, reader, reader.with_operator(rounded=True))
    return graph


def _keeps_levels(graph: Graph, dequantise: Node, node: Node) -> bool:
    """Tell whether a node makes only numbers of ``dequantise`` that are levels: a Clip must have such bounds."""
    operator = node.operator
    if not isinstance(operator, OnnxClip):
        return True
    bounds = [graph.constants.get(name) for name in node.inputs[1:] if name]
    scale = graph.constants.get(dequantise.inputs[1])
    if scale is None or scale.size != 1 or any(bound is None for bound in bounds):
        return False
    stated = [*bounds, *(each for each in (operator.min, operator.max) if each is not None)]
    levels = np.array([np.float32(bound).item() for bound in stated]) / scale.item()
    # Beyond all levels of 8 bits, a bound does nothing.
    return bool(np.all((np.abs(levels) > _LEVELS) | (np.abs(levels - np.rint(levels)) < _NEAR)))


def _ends_like(graph: Graph, dequantise: Node, end: Node) -> bool:
    """Tell whether ``end`` quantises as ``dequantise`` was, so that a bound between two levels is rounded anyway.

    To all else half a level may be many: a function of one tensor, or weights that multiply it.
    """
    return isinstance(end.operator, OnnxQuantizeLinear) and same_parameters(
        graph, dequantise.inputs[1:], end.inputs[1:])


def _quantised_behind(graph: Graph, output: str) -> Graph:
    """Return ``graph`` with the result of what computes quantised at once, if only exact operators follow it."""
    node = graph.producer(output)
    assert node is not None
    chain = _chain(graph, node)
    # A clamp right behind what computes is part of that.
    end = 1 if chain and isinstance(chain[0].operator, OnnxRelu | OnnxClip) else 0
    if len(chain) <= end + 1 or not isinstance(chain[-1].operator, OnnxQuantizeLinear):
        return graph
    marked = node.with_operator(rounded=True)
    graph = graph.replaced((node,), marked)
    return _bridged(graph, chain[-1], chain[0] if end else marked, chain[end], chain[end])


def _chain(graph: Graph, node: Node) -> list[Node]:
    """Return the exact operators behind ``node`` that alone read one another, and what reads the last of them."""
    chain: list[Node] = []
    while (reader := graph.only_reader(node.output)) is not None and reader.inputs[0] == node.output:
        chain.append(reader)
        if not isinstance(reader.operator, _Exact):
            break
        node = reader
    return chain


def _bridged(graph: Graph, source: Node, first: Node, second: Node, new: Node) -> Graph:
    """Return ``graph`` with the quantisation that ``source`` undoes between two nodes, and ``new`` for the second."""
    integer, real = f"{first.output}:integer", f"{first.output}:real"
    quantise = Node(OnnxQuantizeLinear(), (first.output, *source.inputs[1:]), integer)
    dequantise = Node(OnnxDequantizeLinear(), (integer, *source.inputs[1:]), real)
    reading = new.with_(inputs=tuple(real if name == first.output else name for name in new.inputs))
    quantised = source.output if isinstance(source.operator, OnnxQuantizeLinear) else source.inputs[0]
    shape, dtype = graph.tensors[first.output].shape, graph.tensors[quantised].dtype
    graph = graph.with_tensors(Tensor(integer, shape, dtype), Tensor(real, shape, "float32"))
    return graph.replaced((second,), quantise, dequantise, reading)
