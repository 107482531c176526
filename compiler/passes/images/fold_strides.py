"""Kernels that are too wide for the datapath lose a factor of their stride: neighbouring pixels become channels.

A row of W pixels of C channels is, byte for byte, a row of W / f pixels of f · C channels. A kernel of k columns with
stride s is over those one of about k / f columns with stride s / f; what it has more of taps at either end is zero.
The first layer of M5, a network for sound, has 80 taps and the stride 4: over four channels it has 20.
"""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import QConv, WindowAsRead
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.rewrite import Pass
from tilewright.isa.limits import MAX_KERNEL, MAX_PADDING

__all__ = ["Fold", "FoldStrides", "fold_of"]


@dataclass(frozen=True, slots=True)
class Fold:
    """``factor`` pixels become one; ``before`` taps of zero stand before the kernel, which has then ``columns``.

    ``size`` is the result's, height and width.
    """

    factor: int
    before: int
    columns: int
    stride: int
    left: int
    right: int
    size: tuple[int, int]


class FoldStrides(Pass):
    """Rewrite convolutions whose kernel or padding is wider than the datapath's, where their stride allows it."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            shape = graph.tensors[node.inputs[0]].shape if isinstance(node.operator, QConv) else None
            if isinstance(node.operator, QConv) and shape is not None:
                fold = fold_of(node.operator, shape, graph.constants[node.inputs[1]].shape)
                graph = _folded(graph, node, node.operator, fold) if fold is not None else graph
        return graph


def fold_of(operator: QConv, shape: tuple[int, ...], weights: tuple[int, ...]) -> Fold | None:
    """Return how a convolution of an image of ``shape`` is folded; None if it need not or cannot be."""
    window = operator.window
    if not isinstance(window, WindowAsRead) or window.auto_pad not in ("NOTSET", "VALID") or window.ceil_mode \
            or len(shape) != 4 or len(weights) != 4 or operator.groups != 1 or len(window.pads) != 4 \
            or any(each != 1 for each in window.dilations) or min(window.pads) < 0:
        return None
    (rows, taps), (height, width), (down, stride) = weights[2:], shape[2:], window.strides
    top, left, bottom, right = window.pads if window.auto_pad == "NOTSET" else (0, 0, 0, 0)
    steps = (width + left + right - taps) // stride + 1
    if (taps <= MAX_KERNEL and max(left, right) <= MAX_PADDING) or steps < 1 \
            or rows > min(MAX_KERNEL, height + top + bottom) or max(top, bottom) > MAX_PADDING:
        return None
    for factor in (each for each in range(2, stride + 1) if stride % each == 0 and width % each == 0):
        pad = -(-left // factor)
        before = pad * factor - left
        columns, step, pixels = -(-(before + taps) // factor), stride // factor, width // factor
        behind = max(0, (steps - 1) * step + columns - pixels - pad)
        if (pixels + pad + behind - columns) // step + 1 == steps and columns <= MAX_KERNEL \
                and max(pad, behind) <= MAX_PADDING:
            return Fold(factor, before, columns, step, pad, behind, ((height + top + bottom - rows) // down + 1, steps))
    return None


def _folded(graph: Graph, node: Node, operator: QConv, fold: Fold) -> Graph:
    """Return the graph with the convolution over the same bytes in another shape."""
    x, window = graph.tensors[node.inputs[0]], operator.window
    assert x.shape is not None
    assert isinstance(window, WindowAsRead)
    batch, channels, height, width = x.shape
    view = replace(x, name=f"{node.output}:folded", shape=(batch, fold.factor * channels, height, width // fold.factor))
    values = graph.constants[node.inputs[1]]
    outputs, _, rows, taps = values.shape
    padded = np.zeros((outputs, channels, rows, fold.columns * fold.factor), values.dtype)
    padded[..., fold.before:fold.before + taps] = values
    apart = padded.reshape(outputs, channels, rows, fold.columns, fold.factor).transpose(0, 4, 1, 2, 3)
    weights = np.ascontiguousarray(apart.reshape(outputs, -1, rows, fold.columns))
    name = f"{view.name} weights"
    changed = replace(window, kernel=None, strides=(window.strides[0], fold.stride), auto_pad="NOTSET",
                      pads=(window.pads[0], fold.left, window.pads[2], fold.right))
    return graph.with_constants({name: weights}).with_tensors(view).replaced(
        (node,), Node(QAlias(), (x.name,), view.name),
        node.with_(operator=replace(operator, window=changed), inputs=(view.name, name, *node.inputs[2:])))
