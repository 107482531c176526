"""Normalisations that were taken apart are put together in a float model, so that only their result is quantised."""

import onnx
from onnx import NodeProto, helper, numpy_helper

from tilewright.compiler.errors import CompileError
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxOperator
from tilewright.compiler.onnx.reader import load
from tilewright.compiler.passes.recognise.normalisations.rebuild import Rebuilt, rebuilt
from tilewright.compiler.passes.recognise.normalisations.taken_apart import TakenApart

__all__ = ["found_apart", "opset_of", "put_together"]

_LAYER_OPSET, _ROOT_OPSET = 17, 23
"""From which on ONNX has LayerNormalization and RMSNormalization."""


def opset_of(found: list[tuple[TakenApart, Rebuilt]]) -> int:
    """Return the first opset that has them all."""
    return _LAYER_OPSET if all(apart.centred for apart, _ in found) else _ROOT_OPSET


def found_apart(proto: onnx.ModelProto) -> list[tuple[TakenApart, Rebuilt]]:
    """Return the normalisations in a clean model that were taken apart, each with what stands for it.

    There are none in one that the compiler's reader refuses: compiling it is what tells why.
    """
    kinds = {node.op_type for node in proto.graph.node}
    centred = kinds & {"ReduceMean", "GlobalAveragePool"} and kinds & {"Sqrt", "Pow"}
    lengths = kinds & {"ReduceSum", "ReduceSumSquare"} and kinds & {"Sqrt", "Pow"}
    if not (centred or lengths or kinds & {"ReduceL2", "LpNormalization"}):
        return []
    try:
        return rebuilt(load(proto.SerializeToString()))
    except CompileError:
        return []


def put_together(graph: onnx.GraphProto, found: list[tuple[TakenApart, Rebuilt]]) -> None:
    """Put each into a graph of :func:`opset_of` them or a newer one, in place, where its result was made."""
    made = {name for node in graph.node for name in node.output} | {value.name for value in graph.input}
    for apart, new in found:
        if {apart.x, apart.output} <= made:
            _replace(graph, apart, new)


def _replace(graph: onnx.GraphProto, apart: TakenApart, new: Rebuilt) -> None:
    place = next(index for index, node in enumerate(graph.node) if apart.output in node.output)
    nodes = list(graph.node)
    nodes[place:place + 1] = [_proto(node) for node in new.nodes]
    inside, outputs = {node.output for node in apart.nodes}, {value.name for value in graph.output}
    read = {name for node in nodes for name in node.input} | outputs
    while dead := [node for node in nodes if set(node.output) <= inside and not set(node.output) & read]:
        nodes = [node for node in nodes if node not in dead]
        read = {name for node in nodes for name in node.input} | outputs
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in new.constants.items())


def _proto(node: Node) -> NodeProto:
    assert isinstance(node.operator, OnnxOperator)
    return helper.make_node(node.op, node.inputs, [node.output], name=f"{node.name}_{node.output}",
                            **node.operator.attributes)
