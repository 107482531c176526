"""Products of levels that are quantised at run time: ``ConvInteger(q, w, z)`` becomes the whole sums of a QConv.

The zero point z is known only at run time, and padding is worth z. So the datapath reads q - z: as it is, less 128,
where z is certainly 0, as behind a Relu; else as two int8 halves whose difference it is, with the weights and their
negatives. The host core makes the halves; padding is then 0.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph.core_operators import CoreHalves
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import weighted_node
from tilewright.compiler.graph.integer_operators import QConv
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxCast,
    OnnxClip,
    OnnxConvInteger,
    OnnxDiv,
    OnnxGlobalAveragePool,
    OnnxGlobalMaxPool,
    OnnxMatMulInteger,
    OnnxMaxPool,
    OnnxQuantizeLinear,
    OnnxSub,
    OnnxTranspose,
    OnnxUnary,
    OnnxView,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.passes.recognise.infer_shapes import inferred
from tilewright.compiler.passes.recognise.sums.nowhere_negative import is_rectifier

__all__ = ["SumRunTimeProducts"]

_REASON = "its zero point is computed while the model runs"

_Choice = OnnxView | OnnxMaxPool | OnnxGlobalMaxPool | OnnxGlobalAveragePool | OnnxTranspose
"""Operators whose results are nowhere below 0 if their first inputs are not."""

_Product = OnnxConvInteger | OnnxMatMulInteger


class SumRunTimeProducts(Pass):
    """Replace products of computed uint8 levels and constant weights."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, _Product):
                try:
                    graph = _summed(graph, node, node.operator) or graph
                except UnsupportedNodeError:
                    continue    # the core computes it
        return graph


def _summed(graph: Graph, node: Node, operator: _Product) -> Graph | None:
    """Return the graph with whole sums for ``node``; None if its operands are others."""
    name, weights, zero, weights_zero = (*node.inputs, "", "")[:4]
    x, y = graph.tensors[name], graph.tensors[node.output]
    values = graph.constants.get(weights)
    if x.dtype != "uint8" or x.shape is None or y.shape is None or name in graph.constants or values is None \
            or not zero or not graph.all_constant([weights_zero]):
        return None
    levels = _levels(values, graph.constants.get(weights_zero), 0 if isinstance(operator, OnnxConvInteger) else 1)
    product = QConv(whole=True)
    if isinstance(operator, OnnxConvInteger):
        product = QConv(window=operator.window, groups=operator.group, whole=True)
    elif levels is not None:
        levels = levels.T.reshape(*levels.shape[::-1], 1, 1)
    if levels is None or levels.ndim != 4 or levels.shape[1] * product.groups != x.shape[-1 if values.ndim == 2 else 1]:
        return None
    image = x.shape if values.ndim == 4 else (1, levels.shape[1], x.shape[-2] if len(x.shape) > 1 else 1, 1)
    if len(image) != 4 or np.prod(image) != np.prod(x.shape):
        return None
    graph, source, wide = _less_zero(graph, node, (name, zero), image, product.groups)
    if wide == 2:
        levels = np.concatenate([levels, -levels], axis=1)
    fits = levels.min() >= -128 and levels.max() <= 127
    levels = np.ascontiguousarray(levels, np.int8 if fits else np.int16)
    graph = graph.with_tensors(replace(y, scale=None, zero_point=None))
    graph, new = weighted_node(graph, node, source, product, (levels, np.ones(1, np.float32)), None)
    _, shape = inferred(graph, new)
    if np.prod(shape) != np.prod(y.shape):
        return None
    return graph.replaced((node,), new)


def _levels(values: np.ndarray, zero: np.ndarray | None, axis: int) -> np.ndarray | None:
    """Return weights less their zero point, one or one for each index along ``axis``; None if there are others."""
    if values.dtype not in (np.int8, np.uint8) or values.ndim not in (2, 4):
        return None
    levels = values.astype(np.int16)
    if zero is None:
        return levels
    if zero.size not in (1, values.shape[axis]):
        return None
    shape = [1] * values.ndim
    shape[axis] = zero.size
    return levels - zero.astype(np.int16).reshape(shape)


def _less_zero(graph: Graph, node: Node, names: tuple[str, str], image: tuple[int, ...], groups: int,
               ) -> tuple[Graph, str, int]:
    """Return the name of an image of int8 levels less their zero point, and how many halves of each it has."""
    name, zero = names
    x = graph.tensors[name]
    if _is_zero(graph, name, zero):
        graph = graph.with_tensors(replace(x, scale=np.float32(1), zero_point=0))
        if x.shape == image:
            return graph, name, 1
        view = replace(graph.tensors[name], name=f"{node.output}:image", shape=image)
        alias = Node(QAlias(frozenset((name,))), (name,), view.name)
        return graph.with_tensors(view).replaced((node,), alias, node), view.name, 1
    halves = Tensor(f"{node.output}:halves", (1, 2 * image[1], *image[2:]), "int8", np.float32(1), 0)
    made = Node(CoreHalves(attributes={"group": groups}), (name, zero), halves.name, node.onnx_nodes, _REASON)
    if x.shape != image:
        # Rows of one pixel each lie in NHWC as they did.
        flat = replace(halves, name=f"{halves.name} of rows", shape=(*(x.shape or ())[:-1], 2 * image[1]))
        alias = Node(QAlias(frozenset((flat.name,))), (flat.name,), halves.name)
        return (graph.with_tensors(halves, flat).replaced((node,), made.with_(output=flat.name), alias, node),
                halves.name, 2)
    return graph.with_tensors(halves).replaced((node,), made, node), halves.name, 2


def _is_zero(graph: Graph, name: str, zero: str) -> bool:
    """Tell whether the zero point of DynamicQuantizeLinear is certainly 0: its input is nowhere below 0."""
    source = graph.producer(name)
    if source is None or not isinstance(source.operator, OnnxQuantizeLinear) or source.inputs[2:] != (zero,) \
            or not _is_of_range(graph, zero, source.inputs[0]):
        return False
    before = graph.producer(source.inputs[0])
    while before is not None and isinstance(before.operator, _Choice):
        before = graph.producer(before.inputs[0])
    return before is not None and is_rectifier(graph, before)


def _is_of_range(graph: Graph, zero: str, x: str) -> bool:
    """Tell whether ``zero`` is what DynamicQuantizeLinear makes of the least of ``x``: 0 if that is not below 0.

    By ONNX's definition, saturate(round(0 - min(min(x), 0) / scale)).
    """
    node = graph.producer(zero)
    for kind in (OnnxCast, OnnxUnary, OnnxClip):
        if node is None or not isinstance(node.operator, kind):
            return False
        node = graph.producer(node.inputs[0])
    if node is None or not isinstance(node.operator, OnnxSub) or not _is_nothing(graph, node.inputs[0]):
        return False
    node = graph.producer(node.inputs[1])
    if node is None or not isinstance(node.operator, OnnxDiv):
        return False
    node = graph.producer(node.inputs[0])
    if node is None or node.op != "Min" or not _is_nothing(graph, node.inputs[1]):
        return False
    node = graph.producer(node.inputs[0])
    return node is not None and node.op == "ReduceMin" and node.inputs[0] == x


def _is_nothing(graph: Graph, name: str) -> bool:
    """Tell whether ``name`` is the constant 0."""
    value = graph.constants.get(name)
    return value is not None and value.size == 1 and not value.any()
