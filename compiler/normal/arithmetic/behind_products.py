"""Constants per channel behind a convolution or Gemm of levels: what is added is its bias, a factor in its scales."""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.constant_levels import of_constant, real_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, levels_behind, readers, source, weight_axis

__all__ = ["FACTORS", "OFFSETS", "ConvOfLevels", "conv_of_levels", "rescaled"]

_CHANNELS = 1
_MOST = 127
_GEMM = 2
_NORMALISATION = 5
"""Inputs of a BatchNormalization."""


@dataclass(frozen=True, slots=True)
class ConvOfLevels:
    """A convolution, or a Gemm, of levels by constant levels that one node reads, with its bias as floats.

    ``axis`` is that of the output channels of its weights.
    """

    node: ir.Node
    channels: int
    rank: int
    bias: np.ndarray
    axis: int = 0


def conv_of_levels(edit: Edit, value: ir.Value | None, *, floats: bool = False) -> ConvOfLevels | None:
    """Return the convolution or Gemm that makes ``value``, of ``floats`` too; None of another value."""
    node = None if value is None else value.producer()
    if value is None or node is None or node.domain or node.op_type not in ("Conv", "ConvTranspose", "Gemm") \
            or edit.is_output(value) or len(readers(value)) != 1 or (source(node.inputs[0]) is None and not floats):
        return None
    held = of_constant(node.inputs[1])
    rank = 0 if held is None else held.levels.ndim
    if held is None or (rank != _GEMM if node.op_type == "Gemm" else rank <= _GEMM) \
            or any(attribute(node, name, 1) != 1 for name in ("alpha", "beta")):
        return None
    axis = weight_axis(node, rank)
    channels = held.levels.shape[axis] * (attribute(node, "group", 1) if node.op_type == "ConvTranspose" else 1)
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    real = np.zeros(channels, np.float32) if bias is None else real_constant(bias)
    return None if real is None or real.shape != (channels,) else ConvOfLevels(node, channels, rank, real, axis)


def _per_channel(value: np.ndarray | None, product: ConvOfLevels) -> np.ndarray | None:
    """Return a constant beside a convolution's result as one number for each channel; None of another."""
    if value is None or value.dtype != np.float32 or value.ndim > product.rank or not np.isfinite(value).all():
        return None
    full = (1,) * (product.rank - value.ndim) + value.shape
    if any(extent != 1 for axis, extent in enumerate(full) if axis != _CHANNELS) \
            or full[_CHANNELS] not in (1, product.channels):
        return None
    return np.broadcast_to(value.ravel(), product.channels)


def _apply_offsets(edit: Edit) -> int:
    return sum(_offset(edit, node) for node in edit.nodes()
               if not node.domain and node.op_type in ("Add", "Sub") and node.graph is not None)


def _offset(edit: Edit, node: ir.Node) -> bool:
    """Make what is added to a convolution, or taken from it, its bias; tell whether there was something."""
    for first, second in ((0, 1), (1, 0))[:1 if node.op_type == "Sub" else 2]:
        product = conv_of_levels(edit, node.inputs[first], floats=True)
        offset = None if product is None else _per_channel(real_constant(node.inputs[second]), product)
        if product is None or offset is None or product.node.op_type == "Gemm":
            continue
        held = of_constant(node.inputs[second])
        if node.op_type == "Add" and held is not None and held.levels.dtype == np.int32 and not product.bias.any():
            new = _levels_of_bias(edit, node, held.levels, held.scale, product.channels)
        else:
            sign = np.float32(-1 if node.op_type == "Sub" else 1)
            new = edit.constant(product.bias + sign * offset, f"{node.outputs[0].name}:bias")
        _with_inputs(product.node, 2, new)
        edit.replace(node, product.node.outputs[0])
        return True
    return False


def _levels_of_bias(edit: Edit, node: ir.Node, levels: np.ndarray, scale: np.ndarray, channels: int) -> ir.Value:
    """Add a DequantizeLinear of a bias of int32 that stood behind a convolution."""
    steps = scale.ravel() if scale.size > 1 else scale.reshape(())
    name = node.outputs[0].name
    return edit.insert(node, "DequantizeLinear", [
        edit.constant(np.broadcast_to(levels.ravel(), channels), f"{name}:bias"),
        edit.constant(steps.astype(np.float32), f"{name}:scale"),
        edit.constant(np.zeros(steps.shape, np.int32), f"{name}:zero")], {"axis": 0} if steps.ndim else {}, like=name)


def _with_inputs(node: ir.Node, index: int, value: ir.Value) -> None:
    if len(node.inputs) <= index:
        node.resize_inputs(index + 1)
    node.replace_input_with(index, value)


