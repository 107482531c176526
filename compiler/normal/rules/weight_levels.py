"""Weights are int8 levels of zero point 0, with one scale or one per channel, however many bits the file gives them."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.constant_levels import (
    ConstantLevels,
    lattice,
    levels_of_steps,
    of_constant,
    requantised,
)
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    WEIGHTS,
    attribute,
    constant,
    is_constant,
    is_dequantise,
    source,
    weight_axis,
)

__all__ = ["BLOCKS", "WEIGHT_LEVELS"]


def _apply(edit: Edit) -> int:
    weights_alone = all(node.op_type != "QuantizeLinear" for node in edit.nodes())
    return sum(_exact(edit, node) or (weights_alone and _floats(edit, node)) for node in edit.nodes()
               if _weighted(node))


def _weighted(node: ir.Node) -> bool:
    return not node.domain and node.op_type in WEIGHTS and len(node.inputs) > 1 and node.inputs[1] is not None


def _exact(edit: Edit, node: ir.Node) -> bool:
    """Give a product int8 weights that are the file's to the bit; tell whether there were others."""
    value = node.inputs[1]
    assert value is not None
    if is_constant(value):
        return source(node.inputs[0]) is not None and _on_lattice(edit, node, value)
    maker = value.producer()
    if not is_dequantise(maker) or not is_constant(maker.inputs[0]):
        return False
    kind = maker.inputs[0].dtype
    if kind == ir.DataType.INT32 or (kind in (ir.DataType.INT8, ir.DataType.UINT8) and not attribute(
            maker, "block_size", 0) and not _shifts(maker)):
        return False
    held = of_constant(value)
    scales = None if held is None else held.axis_of_scales()
    if held is None or scales is None:
        return False
    difference = held.difference
    if difference.min(initial=0) < -128 or difference.max(initial=0) > 127:
        return False
    return _replaced(edit, node, difference.astype(np.int8), *scales)


def _floats(edit: Edit, node: ir.Node) -> bool:
    """Give a product of floats the floats that weights in blocks along its sum are; tell whether there were such."""
    held = of_constant(node.inputs[1])
    if held is None or held.axis_of_scales() is not None or held.levels.ndim < 2:
        return False
    assert node.inputs[1] is not None
    node.replace_input_with(1, edit.constant(held.real.astype(np.float32), f"{node.inputs[1].name}:floats"))
    return True


def _shifts(maker: ir.Node | None) -> bool:
    """Tell whether weights have a zero point other than 0."""
    zero = constant(maker.inputs[2]) if maker is not None and len(maker.inputs) > 2 else None
    return zero is not None and bool(zero.any())


def _on_lattice(edit: Edit, node: ir.Node, value: ir.Value) -> bool:
    """Make floats that are levels times a scale, or one per output channel, such levels."""
    values = constant(value)
    if values is None or values.dtype != np.float32 or values.ndim < 2 or not values.size:
        return False
    axis = weight_axis(node, values.ndim)
    found = _with_its_bias(node, values, axis) or _whole(values, _INT8) or _by_channel(node, values, axis, _INT8) \
        or _whole(values, _NINE_BITS) or _by_channel(node, values, axis, _NINE_BITS)
    return found is not None and _replaced(edit, node, *found)


_Levels = tuple[np.ndarray, np.ndarray, int | None]
_INT8, _NINE_BITS = 127, 255
_LOOKED_AT = 4096


def _with_its_bias(node: ir.Node, values: np.ndarray, axis: int) -> _Levels | None:
    """Return the levels whose scales, times that of the input, are those of a bias of int32."""
    bias, x = of_constant(node.inputs[2] if len(node.inputs) > 2 else None), source(node.inputs[0])
    scale = None if x is None else constant(x.inputs[1])
    if bias is None or scale is None or bias.levels.dtype != np.int32 or not scale or node.op_type == "ConvTranspose":
        return None
    lines = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    if bias.scale.size == 1:
        lines = lines.reshape(1, -1)
    if bias.scale.size != len(lines):
        return None
    found = levels_of_steps(lines, bias.scale.ravel().astype(np.float64) / scale, _NINE_BITS)
    if found is None:
        return None
    levels = np.moveaxis(found[0].reshape(np.moveaxis(values, axis, 0).shape), 0, axis)
    return (levels, found[1].reshape(()), None) if bias.scale.size == 1 else (levels, found[1], axis)


