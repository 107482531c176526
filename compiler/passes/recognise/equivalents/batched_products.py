"""A product of as many matrices as there are constants for is a grouped convolution of one pixel for each row.

Of (batch, rows, K) by (batch, K, N) each matrix is a group: its K elements of a row are channels, as are its N results.
"""

import math

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxConv,
    OnnxDequantizeLinear,
    OnnxMatMul,
    OnnxQuantizeLinear,
)
from tilewright.compiler.passes.recognise.equivalents.replacement import Replacement, levels_of

__all__ = ["product_of_each"]


def product_of_each(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with a MatMul by quantised constants of several matrices as a Conv; None where it is not such.

    The constants must have one scale for all, or one for each matrix: along other axes they belong to elements of all.
    """
    assert isinstance(node.operator, OnnxMatMul)
    x, source, behind = node.inputs[0], graph.producer(node.inputs[1]), graph.only_reader(node.output)
    shape = graph.tensors[x].shape
    if shape is None or levels_of(graph, x) is None or behind is None \
            or not isinstance(behind.operator, OnnxQuantizeLinear) or source is None \
            or not isinstance(source.operator, OnnxDequantizeLinear) or not graph.all_constant(source.inputs):
        return None
    values, scale, *zero = (graph.constants[name] for name in source.inputs if name)
    axis = source.operator.axis % max(values.ndim, 1)
    if values.ndim < 3 or len(shape) != values.ndim or shape[:-2] != values.shape[:-2] \
            or shape[-1] != values.shape[-2] or any(each.size != scale.size for each in zero) \
            or (scale.size != 1 and axis >= values.ndim - 2):
        return None
    batch, rows, (terms, results) = math.prod(shape[:-2]), shape[-2], values.shape[-2:]
    parts = Replacement(graph, node)
    kernels = values.reshape(batch, terms, results).transpose(0, 2, 1).reshape(batch * results, terms, 1, 1)
    levels = parts.constant("kernels", np.ascontiguousarray(kernels))
    numbers = source.inputs[1:] if scale.size == 1 else tuple(
        parts.constant(what, _of_channels(each, axis, values.shape))
        for what, each in zip(("scales", "zero points"), (scale, *zero), strict=False))
    weights = parts.add(OnnxDequantizeLinear({"axis": 0}), (levels, *numbers), kernels.shape)
    image = parts.transposed(parts.reshaped(x, (batch, rows, terms)), (0, 2, 1))
    image = parts.reshaped(image, (1, batch * terms, rows, 1))
    product = parts.add(OnnxConv({"group": batch, "kernel_shape": (1, 1)}), (image, weights),
                        (1, batch * results, rows, 1))
    rounded = parts.rounded(product, behind.inputs[1:], behind.output)
    apart = parts.transposed(parts.reshaped(rounded, (batch, results, rows)), (0, 2, 1))
    parts.reshaped(apart, graph.tensors[node.output].shape or (*shape[:-1], results))
    return parts.finished()


def _of_channels(numbers: np.ndarray, axis: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers along a leading axis of stacks of matrices, of ``shape``, for each column of each matrix."""
    along = np.moveaxis(np.broadcast_to(numbers, (*shape[:axis], *shape[axis + 1:-2], numbers.size)), -1, axis)
    return np.repeat(along.reshape(-1), shape[-1])
