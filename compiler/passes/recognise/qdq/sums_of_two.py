"""Sums and differences of two computed tensors, of any rank: the residual adder's, between views.

A difference is a sum with a mirrored operand: level −1 − q at zero point −1 − z is −x to the last bit, for int8; for
uint8 both are 256 higher. A table makes it.
"""

import math
from dataclasses import replace

import numpy as np

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import standing_for
from tilewright.compiler.graph.integer_operators import QAdd, QTable
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxSub
from tilewright.compiler.passes.recognise.element_images import image_of_elements
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup, dequantise_before, type_behind
from tilewright.compiler.passes.recognise.qdq.repeated import broadcast_shape, repeated

__all__ = ["summed_up"]

_IMAGE_RANK = 4
_MIRROR = np.arange(127, -129, -1).astype(np.int8)
"""-1 - q for each q of -128 .. 127."""


def summed_up(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return the integer operators of an Add or Sub of two computed tensors; None if the operands are others.

    A tensor that is broadcast is repeated first. ONNX Runtime adds in integers, as `QAdd` does, and subtracts in float:
    a difference may be one level off.
    """
    sources = [dequantise_before(group.graph, name) for name in group.node.inputs]
    if any(source is None or source.inputs[0] in group.graph.constants for source in sources):
        return None
    kinds = [type_behind(group.graph, source) for source in sources if source is not None]
    shape = broadcast_shape(kinds, group.graph.tensors[group.node.output].shape)
    if shape is None or any(each.dtype != group.kind.dtype for each in kinds):
        return None
    subtracts = isinstance(group.node.operator, OnnxSub)
    is_image = len(shape) == _IMAGE_RANK and shape[0] == 1
    if is_image and not subtracts and all(each.shape == shape for each in kinds):
        return None
    image = shape if is_image else image_of_elements(math.prod(shape))
    if image is None:
        return None
    graph = quantisation.with_types(group.graph, *kinds, group.kind)
    before: list[Node] = []
    names = []
    for index, operand in enumerate(kinds):
        found = repeated(graph, group.node.onnx_nodes, operand, shape,
                         f"{operand.name}:repeated {index} of {group.kind.name}")
        if found is None:
            return None
        graph, new, kind = found
        before += new
        name = kind.name
        if not is_image:
            graph, name = _viewed(graph, before, kind, image, f"{kind.name}:operand {index} of {group.kind.name}")
        if index and subtracts:
            mirrored = _mirrored(graph.tensors[name], f"{group.kind.name}:mirrored")
            graph = graph.with_tensors(mirrored)
            before.append(Node(QTable(table=_MIRROR).of_type(kind.dtype), (name,), mirrored.name))
            name = mirrored.name
        names.append(name)
    if not subtracts and _is_one_value(kinds[0], kinds[1]):
        names.reverse()
    add = standing_for(group.node, QAdd(exact=not subtracts).of_type(group.kind.dtype), *names)
    add = add.with_(output=group.kind.name)
    if group.clamps:
        add = group.clamped(add).with_operator(exact=False)
    if is_image:
        return graph, (*before, add)
    result = replace(group.kind, name=f"{group.kind.name}:elements", shape=image)
    view = Node(QAlias(), (result.name,), group.kind.name)
    return graph.with_tensors(result), (*before, add.with_(output=result.name), view)


def _is_one_value(first: Tensor, second: Tensor) -> bool:
    """Tell whether ONNX Runtime's innermost loop adds one value of ``first`` to many of ``second``.

    It then takes the second one's for its first operand (``qlinear_binary_op.cc``).
    """
    mine, other = first.shape or (), second.shape or ()
    for extent, others in zip(reversed((1,) * len(other) + mine), reversed(other), strict=False):
        if extent != others or extent != 1:
            return extent == 1 != others
    return False


def _viewed(graph: Graph, before: list[Node], kind: Tensor, image: tuple[int, ...], name: str) -> tuple[Graph, str]:
    """Add the view of a tensor as an image to ``before``; return the graph with its type, and its name."""
    before.append(Node(QAlias(), (kind.name,), name))
    return graph.with_tensors(replace(kind, name=name, shape=image)), name


def _mirrored(kind: Tensor, name: str) -> Tensor:
    """Return the type of what stands for −x where ``kind`` stands for x."""
    highest = 255 if kind.dtype == "uint8" else -1
    return replace(kind, name=name, zero_point=highest - kind.parameters[1])
