"""Products of an image by a tensor that repeats itself along some of its axes: maps of attention, gates of rows.

What repeats is the pixels of another image of the same bytes, and what does not is its channels: so each weight that is
computed counts for all of these pixels. An image lies as rows, pixels and channels. A gate of columns, which repeats
for each row, needs no movement for that; for any other the axes that repeat come first, and go back behind.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxTranspose
from tilewright.isa.limits import MAX_PIXEL_BYTES, MAX_ROWS

__all__ = ["gated"]

_LIE = (2, 3, 1)
"""Axes of an image from the outermost in memory on."""

_WORTH_MOVING = 4
"""A weight must count for so many pixels that it saves what two movements byte by byte take."""


@dataclass(frozen=True, slots=True)
class _Gate:
    """The axes of an image along which a gate repeats, and those along which it does not, each as they lie."""

    repeated: tuple[int, ...]
    own: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def perm(self) -> tuple[int, ...]:
        """The transposition to an image that lies with the repeated axes first."""
        first, second, third = (*self.repeated, *self.own)
        return (0, third, first, second)

    @property
    def image(self) -> tuple[int, ...]:
        """The shape of the image of the same bytes whose channels the gate multiplies."""
        pixels = math.prod(self.shape[axis] for axis in self.repeated)
        width = max(each for each in range(1, min(pixels, MAX_ROWS) + 1) if pixels % each == 0)
        return (1, math.prod(self.shape[axis] for axis in self.own), pixels // width, width)


def gated(graph: Graph, made: Node, types: tuple[Tensor, Tensor], shape: tuple[int, ...],
          kind: Tensor) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return the product of an image of ``shape`` and a gate of it, quantised to ``kind``; None of other operands."""
    found = next(((types[1 - index], types[index], gate) for index in (1, 0)
                  if types[1 - index].shape == shape and (gate := _gate(types[index], shape)) is not None), None)
    if found is None:
        return None
    x, factor, gate = found
    nodes: list[Node] = []
    tensors: list[Tensor] = []

    def view(source: str, tensor: Tensor, name: str, extents: tuple[int, ...]) -> Tensor:
        new = replace(tensor, name=name, shape=extents)
        nodes.append(Node(QAlias(), (source,), new.name))
        tensors.append(new)
        return new

    def turn(source: str, name: str, perm: tuple[int, ...]) -> None:
        nodes.append(Node(OnnxTranspose({"perm": perm}), (source,), name, made.onnx_nodes,
                          reason="the datapath cannot move single elements"))

    straight = gate.perm == (0, 1, 2, 3)
    moved = tuple(shape[axis] for axis in gate.perm)
    if not straight:
        turned = replace(x, name=f"{x.name}:turned for {kind.name}", shape=moved)
        turn(x.name, turned.name, gate.perm)
        tensors.append(turned)
        x = turned
    pixels = view(x.name, x, f"{x.name}:gated for {kind.name}", gate.image)
    vector = view(factor.name, factor, f"{factor.name}:gate of {kind.name}", (1, gate.image[1], 1, 1))
    product = replace(kind, name=f"{kind.name}:gated", shape=gate.image)
    nodes.append(made.with_(inputs=(pixels.name, vector.name), output=product.name))
    if straight:
        nodes.append(Node(QAlias(), (product.name,), kind.name))
    else:
        back = view(product.name, kind, f"{kind.name}:turned", moved)
        turn(back.name, kind.name, tuple(int(axis) for axis in np.argsort(gate.perm)))
    return graph.with_tensors(*tensors, product), tuple(nodes)


def _gate(kind: Tensor, shape: tuple[int, ...]) -> _Gate | None:
    """Return how a tensor gates an image of ``shape``; None if it does not, or if that is not worth its movements."""
    extents = kind.shape or ()
    if len(shape) != len(_LIE) + 1 or len(extents) != len(shape) or shape[0] != 1:
        return None
    repeated = tuple(axis for axis in _LIE if extents[axis] != shape[axis])
    own = tuple(axis for axis in _LIE if extents[axis] == shape[axis])
    gate = _Gate(repeated, own, shape)
    if not repeated or not own or not 1 < gate.image[1] <= MAX_PIXEL_BYTES or gate.image[2] > MAX_ROWS:
        return None
    count = math.prod(gate.image[2:])
    return gate if count >= _WORTH_MOVING or (count > 1 and gate.perm == (0, 1, 2, 3)) else None
