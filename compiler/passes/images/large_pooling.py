"""Pooling over windows larger than the datapath's becomes several steps, or the same pixels in another arrangement.

The maximum over a window is that of the maxima over its parts. A mean over all of an image does not ask where its
pixels are: of 1 x 128 pixels it is that of 4 x 32, which lie in memory as they did.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxDequantizeLinear,
    OnnxGlobalAveragePool,
    OnnxGlobalMaxPool,
    OnnxMaxPool,
    OnnxReshape,
)
from tilewright.compiler.graph.qlinear_operators import OnnxQLinearGlobalAveragePool
from tilewright.compiler.graph.rewrite import Pass
from tilewright.isa.limits import MAX_KERNEL, MAX_WINDOW, MAX_WINDOW_STRIDE

__all__ = ["SplitLargePooling"]

_Mean = OnnxGlobalAveragePool | OnnxQLinearGlobalAveragePool


class SplitLargePooling(Pass):
    """Rewrite global averages, global maxima, and max pooling whose windows stand side by side."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            shape = graph.tensors[node.inputs[0]].shape if node.inputs[0] in graph.tensors else None
            if shape is None or len(shape) != 4:
                continue
            if isinstance(node.operator, _Mean) and max(shape[2:]) > MAX_KERNEL:
                graph = _rearranged(graph, node, shape)
            elif isinstance(node.operator, OnnxGlobalMaxPool | OnnxMaxPool):
                steps = _steps(node.operator, shape)
                graph = _in_steps(graph, node, shape, steps) if len(steps) > 1 else graph
        return graph


def _rearranged(graph: Graph, node: Node, shape: tuple[int, ...]) -> Graph:
    """Return the graph with the integers of a mean in another height and width, if they have such."""
    pixels, source = shape[2] * shape[3], graph.producer(node.inputs[0])
    height = next((rows for rows in range(1, MAX_KERNEL + 1)
                   if pixels % rows == 0 and pixels // rows <= MAX_KERNEL), None)
    if isinstance(node.operator, OnnxGlobalAveragePool):
        if source is None or not isinstance(source.operator, OnnxDequantizeLinear):
            return graph
        integers = source.inputs[0]
    else:
        source, integers = None, node.inputs[0]
    if height is None or integers in graph.constants:
        return graph
    new = (*shape[:2], height, pixels // height)
    names = [f"{node.output}:{what}" for what in ("rearranged", "rearranged shape", "rearranged real")]
    graph = graph.with_constants({names[1]: np.array(new, np.int64)}).with_tensors(
        replace(graph.tensors[integers], name=names[0], shape=new),
        replace(graph.tensors[node.inputs[0]], name=names[2], shape=new))
    nodes = [Node(OnnxReshape(), (integers, names[1]), names[0])]
    if source is not None:
        nodes.append(source.with_(inputs=(names[0], *source.inputs[1:]), output=names[2], onnx_nodes=()))
    operand = names[0] if source is None else names[2]
    return graph.replaced((node,), *nodes, node.with_(inputs=(operand, *node.inputs[1:])))


def _steps(operator: OnnxGlobalMaxPool | OnnxMaxPool, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the windows, each beside the next, whose maxima one after the other are those of ``operator``.

    None but one for pooling within the limits, or that has overlapping or padded windows.
    """
    if isinstance(operator, OnnxGlobalMaxPool):
        axes = [_covering(extent) for extent in shape[2:]]
    elif _covers(operator, shape):
        axes = [_covering(extent) for extent in operator.kernel_shape or ()]
    else:
        kernel, strides = operator.kernel_shape or (), tuple(operator.strides)
        if max(kernel, default=0) <= MAX_WINDOW and max(strides) <= MAX_WINDOW_STRIDE:
            return []
        if len(kernel) != 2 or kernel != strides or any(operator.pads) or operator.auto_pad not in ("NOTSET", "VALID") \
                or operator.ceil_mode or any(each != 1 for each in operator.dilations):
            return []
        axes = [_factors(extent) for extent in kernel]
    if not all(axes):
        return []
    count = max(map(len, axes))
    rows, columns = ([*each, *[1] * (count - len(each))] for each in axes)
    return list(zip(rows, columns, strict=True))


def _covers(operator: OnnxMaxPool, shape: tuple[int, ...]) -> bool:
    """Tell whether one window is all rows, or all columns, or both, and the next begins where it ends."""
    kernel = tuple(operator.kernel_shape or ())
    return kernel == tuple(operator.strides) and max(kernel) > MAX_WINDOW and not any(operator.pads) \
        and operator.auto_pad in ("NOTSET", "VALID") and all(
            each in (1, extent) for each, extent in zip(kernel, shape[2:], strict=True))


def _covering(extent: int) -> list[int]:
    """Return windows that one after the other leave one of so many pixels; the last of each may be cut."""
    steps = []
    while extent > MAX_WINDOW:
        steps.append(MAX_WINDOW_STRIDE)
        extent = -(-extent // MAX_WINDOW_STRIDE)
    return [*steps, extent]


def _factors(extent: int) -> list[int]:
    """Return factors within the largest stride whose product is ``extent``; none if there are no such."""
    found = []
    while extent > MAX_WINDOW_STRIDE:
        factor = next((each for each in range(MAX_WINDOW_STRIDE, 1, -1) if extent % each == 0), 0)
        if not factor:
            return []
        found.append(factor)
        extent //= factor
    return [*found, extent]


def _in_steps(graph: Graph, node: Node, shape: tuple[int, ...], steps: list[tuple[int, int]]) -> Graph:
    assert isinstance(node.operator, OnnxGlobalMaxPool | OnnxMaxPool)
    cut = int(isinstance(node.operator, OnnxGlobalMaxPool) or _covers(node.operator, shape))
    nodes, x, size = [], node.inputs[0], shape[2:]
    for index, window in enumerate(steps):
        last = index == len(steps) - 1
        size = tuple(-(-n // k) if cut else n // k for n, k in zip(size, window, strict=True))
        output = node.output if last else f"{node.output}:step {index}"
        if not last:
            graph = graph.with_tensors(replace(graph.tensors[node.inputs[0]], name=output, shape=(*shape[:2], *size)))
        operator = OnnxMaxPool({"kernel_shape": window, "strides": tuple(
            min(each, MAX_WINDOW_STRIDE) for each in window), "ceil_mode": cut and not last})
        nodes.append(Node(operator, (x,), output, node.onnx_nodes))
        x = output
    return graph.replaced((node,), *nodes)
