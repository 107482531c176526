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
    OnnxConcat,
    OnnxDequantizeLinear,
    OnnxMaxPool,
    OnnxMoving,
    OnnxQuantizeLinear,
    OnnxRelu,
    OnnxView,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.graph.scales import INTEGERS

__all__ = ["RereadLevels"]

_Parameters = tuple[bytes, bytes, str]
_HandingOn = OnnxMove | OnnxMoving | OnnxView | OnnxMaxPool | OnnxClip | OnnxRelu
"""Operators whose results are of the levels that they read."""


class RereadLevels(Pass):
    """Put a QAlias between a tensor of levels and each DequantizeLinear of other parameters than its own.

    Its own are those with which it was written, or else read first; moves and choices hand them on, both ways.
    """

    def apply(self, graph: Graph) -> Graph:
        stated = [(node, known) for node in graph.nodes if (known := _parameters(graph, node)) is not None]
        if len({known for _, known in stated}) < 2:
            return graph
        alike = _alike(graph)
        own: dict[str, _Parameters] = {}
        for kind in (OnnxQuantizeLinear, OnnxDequantizeLinear):
            for node, known in stated:
                if isinstance(node.operator, kind):
                    own.setdefault(alike.get(_levels(node), _levels(node)), known)
        aliases: dict[tuple[str, _Parameters], str] = {}
        for node, known in stated:
            levels = node.inputs[0]
            if isinstance(node.operator, OnnxQuantizeLinear) or own[alike.get(levels, levels)] == known:
                continue
            new: tuple[Node, ...] = ()
            if (levels, known) not in aliases:
                name = aliases[levels, known] = f"{levels}:read as of scale {len(aliases)}"
                # Earlier passes may have told what levels that were moved are, by how this node reads them.
                untold = replace(graph.tensors[levels], scale=None, zero_point=None)
                graph = graph.with_tensors(replace(untold, name=name), untold)
                new = (Node(QAlias(), (levels,), name),)
            graph = graph.replaced((node,), *new, node.with_(inputs=(aliases[levels, known], *node.inputs[1:])))
        return _joined(graph, alike, own)


def _joined(graph: Graph, alike: dict[str, str], own: dict[str, _Parameters]) -> Graph:
    """Return the graph in which what is joined was written with one quantisation, that with which the whole is read."""
    for node in graph.nodes:
        if not isinstance(node.operator, OnnxConcat):
            continue
        known = {name: own[alike.get(name, name)] for name in node.inputs if alike.get(name, name) in own}
        # Levels that are read as whole numbers have no quantisation of their own.
        whole = own.get(alike.get(node.output, node.output), next(iter(known.values()), None))
        odd = [name for name, each in known.items() if each != whole]
        if not odd:
            continue
        names = {name: f"{name}:joined in {node.output}" for name in odd}
        graph = graph.with_tensors(*(replace(graph.tensors[name], name=alias, scale=None, zero_point=None)
                                     for name, alias in names.items()))
        graph = graph.replaced((node,), *(Node(QAlias(), (name,), alias) for name, alias in names.items()),
                               node.with_(inputs=tuple(names.get(name, name) for name in node.inputs)))
    return graph


def _alike(graph: Graph) -> dict[str, str]:
    """Return one name for all tensors whose levels moves and choices hand on to each other."""
    found: dict[str, str] = {}

    def root(name: str) -> str:
        while found.setdefault(name, name) != name:
            name = found[name]
        return name

    for node in graph.nodes:
        if isinstance(node.operator, _HandingOn) and not isinstance(node.operator, OnnxConcat) \
                and node.inputs[0] not in graph.constants:
            found[root(node.inputs[0])] = root(node.output)
    return {name: root(name) for name in found}


def _levels(node: Node) -> str:
    """Return the tensor of levels that a QuantizeLinear writes or a DequantizeLinear reads."""
    return node.inputs[0] if isinstance(node.operator, OnnxDequantizeLinear) else node.output


def _parameters(graph: Graph, node: Node) -> _Parameters | None:
    """Return scale, zero point and type of levels that are computed and have one scale; None of another node."""
    if not isinstance(node.operator, OnnxQuantizeLinear | OnnxDequantizeLinear):
        return None
    scale, zero = (graph.constants.get(name) for name in (*node.inputs, "")[1:3])
    if scale is None or zero is None or scale.size != 1 or _levels(node) in graph.constants \
            or zero.dtype.name not in INTEGERS:
        return None
    return np.ravel(scale).tobytes(), np.ravel(zero).tobytes(), zero.dtype.name
