"""Tensors of any rank as images of as many elements, for what computes each element by itself; no pass of its own.

Tensors of other than two or four dimensions lie row by row, without gaps, and so does NHWC: the same bytes are an image
of any height, width and channels that have the product.
"""

import math
from dataclasses import replace

from tilewright.compiler.graph.graph import Graph, Node, Tensor
from tilewright.isa.limits import MAX_ROWS

_MAX_CHANNELS, _MAX_WIDTH = 256, 1024
"""Small enough that a few rows of the image fit the buffers of every machine."""
_LANES = 16


def image_of(elements: int) -> tuple[int, int, int, int] | None:
    """Return a shape (1, channels, height, width) of so many elements, with whole runs if there is one; or None."""
    found = [(1, channels, rest // width, width)
             for channels in range(1, min(elements, _MAX_CHANNELS) + 1) if elements % channels == 0
             for rest in (elements // channels,)
             for width in [max(w for w in range(1, min(rest, _MAX_WIDTH) + 1) if rest % w == 0)]
             if rest // width <= MAX_ROWS]
    return max(found, key=lambda shape: (shape[1] % _LANES == 0, shape[1]), default=None)


def viewed(graph: Graph, x: Tensor, y: Tensor, node: Node) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return ``node``, which makes y of x element by element, between two images; None if there is no such image."""
    shape = image_of(math.prod(x.shape or ()))
    if shape is None or len(x.shape or ()) == 4:
        return None
    before, behind = (replace(each, name=f"{each.name}:image of {node.output}", shape=shape) for each in (x, y))
    nodes = (Node("QAlias", (x.name,), before.name, {"flat": frozenset()}, ()),
             node.with_(inputs=(before.name,), output=behind.name),
             Node("QAlias", (behind.name,), y.name, {"flat": frozenset()}, ()))
    return graph.with_(tensors={**graph.tensors, before.name: before, behind.name: behind}), nodes
