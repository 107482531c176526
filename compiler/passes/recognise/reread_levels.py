"""Levels that are read by another quantisation than they were written with become another tensor of the same bytes.

ONNX allows it: DequantizeLinear takes the integers as they are, whatever QuantizeLinear made them. A reader of a
foreign format uses it to give an operator numbers of its own (`compiler.tflite`).
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.move_nodes import OnnxMove
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxClip,
    OnnxDequantizeLinear,
    OnnxMaxPool,
    OnnxQuantizeLinear,
    OnnxRelu,
    OnnxView,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.graph.scales import INTEGERS

__all__ = ["RereadLevels"]

_Parameters = tuple[bytes, bytes, str]
_HandingOn = OnnxMove | OnnxView | OnnxMaxPool | OnnxClip | OnnxRelu
"""Operators whose results are of the levels that they read."""


class RereadLevels(Pass):
    """Put a QAlias between a tensor of levels and each DequantizeLinear of other parameters than its first ones."""

    def apply(self, graph: Graph) -> Graph:
        first: dict[str, _Parameters] = {}
        for node in graph.nodes:
            if isinstance(node.operator, OnnxQuantizeLinear) and (known := _parameters(graph, node)) is not None:
                first[node.output] = known
            elif isinstance(node.operator, _HandingOn) and node.inputs[0] in first:
                first[node.output] = first[node.inputs[0]]
        aliases: dict[tuple[str, _Parameters], str] = {}
        for node in graph.nodes:
            known = _parameters(graph, node) if isinstance(node.operator, OnnxDequantizeLinear) else None
            if known is None or first.setdefault(node.inputs[0], known) == known:
                continue
            key = node.inputs[0], known
            new: tuple[Node, ...] = ()
            if key not in aliases:
                name = aliases[key] = f"{node.inputs[0]}:read as of scale {len(aliases)}"
                graph = graph.with_tensors(replace(graph.tensors[node.inputs[0]], name=name, scale=None,
                                                   zero_point=None))
                new = (Node(QAlias(), (node.inputs[0],), name),)
            graph = graph.replaced((node,), *new, node.with_(inputs=(aliases[key], *node.inputs[1:])))
        return graph


def _parameters(graph: Graph, node: Node) -> _Parameters | None:
    """Return scale, zero point and type of levels that are computed and have one scale."""
    scale, zero = (graph.constants.get(name) for name in (*node.inputs, "")[1:3])
    levels = node.inputs[0] if isinstance(node.operator, OnnxDequantizeLinear) else node.output
    if scale is None or zero is None or scale.size != 1 or levels in graph.constants or zero.dtype.name not in INTEGERS:
        return None
    return np.ravel(scale).tobytes(), np.ravel(zero).tobytes(), zero.dtype.name
