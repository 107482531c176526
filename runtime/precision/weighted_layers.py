"""Layers whose weights may take other bits: products of a tensor and constants, in a model of Q and DQ."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, NodeProto, numpy_helper

__all__ = ["WeightedLayer", "constant_arrays", "weighted_layers"]

_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_BIAS = 2


@dataclass(frozen=True, slots=True)
class WeightedLayer:
    """A product by constant levels.

    Attributes
    ----------
    node : NodeProto
        Its name is the layer's.
    weights : NodeProto
        The DequantizeLinear of its weights.
    axis : int
        Of output channels.
    bias : NodeProto or None
        The DequantizeLinear of its bias, constant levels as well.
    adder : NodeProto
        The node that reads the bias: the product, or the Add behind.
    """

    node: NodeProto
    weights: NodeProto
    axis: int
    bias: NodeProto | None
    adder: NodeProto

    @property
    def name(self) -> str:
        """The layer's name: its node's, or that of its result where the node has none."""
        return self.node.name or self.node.output[0]


def constant_arrays(graph: GraphProto) -> dict[str, np.ndarray]:
    """Return the constants of a graph by name."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}


def weighted_layers(graph: GraphProto) -> list[WeightedLayer]:
    """Return the layers of a graph that have weights of their own, in its order."""
    return list(_found(graph))


def _found(graph: GraphProto) -> Iterator[WeightedLayer]:
    constants = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    levels = {node.output[0]: node for node in graph.node if node.op_type == "DequantizeLinear"
              and set(node.input) - {""} <= constants.keys()}
    readers: dict[str, list[NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    outputs = {value.name for value in graph.output}
    for node in graph.node:
        if node.op_type not in _PRODUCTS or node.input[1] not in levels or node.input[0] in levels:
            continue
        weights = levels[node.input[1]]
        rank = constants[weights.input[0]]
        if (axis := _axis(node, rank)) is not None:
            bias, adder = _bias(node, levels, readers, outputs)
            yield WeightedLayer(node, weights, axis, bias, adder)


def _axis(node: NodeProto, rank: int) -> int | None:
    """Return the axis of output channels of a product's weights; None if none is that alone."""
    numbers = {each.name: each.i for each in node.attribute}
    if node.op_type == "Conv":
        return 0
    if node.op_type == "ConvTranspose":
        return 1 if numbers.get("group", 1) == 1 else None
    if rank != 2:
        return None
    return 0 if node.op_type == "Gemm" and numbers.get("transB", 0) else 1


def _bias(node: NodeProto, levels: Mapping[str, NodeProto], readers: Mapping[str, list[NodeProto]],
          outputs: set[str]) -> tuple[NodeProto | None, NodeProto]:
    if node.op_type != "MatMul":
        name = node.input[_BIAS] if len(node.input) > _BIAS else ""
        return levels.get(name), node
    behind = readers.get(node.output[0], [])
    if len(behind) == 1 and behind[0].op_type == "Add" and node.output[0] not in outputs:
        for name in behind[0].input:
            if name in levels:
                return levels[name], behind[0]
    return None, node
