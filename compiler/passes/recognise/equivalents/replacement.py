"""Nodes that are to stand for one node, while they are made one by one."""

import math

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxDequantizeLinear,
    OnnxOperator,
    OnnxQuantizeLinear,
    OnnxReshape,
    OnnxTranspose,
)

__all__ = ["Replacement", "image_shape", "is_of_levels", "levels_of"]

_CHANNELS, _WIDTH = 64, 1024
"""Of an image that any elements make: as many channels as fill the lanes of every machine, pixels that fit a row."""


class Replacement:
    """Nodes in order, each named after the node they stand for; ``graph`` has the types of what they make."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node = graph, node
        self.nodes: list[Node] = []

    def add(self, operator: OnnxOperator, inputs: tuple[str, ...], shape: tuple[int, ...], dtype: str = "float32",
            ) -> str:
        """Add a node that makes a tensor of ``shape`` and return that tensor's name."""
        name = f"{self.node.output}:part {len(self.nodes)}"
        self.graph = self.graph.with_tensors(Tensor(name, shape, dtype))
        self.nodes.append(Node(operator, inputs, name, self.node.onnx_nodes))
        return name

    def constant(self, what: str, values: np.ndarray) -> str:
        """Add a constant and return its name."""
        name = f"{self.node.output}:{what} {len(self.nodes)}"
        self.graph = self.graph.with_constants({name: values})
        return name

    def reshaped(self, name: str, shape: tuple[int, ...], dtype: str = "float32") -> str:
        """Return the name of a tensor in another shape; itself if it has that one."""
        if self.graph.tensors[name].shape == shape:
            return name
        return self.add(OnnxReshape(), (name, self.constant("shape", np.array(shape, np.int64))), shape, dtype)

    def transposed(self, name: str, perm: tuple[int, ...], dtype: str = "float32") -> str:
        """Return the name of a tensor with its axes in the order ``perm``."""
        shape = self.graph.tensors[name].shape or ()
        return self.add(OnnxTranspose({"perm": perm}), (name,), tuple(shape[axis] for axis in perm), dtype)

    def rounded(self, name: str, parameters: tuple[str, ...], like: str) -> str:
        """Add what quantises floats as the tensor ``like`` is, and back; return the name of the floats.

        ``parameters`` are the names of scale and zero point.
        """
        shape, dtype = self.graph.tensors[name].shape or (), self.graph.tensors[like].dtype or "int8"
        integers = self.add(OnnxQuantizeLinear(), (name, *parameters), shape, dtype)
        return self.add(OnnxDequantizeLinear(), (integers, *parameters), shape)

    def finished(self) -> Graph:
        """Return the graph with the nodes in place of the one; the last of them makes its output."""
        last = self.nodes[-1].with_(output=self.node.output)
        return self.graph.replaced((self.node,), *self.nodes[:-1], last)


def levels_of(graph: Graph, name: str) -> Node | None:
    """Return the DequantizeLinear of computed integers, one scale for all, that makes ``name``; None for others."""
    source = graph.producer(name)
    if source is None or not isinstance(source.operator, OnnxDequantizeLinear) or source.operator.block_size \
            or source.inputs[0] in graph.constants:
        return None
    parameters = [each for each in source.inputs[1:] if each]
    one = all(each in graph.constants and graph.constants[each].size == 1 for each in parameters)
    return source if one else None


def is_of_levels(graph: Graph, name: str) -> bool:
    """Tell whether a tensor is of integers of the model, or of what they stand for."""
    integers = graph.tensors[name].dtype in ("int8", "uint8") and graph.producer(name) is not None
    return integers or levels_of(graph, name) is not None


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Return rows, pixels and channels of an image whose bytes are those of a tensor of ``shape``, row by row.

    None for a tensor of four dimensions, which lies otherwise, or where no such image has rows that are short enough.
    """
    elements = math.prod(shape)
    if len(shape) == 4 or elements == 0:
        return None
    channels = max(each for each in range(1, _CHANNELS + 1) if elements % each == 0)
    pixels = elements // channels
    width = max(each for each in range(1, min(pixels, _WIDTH) + 1) if pixels % each == 0)
    return pixels // width, width, channels
