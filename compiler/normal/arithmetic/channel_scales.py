"""Scales per channel of an activation are in the scales of the weights before and behind it."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.arithmetic.behind_products import ConvOfLevels, conv_of_levels, rescaled
from tilewright.compiler.normal.constant_levels import ConstantLevels, of_constant, requantised
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    attribute,
    constant,
    is_dequantise,
    is_quantise,
    readers,
    same_parameters,
)

__all__ = ["CHANNELS"]

_ALIKE = ("Relu", "MaxPool")
"""Operators that treat every channel alike, whatever positive number it is multiplied by."""


def _apply(edit: Edit) -> int:
    return sum(_joined(edit, node) for node in edit.nodes() if is_quantise(node) and node.graph is not None)


def _joined(edit: Edit, node: ir.Node) -> bool:
    """Give an activation that convolutions make and read one scale, the largest; tell whether it had several."""
    scale, zero = constant(node.inputs[1]), constant(node.inputs[2]) if len(node.inputs) > 2 else None
    if scale is None or zero is None or scale.ndim != 1 or scale.dtype != np.float32 or scale.size == 1 \
            or attribute(node, "axis", 1) != 1 \
            or not (np.isfinite(scale).all() and (scale > 0).all() and (zero == zero[0]).all()):
        return False
    reals = readers(node.outputs[0])
    products = [each for real in reals for each in readers(real.outputs[0])]
    made, place = _before(edit, node)
    if made is None or not products or not all(is_dequantise(each) and same_parameters(each, node) for each in reals) \
            or any(edit.is_output(each.outputs[0]) for each in (node, *reals)) \
            or not all(_takes(each, scale.size) for each in products):
        return False
    top = np.float32(scale.max())
    rank = (of_constant(products[0].inputs[1]) or _missing()).levels.ndim
    factors = edit.constant((top / scale).reshape(-1, *[1] * (rank - 2)), f"{node.name}:factors")
    place.replace_input_with(0, edit.insert(place, "Mul", [made, factors], like=made.name))
    _one_scale(edit, (node, *reals), top, zero[0])
    for product in products:
        _scaled(edit, product, scale / top)
    edit.note(f"the scales of {node.name or node.outputs[0].name!r}, one for each channel, are in the weights before "
              f"and behind it")
    return True


def _before(edit: Edit, node: ir.Node) -> tuple[ir.Value | None, ir.Node]:
    """Return the convolution's result, or the input, that is quantised, and the first node behind it."""
    value, place = node.inputs[0], node
    while value is not None and len(readers(value)) == 1 and not edit.is_output(value):
        maker = value.producer()
        if maker is None or conv_of_levels(edit, value) is not None:
            return value, place
        if maker.domain or maker.op_type not in _ALIKE or any(output.uses() for output in maker.outputs[1:]):
            return None, node
        value, place = maker.inputs[0], maker
    return None, node


def _takes(node: ir.Node, channels: int) -> bool:
    """Tell whether a node is a Conv of so many channels, in groups or not, by constant levels."""
    held = of_constant(node.inputs[1]) if not node.domain and node.op_type == "Conv" else None
    return held is not None and held.levels.ndim > 2 and held.levels.shape[1] * attribute(node, "group", 1) == channels


def _one_scale(edit: Edit, nodes: Sequence[ir.Node], scale: np.float32, zero: np.generic) -> None:
    parameters = [edit.constant(np.asarray(each), nodes[0].name) for each in (scale, zero)]
    for node in nodes:
        for index, each in enumerate(parameters, 1):
            node.replace_input_with(index, each)
        node.attributes.pop("axis", None)


def _scaled(edit: Edit, node: ir.Node, factor: np.ndarray) -> None:
    """Multiply the weights of a Conv by a number for each of its input channels."""
    held = of_constant(node.inputs[1]) or _missing()
    rank, outputs, groups = held.levels.ndim, len(held.levels), attribute(node, "group", 1)
    # A row of factors for each output channel: those of the input channels of its group.
    each = np.repeat(factor.reshape(groups, -1), outputs // groups, axis=0)
    if each.shape[1] == 1 and rescaled(edit, ConvOfLevels(node, outputs, rank, np.zeros(outputs, np.float32)),
                                       each.ravel()):
        return
    levels, scale = requantised(held.real * each.reshape(*each.shape, *[1] * (rank - 2)).astype(np.float32), 0)
    name = node.inputs[1].name if node.inputs[1] is not None else node.name
    node.replace_input_with(1, edit.insert(node, "DequantizeLinear", [
        edit.constant(levels, f"{name}:levels"), edit.constant(scale, f"{name}:scale"),
        edit.constant(np.zeros(outputs, np.int8), f"{name}:zero")], {"axis": 0}, like=name))
    edit.note(f"weights of {node.name or node.outputs[0].name!r} are requantised, since what they multiply has a scale "
              f"for each channel: each moves by up to half of its channel's largest / 127")


def _missing() -> ConstantLevels:
    raise LookupError("A Conv that was found to have constant levels must have some")


CHANNELS = Rule("channels", "An activation between convolutions has one scale, not one for each channel",
                "NOT exact: it is multiplied in the scales of the weights before it, and divided in those behind it, "
                "which a depthwise Conv has and weights of any other do not: these are requantised; a note says so",
                _apply, exact=False)
