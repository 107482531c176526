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

    The constants must have one scale for all, as scales along any axis belong to elements of every matrix.
    """
    assert isinstance(node.operator, OnnxMatMul)
    x, source, behind = node.inputs[0], graph.producer(node.inputs[1]), graph.only_reader(node.output)
    shape = graph.tensors[x].shape
    if shape is None or levels_of(graph, x) is None or behind is None \
            or not isinstance(behind.operator, OnnxQuantizeLinear) or source is None \
            or not isinstance(source.operator, OnnxDequantizeLinear) or not graph.all_constant(source.inputs):
        return None
    values, scale, *zero = (graph.constants[name] for name in source.inputs if name)
    if values.ndim < 3 or scale.size != 1 or len(shape) != values.ndim or shape[:-2] != values.shape[:-2] \
            or shape[-1] != values.shape[-2] or any(each.size != 1 for each in zero):
        return None
    batch, rows, (terms, results) = math.prod(shape[:-2]), shape[-2], values.shape[-2:]
    parts = Replacement(graph, node)
    kernels = values.reshape(batch, terms, results).transpose(0, 2, 1).reshape(batch * results, terms, 1, 1)
    levels = parts.constant("kernels", np.ascontiguousarray(kernels))
    weights = parts.add(OnnxDequantizeLinear(), (levels, *source.inputs[1:]), kernels.shape)
    image = parts.transposed(parts.reshaped(x, (batch, rows, terms)), (0, 2, 1))
    image = parts.reshaped(image, (1, batch * terms, rows, 1))
    product = parts.add(OnnxConv({"group": batch, "kernel_shape": (1, 1)}), (image, weights),
                        (1, batch * results, rows, 1))
    rounded = parts.rounded(product, behind.inputs[1:], behind.output)
    apart = parts.transposed(parts.reshaped(rounded, (batch, results, rows)), (0, 2, 1))
    parts.reshaped(apart, graph.tensors[node.output].shape or (*shape[:-1], results))
    return parts.finished()
