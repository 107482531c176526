"""A convolution whose taps lie far apart is one of a single tap over its taps' images, one behind the other.

Networks over time double the dilation from layer to layer: three taps 4,096 frames apart. A tile that holds all that
lies between two taps has no place on a machine, and most of it is not read.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.constant_levels import ConstantLevels, of_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.ranks import sizes_of
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, constant, levels_behind, source

__all__ = ["FAR_TAPS"]

_FAR, _BYTES = 1024, 1 << 16
"""Places between the first tap and the last, or bytes of all channels between them, from which taps are far: a machine
reads nearer ones in place, in two thirds of the cycles, but of more no tile may hold."""

_BOUNDS_ARE_INPUTS = 11

_ZEROS = 48
"""Places of padding that one Pad makes, and that are joined to what is padded as often as they are needed."""


def _apply(edit: Edit) -> int:
    return 0 if edit.opset < _BOUNDS_ARE_INPUTS else sum(
        _gathered(edit, node) for node in edit.nodes() if not node.domain and node.op_type == "Conv")


def _gathered(edit: Edit, node: ir.Node) -> bool:
    """Replace a Conv of levels with far taps along one axis; tell whether it is one."""
    x, weights, sizes = node.inputs[0], of_constant(node.inputs[1]), sizes_of(node.inputs[0])
    if x is None or weights is None or sizes is None or source(x) is None or None in sizes \
            or attribute(node, "group", 1) != 1 or attribute(node, "auto_pad", "NOTSET") != "NOTSET" \
            or len(sizes) != weights.levels.ndim:
        return False
    held = weights.axis_of_parameters()
    extents = [each for each in sizes if each is not None]
    axis = _far_axis(node, weights, extents[1])
    if axis is None or held is None or held[2] not in (None, 0):
        return False
    taps = _taps(node, weights, extents, axis)
    if not taps:
        return False
    reads = source(x)
    assert reads is not None
    padded = _padded(edit, node, reads, extents, axis)
    images = [_image(edit, node, padded, axis, bounds) for _, bounds in taps]
    joined = images[0] if len(images) == 1 else _moved(edit, node, "Concat", images, {"axis": 1})
    real = edit.insert(node, "DequantizeLinear", [joined, *reads.inputs[1:]], like=x.name)
    levels = np.concatenate([np.take(weights.levels, [place], axis) for place, _ in taps], 1)
    stated = levels_behind(node.inputs[1])
    assert stated is not None
    flat = edit.insert(
        node, "DequantizeLinear", [edit.constant(np.ascontiguousarray(levels), stated.inputs[0].name),
                                   *stated.inputs[1:]],
        {name: each.value for name, each in stated.attributes.items()}, like=node.inputs[1].name)
    result = edit.insert(node, "Conv", [real, flat, *node.inputs[2:]], _of_one_tap(node, weights, axis),
                         like=node.name)
    edit.replace(node, result)
    return True


def _far_axis(node: ir.Node, weights: ConstantLevels, channels: int) -> int | None:
    """Return the axis along which a window's taps are far apart; None if there is none."""
    count = weights.levels.ndim - 2
    dilations = attribute(node, "dilations", (1,) * count)
    for place, (taps, gap) in enumerate(zip(weights.levels.shape[2:], dilations, strict=True)):
        reach = (taps - 1) * gap
        if gap > 1 and (reach >= _FAR or reach * channels >= _BYTES):
            return place + 2
    return None


def _taps(node: ir.Node, weights: ConstantLevels, sizes: Sequence[int], axis: int,
          ) -> list[tuple[int, tuple[int, int, int]]]:
    """Return the taps that meet more than padding, and (start, end, step) of what each meets of the padded input."""
    count = len(sizes) - 2
    step, gap = (attribute(node, name, (1,) * count)[axis - 2] for name in ("strides", "dilations"))
    pads = attribute(node, "pads", (0,) * 2 * count)
    before, after = pads[axis - 2], pads[axis - 2 + count]
    last = (sizes[axis] + before + after - (weights.levels.shape[axis] - 1) * gap - 1) // step * step
    return [(tap, (tap * gap, tap * gap + last + 1, step)) for tap in range(weights.levels.shape[axis])
            if last >= 0 and tap * gap < before + sizes[axis] and tap * gap + last >= before]


def _padded(edit: Edit, node: ir.Node, reads: ir.Node, sizes: Sequence[int], axis: int) -> ir.Value:
    """Return the levels that a DQ reads with a Conv's padding along an axis: levels of zero that are joined to them."""
    count, x, zero = len(sizes) - 2, reads.inputs[0], constant(reads.inputs[2])
    pads = attribute(node, "pads", (0,) * 2 * count)
    assert x is not None
    assert zero is not None
    first, last = pads[axis - 2], pads[axis - 2 + count]
    if not first + last:
        return x
    whole = np.zeros(2 * len(sizes), np.int64)
    whole[len(sizes) + axis] = _ZEROS
    numbers = [edit.constant(each, f"{x.name}:pads") for each in (whole, zero.reshape(()))]
    block = _moved(edit, node, "Pad", [_image(edit, node, x, axis, (0, 1, 1)), *numbers])
    before, behind = (_zeros(edit, node, block, axis, extent) for extent in (first, last))
    return _moved(edit, node, "Concat", [*before, x, *behind], {"axis": axis})


def _zeros(edit: Edit, node: ir.Node, block: ir.Value, axis: int, extent: int) -> list[ir.Value]:
    """Return as many places as are padded, in pieces of a block whose first place is none of them."""
    sizes = [_ZEROS] * (extent // _ZEROS) + [extent % _ZEROS] * bool(extent % _ZEROS)
    images = {size: _image(edit, node, block, axis, (1, 1 + size, 1)) for size in sorted(set(sizes))}
    return [images[size] for size in sizes]


def _moved(edit: Edit, node: ir.Node, kind: str, levels: Sequence[ir.Value],
           attributes: Mapping[str, object] | None = None) -> ir.Value:
    """Return levels that a move makes of levels, the first of which have their type."""
    made = edit.insert(node, kind, list(levels), dict(attributes or {}), like=levels[0].name)
    made.type = levels[0].type
    return made


def _image(edit: Edit, node: ir.Node, x: ir.Value, axis: int, bounds: tuple[int, int, int]) -> ir.Value:
    """Return what one tap meets."""
    start, end, step = (edit.constant(np.array([each], np.int64), f"{x.name}:bounds") for each in bounds)
    along = edit.constant(np.array([axis], np.int64), f"{x.name}:axes")
    return _moved(edit, node, "Slice", [x, start, end, along, step])


def _of_one_tap(node: ir.Node, weights: ConstantLevels, axis: int) -> dict[str, object]:
    """Return the attributes of a Conv with one tap along an axis."""
    count = weights.levels.ndim - 2
    found = {name: list(attribute(node, name, default)) for name, default in (
        ("kernel_shape", weights.levels.shape[2:]), ("strides", (1,) * count), ("dilations", (1,) * count),
        ("pads", (0,) * 2 * count))}
    for name in ("kernel_shape", "strides", "dilations"):
        found[name][axis - 2] = 1
    found["pads"][axis - 2] = found["pads"][axis - 2 + count] = 0
    return dict(found)


FAR_TAPS = Rule("far taps", "A Conv of levels whose taps lie far apart has one tap, over their images",
                "the same products are summed; taps that meet padding alone add 0", _apply)
