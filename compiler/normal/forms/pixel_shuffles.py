"""Reshape, Transpose and Reshape that put channels into pixels, or pixels into channels, are the operators for that."""

import math

import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.ranks import sizes_of
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    attribute,
    constant,
    is_dequantise,
    is_quantise,
    per_tensor,
    readers,
    same_parameters,
)

__all__ = ["SHUFFLES"]

_TO_PIXELS = {(0, 1, 4, 2, 5, 3): ("CRD", (2, 3), 1), (0, 3, 4, 1, 5, 2): ("DCR", (1, 2), 3)}
"""Turns of a DepthToSpace: its mode, which of the six dimensions are its blocks, and which the channels."""

_TO_CHANNELS = (0, 3, 5, 1, 2, 4)
"""Turn of a SpaceToDepth, of dimensions (b, c, h, r, w, r)."""


def _apply(edit: Edit) -> int:
    return sum(_joined(edit, node) for node in edit.nodes() if not node.domain and node.op_type == "Transpose")


def _joined(edit: Edit, node: ir.Node) -> bool:
    """Replace a Transpose and the two Reshapes around it; tell whether they shuffle pixels."""
    turn = tuple(attribute(node, "perm", ()))
    if turn not in _TO_PIXELS and turn != _TO_CHANNELS:
        return False
    crossed: list[ir.Node] = []
    before, last = _beside(edit, node, crossed, behind=False), _beside(edit, node, crossed, behind=True)
    if before is None or last is None or any(each.domain or each.op_type != "Reshape" for each in (before, last)):
        return False
    x = before.inputs[0]
    if not _change_nothing(crossed, x, last.outputs[0]):
        return False
    image = sizes_of(x)
    six = _dimensions(before, image)
    made = None if six is None else _dimensions(last, [six[each] for each in turn])
    if x is None or image is None or six is None or made is None \
            or len(image) != 4 or len(six) != len(turn):
        return False
    new = _to_channels(edit, last, x, six, made) if turn == _TO_CHANNELS else \
        _to_pixels(edit, last, x, (six, made), _TO_PIXELS[turn])
    if new is None:
        return False
    new.type, new.shape = x.type, ir.Shape(made)
    edit.replace(last, new)
    return True


def _beside(edit: Edit, node: ir.Node, crossed: list[ir.Node], *, behind: bool) -> ir.Node | None:
    """Return the one node before or behind another, and add each Q and DQ between them to ``crossed``."""
    step = node
    while True:
        value = step.outputs[0] if behind else step.inputs[0]
        if value is None or len(readers(value)) != 1 or edit.is_output(value):
            return None
        found = readers(value)[0] if behind else value.producer()
        if found is None or not (is_quantise(found) or is_dequantise(found)):
            return found
        crossed.append(found)
        step = found


def _change_nothing(crossed: list[ir.Node], x: ir.Value | None, result: ir.Value) -> bool:
    """Tell whether each Q and DQ has the parameters that ``x`` has already, and the result is of its type."""
    maker = None if x is None else x.producer()
    if not crossed:
        return True
    return x is not None and maker is not None and (is_quantise(maker) or is_dequantise(maker)) and per_tensor(maker) \
        and all(same_parameters(each, maker) for each in crossed) and x.dtype is not None and x.dtype == result.dtype


def _dimensions(node: ir.Node, sizes: list[int | None] | list[int] | None) -> list[int] | None:
    """Return the shape that a Reshape makes of what has ``sizes``; None where it is not known."""
    target = constant(node.inputs[1]) if len(node.inputs) > 1 else None
    known = [each for each in sizes or () if each is not None]
    if target is None or not known or sizes is None or len(known) < len(sizes) or attribute(node, "allowzero", 0):
        return None
    stated = [known[index] if each == 0 and index < len(known) else int(each)
              for index, each in enumerate(target.ravel())]
    left = math.prod(each for each in stated if each > 0)
    if -1 in stated and left:
        stated[stated.index(-1)] = math.prod(known) // left
    return stated if min(stated, default=0) > 0 and math.prod(stated) == math.prod(known) else None


def _to_pixels(edit: Edit, place: ir.Node, x: ir.Value, dimensions: tuple[list[int], list[int]],
               form: tuple[str, tuple[int, int], int]) -> ir.Value | None:
    """Add the DepthToSpace; None if the blocks are not square, or the image is cut in another way."""
    (six, made), (mode, blocks, channels) = dimensions, form
    block = six[blocks[0]]
    if six[blocks[1]] != block or sizes_of(x) != [six[0], six[channels] * block**2, *six[4:]] \
            or made != [six[0], six[channels], six[4] * block, six[5] * block]:
        return None
    return edit.insert(place, "DepthToSpace", [x], {"blocksize": block, "mode": mode})


def _to_channels(edit: Edit, place: ir.Node, x: ir.Value, six: list[int], made: list[int]) -> ir.Value | None:
    """Add the SpaceToDepth; None if the blocks are not square, or the image is cut in another way."""
    batch, channels, height, block, width, other = six
    if other != block or sizes_of(x) != [batch, channels, height * block, width * block] \
            or made != [batch, channels * block**2, height, width]:
        return None
    return edit.insert(place, "SpaceToDepth", [x], {"blocksize": block})


SHUFFLES = Rule("shuffles", "A Reshape, a Transpose and a Reshape that put blocks of channels into pixels, or of "
                "pixels into channels, are DepthToSpace and SpaceToDepth", "that is their definition (ONNX)", _apply)
