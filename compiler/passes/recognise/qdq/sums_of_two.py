"""Sums and differences of two tensors of levels, of any rank: the residual adder's, between views.

One of the two may be constant: its levels lie in memory beside the weights.

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
from tilewright.compiler.passes.recognise.element_images import image_of_elements, in_memory, period
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup, dequantise_before, type_behind
from tilewright.compiler.passes.recognise.qdq.repeated import broadcast_shape, repeated

__all__ = ["added_constant", "summed_up"]

_IMAGE_RANK = 4
_FEW = 256
"""Elements that parameters are as good for."""

_WORTH_STORING = 16
"""A constant is stored if it repeats itself less often: a parameter takes about as long as the bytes of so many."""

_MIRROR = np.arange(127, -129, -1).astype(np.int8)
"""-1 - q for each q of -128 .. 127."""


def added_constant(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return what :func:`summed_up` does of levels and a constant of so many elements that it is best stored."""
    graph, shape = group.graph, group.graph.tensors[group.node.output].shape
    sources = [dequantise_before(graph, name) for name in group.node.inputs]
    fixed = [each for each in sources if each is not None and graph.all_constant(each.inputs)]
    if len(fixed) != 1 or len(sources) != 2 or not shape or any(graph.constants[name].size != 1
                                                                for name in fixed[0].inputs[1:] if name):
        return None
    levels = graph.constants[fixed[0].inputs[0]]
    try:
        lie = in_memory(levels, shape)
    except ValueError:
        return None
    return summed_up(group) if lie.size >= _FEW and _WORTH_STORING * period(lie) > lie.size else None


def summed_up(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return the integer operators of an Add or Sub of levels, one of which may be constant; None for other operands.

    A tensor that is broadcast is repeated first. ONNX Runtime adds in integers, as `QAdd` does, and subtracts in float:
    a difference may be one level off.
    """
    sources = [dequantise_before(group.graph, name) for name in group.node.inputs]
    if any(source is None for source in sources) or all(
            source is not None and source.inputs[0] in group.graph.constants for source in sources):
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
    graph = quantisation.with_types(group.graph, *(
        each for each in kinds if each.name not in group.graph.constants), group.kind)
    before: list[Node] = []
    names = []
    for index, operand in enumerate(kinds):
        if operand.name in graph.constants:
            graph, name = _stored(graph, operand, (shape, image), group.kind.name, mirrored=bool(index and subtracts))
            names.append(name)
            continue
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


def _stored(graph: Graph, kind: Tensor, shapes: tuple[tuple[int, ...], tuple[int, ...]], result: str, *,
            mirrored: bool) -> tuple[Graph, str]:
    """Add levels of a constant as an image in memory, broadcast to the first of ``shapes``; return its name."""
    shape, image = shapes
    lie = in_memory(graph.constants[kind.name], shape)
    new = replace(kind, name=f"{result}:constant", shape=image)
    if mirrored:
        new, lie = _mirrored(new, new.name), _highest(kind) - lie.astype(np.int16)
        lie = lie.astype(np.dtype(kind.dtype))
    return graph.with_tensors(new).with_constants({new.name: lie}), new.name


def _mirrored(kind: Tensor, name: str) -> Tensor:
    """Return the type of what stands for −x where ``kind`` stands for x."""
    return replace(kind, name=name, zero_point=_highest(kind) - kind.parameters[1])


def _highest(kind: Tensor) -> int:
    """Return the sum of a level and what mirrors it."""
    return 255 if kind.dtype == "uint8" else -1
