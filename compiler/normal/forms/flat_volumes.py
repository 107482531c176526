"""A convolution of a volume of depth one is one of an image, by the one slice of weights that meets it."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.constant_levels import ConstantLevels, of_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.inserted_moves import with_axes, without_axes
from tilewright.compiler.normal.ranks import sizes_of
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, levels_behind

__all__ = ["VOLUMES"]

_RANK, _DEPTH = 5, 2


def _apply(edit: Edit) -> int:
    return sum(_flattened(edit, node) for node in edit.nodes() if not node.domain and node.op_type == "Conv")


def _flattened(edit: Edit, node: ir.Node) -> bool:
    """Replace a Conv of levels over a depth of one whose result has that depth too; tell whether it is one."""
    x, weights, sizes = node.inputs[0], of_constant(node.inputs[1]), sizes_of(node.inputs[0])
    if x is None or weights is None or weights.levels.ndim != _RANK or sizes is None or len(sizes) != _RANK \
            or sizes[_DEPTH] != 1:
        return False
    place = _slice(node, weights)
    if place is None:
        return False
    attributes = {name: _over_images(name, each.value) for name, each in node.attributes.items()}
    image = without_axes(edit, node, x, [_DEPTH])
    held = levels_behind(node.inputs[1])
    assert held is not None
    levels = edit.constant(np.take(weights.levels, place, _DEPTH), held.inputs[0].name)
    flat = edit.insert(node, "DequantizeLinear", [levels, *held.inputs[1:]],
                       {name: each.value for name, each in held.attributes.items()}, like=node.inputs[1].name)
    result = edit.insert(node, "Conv", [image, flat, *node.inputs[2:]], attributes, like=node.name)
    edit.replace(node, with_axes(edit, node, result, [_DEPTH]))
    return True


def _slice(node: ir.Node, weights: ConstantLevels) -> int | None:
    """Return which slice of the weights the one slice of the volume is multiplied by; None if there is more to it."""
    taps, held = weights.levels.shape[_DEPTH], weights.axis_of_parameters()
    step, gap = (attribute(node, name, (1,))[0] for name in ("strides", "dilations"))
    reach, pad = (taps - 1) * gap, attribute(node, "auto_pad", "NOTSET")
    pads = attribute(node, "pads", (0,) * 6)
    before, after = {"NOTSET": (pads[0], pads[len(pads) // 2]), "VALID": (0, 0), "SAME_UPPER": (
        reach // 2, reach - reach // 2), "SAME_LOWER": (reach - reach // 2, reach // 2)}[pad]
    room = before + after - reach
    if held is None or held[2] not in (None, 0) or not 0 <= room < step or before % gap or before // gap >= taps:
        return None
    return int(before // gap)


def _over_images(name: str, value: object) -> object:
    """Return an attribute of a Conv over volumes as one over images has it."""
    if name == "pads" and isinstance(value, (list, tuple)):
        return [*value[1:3], *value[4:6]]
    return list(value[1:]) if isinstance(value, (list, tuple)) else value


VOLUMES = Rule("volumes", "A Conv of levels over a volume of depth one is one over an image",
               "all else that its weights meet is padding, of zeros", _apply)