def _whole(values: np.ndarray, most: int) -> _Levels | None:
    """Return levels of one scale; None of floats that have none."""
    if np.unique(np.abs(values.flat[:_LOOKED_AT])).size > most + 2:
        return None
    found = lattice(values.reshape(1, -1), 0, most)
    return None if found is None else (found[0].reshape(values.shape), found[1].reshape(()), None)


def _by_channel(node: ir.Node, values: np.ndarray, axis: int, most: int) -> _Levels | None:
    """Return levels with a scale for each output channel; None of floats that have none."""
    if node.op_type == "ConvTranspose" and attribute(node, "group", 1) != 1:
        return None
    found = lattice(values, axis, most)
    return None if found is None else (*found, axis)


def _replaced(edit: Edit, node: ir.Node, levels: np.ndarray, scale: np.ndarray, axis: int | None) -> bool:
    """Let a product read a new DequantizeLinear of ``levels``, int8 or else uint8; tell whether one holds them."""
    old = node.inputs[1]
    assert old is not None
    name, least, most = old.name, int(levels.min(initial=0)), int(levels.max(initial=0))
    if most - least > _NINE_BITS:
        return False
    kind, zero = (np.int8, 0) if -_INT8 - 1 <= least and most <= _INT8 else (np.uint8, -least)
    new = edit.insert(node, "DequantizeLinear", [
        edit.constant((levels.astype(np.int32) + zero).astype(kind), f"{name}:levels"),
        edit.constant(np.asarray(scale, np.float32), f"{name}:scale"),
        edit.constant(np.full(np.shape(scale), zero, kind), f"{name}:zero")],
        {} if axis is None else {"axis": axis}, like=name)
    node.replace_input_with(1, new)
    return True


WEIGHT_LEVELS = Rule(
    "weights", "Weights are int8 levels of zero point 0 where those hold them: of 2, 4 and 8 bits with any zero point, "
    "in blocks of equal scales, and floats that are levels times a scale, or one per channel (uint8 where int8 does "
    "not hold those); blocks are floats where nothing else is quantised",
    "q - z is the same number, and (q - z) · scale in float32 the same float", _apply)


def _apply_blocks(edit: Edit) -> int:
    return sum(_coarser(edit, node) for node in edit.nodes() if _weighted(node))


def _coarser(edit: Edit, node: ir.Node) -> bool:
    """Give a product whose weights have scales along the sum int8 weights with a scale per output channel."""
    held: ConstantLevels | None = of_constant(node.inputs[1])
    maker = None if node.inputs[1] is None else node.inputs[1].producer()
    if held is None or maker is None or held.axis_of_scales() is not None or source(node.inputs[0]) is None \
            or held.levels.ndim < 2 or (node.op_type == "ConvTranspose" and attribute(node, "group", 1) != 1):
        return False
    axis = weight_axis(node, held.levels.ndim)
    levels, scale = requantised(held.real, axis)
    real = levels.astype(np.float32) * scale.reshape([-1 if i == axis else 1 for i in range(levels.ndim)])
    worst = float(np.abs(real - held.real).max(initial=0) / max(float(np.abs(held.real).max(initial=0)), 1e-30))
    edit.note(f"weights of {node.name or node.outputs[0].name!r} have scales in blocks along their sum, which no int8 "
              f"form holds: requantised with a scale per output channel, off by at most {worst:.1%} of the largest")
    return _replaced(edit, node, levels, scale, axis)


BLOCKS = Rule("blocks", "Weights with scales along their sum are requantised, with a scale per output channel",
              "NOT exact: each weight moves by up to half of its channel's largest / 127; a note says so",
              _apply_blocks, exact=False)
