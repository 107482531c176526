"""The ONNX operators that only move elements, what they move, and Q behind DQ that does nothing."""

import math

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxConcat,
    OnnxDepthToSpace,
    OnnxDequantizeLinear,
    OnnxExpand,
    OnnxGather,
    OnnxQuantizeLinear,
    OnnxSlice,
    OnnxSpaceToDepth,
    OnnxTile,
    OnnxTranspose,
    OnnxView,
)
from tilewright.compiler.passes.recognise.function_tables import same_parameters

__all__ = ["elements", "is_movement", "is_undone", "moved_inputs", "one_scale"]

_Moving = (OnnxConcat | OnnxDepthToSpace | OnnxExpand | OnnxGather | OnnxSlice | OnnxSpaceToDepth | OnnxTile
           | OnnxTranspose | OnnxView)


def is_movement(graph: Graph, node: Node) -> bool:
    """Tell whether ``node`` gives each element as it is, to places that do not depend on what the model is given."""
    data = moved_inputs(node)
    return isinstance(node.operator, _Moving) and graph.all_constant(
        name for name in node.inputs if name not in data) and not any(name in graph.constants for name in data)


def moved_inputs(node: Node) -> tuple[str, ...]:
    """Return the tensors that a movement moves."""
    return node.inputs if isinstance(node.operator, OnnxConcat) else node.inputs[:1]


def is_undone(graph: Graph, node: Node, dequantise: Node) -> bool:
    """Tell whether a node makes the integers again that a DequantizeLinear before it reads, none of them an output."""
    return isinstance(node.operator, OnnxQuantizeLinear) and isinstance(dequantise.operator, OnnxDequantizeLinear) \
        and node.output not in graph.outputs and same_parameters(graph, dequantise.inputs[1:], node.inputs[1:])


def one_scale(graph: Graph, node: Node) -> bool:
    """Tell whether a QuantizeLinear has constants for scale and zero point, one of each."""
    names = [name for name in node.inputs[1:] if name]
    return bool(names) and all(name in graph.constants and graph.constants[name].size == 1 for name in names)


def elements(graph: Graph, name: str) -> int:
    """Return how many elements a tensor has; 0 if nothing tells."""
    shape = graph.tensors[name].shape
    return 0 if shape is None else math.prod(shape)
