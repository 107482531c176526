"""Normalisations that were taken apart and whose variance is quantised on the way become an operator of the host core.

ONNX Runtime's quantiser does so: it takes the sum with epsilon, and leaves means and quotients in float,

    Q((x - mean(x)) / √DQ(Q(DQ(Q(mean((x - mean(x))²))) + epsilon)))

What is computed of the variance's level is a function of 256 values, which ONNX Runtime tells. A variance that is half
way between two levels may be rounded otherwise than by ONNX Runtime, which adds its floats up in another order.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.errors import CompileError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.core_operators import CoreNormalisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxBinary,
    OnnxDequantizeLinear,
    OnnxDiv,
    OnnxMul,
    OnnxQuantizeLinear,
    OnnxTranspose,
    OnnxUnary,
)
from tilewright.compiler.graph.value_tables import TableError, table_of
from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.compiler.passes.recognise.equivalents.replacement import levels_of
from tilewright.compiler.passes.recognise.normalisations.statistics import RowStatistics, centred, operands, variance
from tilewright.isa.program import Call, Operand

__all__ = ["levels_of_variances", "with_quantised_variances"]

_BYTES = ("int8", "uint8")


@dataclass(frozen=True, slots=True)
class _Quantised:
    """A normalisation: the rows that it reads, the nodes at its ends, and those that compute of its variance."""

    rows: RowStatistics
    source: Node
    quotient: Node
    quantise: Node
    first: Node
    chain: tuple[Node, ...]
    by: str


def with_quantised_variances(graph: Graph) -> Graph:
    """Return the graph with each of them as one operator, where its kernel takes it."""
    for output in [node.output for node in graph.nodes if isinstance(node.operator, OnnxDiv | OnnxMul)]:
        node = graph.producer(output)
        for found in _found(graph, node) if node is not None else ():
            try:
                graph = _replaced(graph, found)
            except (CompileError, TableError):
                continue
            break
    return graph


def levels_of_variances(graph: Graph) -> set[str]:
    """Return what is quantised on the way from the variances of normalisations to their quotients."""
    found = [each for node in graph.nodes if isinstance(node.operator, OnnxDiv | OnnxMul)
             for each in _found(graph, node)]
    return {node.output for each in found for node in (each.first, *each.chain)
            if isinstance(node.operator, OnnxQuantizeLinear)}


def _found(graph: Graph, node: Node) -> Iterator[_Quantised]:
    """Yield how a product or quotient normalises levels, if it does."""
    quantise = graph.only_reader(node.output)
    if quantise is None or not isinstance(quantise.operator, OnnxQuantizeLinear):
        return
    for difference, by in operands(node, OnnxDiv, OnnxMul):
        rows = centred(graph, difference)
        source = levels_of(graph, rows.x) if rows is not None else None
        chain = _chain(graph, by)
        if rows is None or source is None or not chain:
            continue
        of = variance(graph, chain[0].inputs[0])
        if of is not None and rows.of_same(of) and of.factor == 1:
            yield _Quantised(rows, source, node, quantise, chain[0], chain[1:], by)


def _chain(graph: Graph, name: str) -> tuple[Node, ...]:
    """Return the nodes that compute a tensor of one other and constants, from the QuantizeLinear of that one on."""
    chain: list[Node] = []
    while (node := graph.producer(name)) is not None:
        if not isinstance(node.operator, OnnxUnary | OnnxBinary | OnnxQuantizeLinear | OnnxDequantizeLinear):
            return ()
        computed = []
        for each in node.inputs:
            constant = graph.producer(each)
            if constant is not None and isinstance(constant.operator, OnnxDequantizeLinear) \
                    and graph.all_constant(constant.inputs):
                chain.append(constant)
            elif each not in graph.constants and each:
                computed.append(each)
        chain.append(node)
        if len(computed) != 1:
            return ()
        (name,) = computed
        if isinstance(node.operator, OnnxQuantizeLinear) and variance(graph, name) is not None:
            rest = chain[-2::-1]
            # Constants come before what reads them.
            return node, *sorted(rest, key=lambda each: not graph.all_constant(each.inputs))
    return ()


def _replaced(graph: Graph, found: _Quantised) -> Graph:
    rows, first = found.rows, found.first
    x = _type(graph, found.source, found.source.inputs[0])
    y = _type(graph, found.quantise, found.quantise.output)
    level = _type(graph, first, first.output)
    shape, extent = graph.tensors[rows.x].shape, graph.tensors[first.output].shape
    if shape is None or extent is None or not all(each.dtype in _BYTES for each in (x, y, level)):
        raise TableError("Tensors must have shapes, and bytes as elements")
    values = table_of(found.chain, first.output, level.dtype, max(2, len(extent)), found.by, "float32",
                      graph.constants, graph.opset)
    with np.errstate(divide="ignore"):
        factors = 1 / values.astype(np.float64) if isinstance(found.quotient.operator, OnnxDiv) else values
    # No variance is negative: what a root makes of levels below the zero point, as symmetric ones have, never counts.
    below = np.arange(len(factors)) + np.iinfo(level.dtype).min < level.parameters[1]
    factors = np.where(below, 0.0, factors)
    kept = tuple(axis for axis in range(len(shape)) if axis not in rows.axes)
    order = (*kept, *sorted(rows.axes))
    moved = tuple(shape[axis] for axis in order)
    count = int(np.prod(moved[len(kept):]))
    attributes = {
        "kind": "LayerNormalization", "axis": len(kept) - len(shape), "scale_value": float(x.parameters[0]),
        "y_scale": float(y.parameters[0]), "y_zero_point": y.parameters[1], "gains": [1.0] * count,
        "shifts": [0.0] * count, "factors": np.abs(factors).tolist(), "variance_scale": float(level.parameters[0]),
        "variance_zero_point": level.parameters[1], "variance_dtype": level.dtype}
    call = Call("NormalisationOfLevels", (Operand(0, x.dtype, moved, ()),), Operand(0, y.dtype, moved, ()), attributes)
    if CORE_KERNELS[call.kernel].refusal(call) is not None:
        raise TableError("The kernel does not take it")
    inside = _between(graph, found.quotient.output, found.source.output)
    names = tuple(name for node in graph.in_order(inside) for name in node.onnx_nodes
                  if not graph.all_constant(node.inputs))
    nodes, name = [], x.name
    if order != tuple(range(len(shape))):
        name = f"{y.name}:moved"
        graph = graph.with_tensors(Tensor(name, moved, x.dtype))
        nodes.append(Node(OnnxTranspose({"perm": order}), (x.name,), name, names))
    back = tuple(order.index(axis) for axis in rows.perm)
    straight = back == tuple(range(len(shape)))
    made = y.name if straight else f"{y.name}:normalised"
    graph = graph.with_tensors(Tensor(made, moved, y.dtype)) if not straight else graph
    nodes.append(Node(CoreNormalisation(attributes=attributes, exact=False), (name,), made, names))
    if not straight:
        nodes.append(Node(OnnxTranspose({"perm": back}), (made,), y.name, names))
    graph = graph.replaced((found.quotient, found.quantise), *nodes)
    return graph.without_unread(lambda node: node.output not in inside)


def _type(graph: Graph, node: Node, tensor: str) -> Tensor:
    """Return the type of the integers that a QuantizeLinear writes or a DequantizeLinear reads."""
    return quantisation.activation(graph, node, tensor, *(*node.inputs[1:], "")[:2])


def _between(graph: Graph, last: str, source: str) -> set[str]:
    """Return what is computed on the way from ``source`` to ``last``."""
    inside, waiting = set(), [last]
    while waiting:
        name = waiting.pop()
        node = graph.producer(name)
        if name not in inside and name != source and node is not None:
            inside.add(name)
            waiting += node.inputs
    return inside
