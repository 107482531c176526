"""Arithmetic between a float input of the model and its quantisation becomes part of the latter: ``Q((x - m) / d)``.

Quantisation of an input is the host's, in float32; so is what normalises it first, to the bit as ONNX Runtime does.
"""

import math

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_nodes import standing_for
from tilewright.compiler.graph.integer_operators import Quantize
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxArithmetic,
    OnnxClip,
    OnnxDiv,
    OnnxMul,
    OnnxQuantizeLinear,
    OnnxRelu,
    OnnxSub,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.kernels.preparation import PreparationStep

__all__ = ["PrepareInputs"]

_OPERATIONS: dict[type, str] = {OnnxAdd: "add", OnnxSub: "subtract", OnnxMul: "multiply", OnnxDiv: "divide"}
_MOST_VALUES = 4096
"""Of a constant: one per channel, not one per pixel."""


class PrepareInputs(Pass):
    """Replace ``Q(f(g(x)))`` by a Quantize that prepares x, where x is a float input and f and g compute elements."""

    def apply(self, graph: Graph) -> Graph:
        for quantise in graph.nodes:
            if isinstance(quantise.operator, OnnxQuantizeLinear) and not quantise.reason:
                graph = _prepared(graph, quantise)
        return graph


def _prepared(graph: Graph, quantise: Node) -> Graph:
    name = quantise.inputs[0]
    chain: list[Node] = []
    steps: list[PreparationStep] = []
    while name not in graph.inputs:
        node = graph.producer(name)
        found = _steps(graph, node) if node is not None else None
        if node is None or found is None:
            return graph
        name, more = found
        steps[:0] = more
        chain.append(node)
    if not chain or graph.tensors[name].dtype != "float32":
        return graph
    try:
        kind = quantisation.activation(graph, quantise, quantise.output, *(*quantise.inputs[1:], "")[:2])
    except UnsupportedNodeError:
        return graph
    names = tuple(name for node in reversed(chain) for name in node.onnx_nodes) + quantise.onnx_nodes
    new = standing_for(quantise.with_(onnx_nodes=names), Quantize(tuple(steps)), name)
    graph = quantisation.with_types(graph, kind).replaced((quantise,), new)
    for node in chain:
        if not graph.is_read(node.output):
            graph = graph.removed(node)
    return graph


def _steps(graph: Graph, node: Node) -> tuple[str, list[PreparationStep]] | None:
    """Return what a node reads and computes of it with constants; None if it is something else."""
    operator, constants = node.operator, graph.constants
    if isinstance(operator, OnnxRelu):
        return node.inputs[0], [PreparationStep("maximum", (0.0,))]
    if isinstance(operator, OnnxClip):
        return _clipped(graph, node, operator)
    if not isinstance(operator, OnnxArithmetic):
        return None
    fixed = [name in constants for name in node.inputs]
    if sum(fixed) != 1:
        return None
    x, value = node.inputs[fixed.index(False)], constants[node.inputs[fixed.index(True)]]
    shape = graph.tensors[x].shape
    if value.dtype != np.float32 or value.size > _MOST_VALUES or shape is None \
            or graph.tensors[node.output].shape != shape or not np.isfinite(value).all():
        return None
    return x, [PreparationStep(_OPERATIONS[type(operator)], tuple(map(float, value.ravel())), value.shape,
                               swapped=fixed[0])]


def _clipped(graph: Graph, node: Node, operator: OnnxClip) -> tuple[str, list[PreparationStep]] | None:
    steps = []
    stated = zip((*node.inputs[1:], "", "")[:2], (operator.min, operator.max), ("maximum", "minimum"), strict=True)
    for name, attribute, operation in stated:
        value = graph.constants.get(name) if name else attribute
        if name and (value is None or np.size(value) != 1):
            return None
        if value is not None and not math.isnan(float(np.asarray(value).item())):
            steps.append(PreparationStep(operation, (float(np.float32(np.asarray(value).item())),)))
    return node.inputs[0], steps