OFFSETS = Rule("offsets", "A constant per channel that is added to a Conv by constant levels is its bias",
               "a Conv is a sum of floats whose order ONNX leaves open, and its bias is one of them", _apply_offsets)


def _apply_factors(edit: Edit) -> int:
    return sum(_factor(edit, node) for node in edit.nodes() if not node.domain and node.graph is not None
               and node.op_type in ("Mul", "Div", "BatchNormalization"))


def _factor(edit: Edit, node: ir.Node) -> bool:
    """Multiply the scales of a convolution's weights by constants behind it; tell whether there were some."""
    product, found = conv_of_levels(edit, node.inputs[0]), None
    if product is not None:
        found = _normalisation(node, product) if node.op_type == "BatchNormalization" else _multiplied(node, product)
    elif node.op_type == "Mul" and (product := conv_of_levels(edit, node.inputs[1])) is not None:
        found = _multiplied(node, product, 0)
    if product is None or found is None or product.node.op_type == "ConvTranspose":
        return False
    factor, offset = found
    if (factor == 1).all() and not offset.any():    # a bias of levels stays one
        edit.replace(node, product.node.outputs[0])
        return True
    if not rescaled(edit, product, factor):
        return False
    bias = product.bias.astype(np.float64) * factor + offset
    _with_inputs(product.node, 2, edit.constant(bias.astype(np.float32), f"{node.outputs[0].name}:bias"))
    edit.note(f"what {node.name or node.outputs[0].name!r} ({node.op_type}) multiplies by is in the scales of the "
              f"weights before it, each rounded once more to float32")
    edit.replace(node, product.node.outputs[0])
    return True


def _multiplied(node: ir.Node, product: ConvOfLevels, index: int = 1) -> tuple[np.ndarray, np.ndarray] | None:
    factor = _per_channel(real_constant(node.inputs[index]), product)
    if factor is None:
        return None
    with np.errstate(divide="ignore"):
        wide = factor.astype(np.float64)
        return wide if node.op_type == "Mul" else 1 / wide, np.zeros(product.channels)


def _normalisation(node: ir.Node, product: ConvOfLevels) -> tuple[np.ndarray, np.ndarray] | None:
    """Return factor and offset of a BatchNormalization: gain / sqrt(variance + epsilon), and bias - mean of that."""
    values = [real_constant(each) for each in node.inputs[1:]]
    if attribute(node, "training_mode", 0) or len(node.inputs) != _NORMALISATION \
            or any(output.uses() for output in node.outputs[1:]) \
            or any(each is None or each.shape != (product.channels,) for each in values):
        return None
    gain, bias, mean, variance = (np.asarray(each, np.float64) for each in values)
    with np.errstate(all="ignore"):
        factor = gain / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
        return factor, bias - mean * factor


def rescaled(edit: Edit, product: ConvOfLevels, factor: np.ndarray) -> bool:
    """Give a Conv weights whose scale of each channel is multiplied; tell whether int8 and float32 hold them."""
    weights, maker = product.node.inputs[1], levels_behind(product.node.inputs[1])
    held = of_constant(weights)
    scales = None if held is None else held.axis_of_scales()
    if weights is None or maker is None or held is None or scales is None \
            or scales[1] not in (None, product.axis):
        return False
    difference = held.difference
    least, most = difference.min(initial=0), difference.max(initial=0)
    if not np.isfinite(factor).all() or not factor.all() or most > _MOST \
            or least < -_MOST - int((factor > 0).all()):
        return False
    new = (np.broadcast_to(scales[0], product.channels).astype(np.float64) * np.abs(factor)).astype(np.float32)
    if not np.isfinite(new).all() or not new.all():
        return False
    shape = [-1 if axis == product.axis else 1 for axis in range(product.rank)]
    signs = np.sign(factor).astype(np.int32).reshape(shape)
    name = weights.name
    made = edit.insert(product.node, "DequantizeLinear", [
        edit.constant((difference * signs).astype(np.int8), f"{name}:levels"), edit.constant(new, f"{name}:scale"),
        edit.constant(np.zeros(product.channels, np.int8), f"{name}:zero")], {"axis": product.axis}, like=name)
    product.node.replace_input_with(1, made)
    return True


FACTORS = Rule("factors", "A constant per channel that a Conv or Gemm of levels is multiplied by, as in a "
               "BatchNormalization, is in the scales of its weights", "NOT exact: each scale is rounded to float32 "
               "once more, by 2⁻²⁴ of its size; a note says so", _apply_factors, exact=False)
