"""Values that an Expand or a Tile repeats, and that need no copies: rules that ask for shapes, once those are known."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import is_constant, is_dequantise, is_quantise, same_parameters, source

__all__ = ["PIXELS", "REPEATS"]

_ARITHMETIC = ("Add", "Sub", "Mul", "Div")
_IMAGE_RANK = 4
_Shape = tuple[int, ...]


def _shape(value: ir.Value | None) -> _Shape | None:
    """Return the shape of a value; None if it is not known to be of numbers."""
    shape = None if value is None else value.shape if not is_constant(value) else value.const_value.shape
    return tuple(map(int, shape.numpy())) if shape is not None and shape.is_static() else None


def _apply_repeats(edit: Edit) -> int:
    found = [node for node in edit.nodes() if not node.domain and node.op_type in _ARITHMETIC and len(node.inputs) == 2]
    return sum(_skipped(edit, node, position) for node in found for position in (0, 1))


def _skipped(edit: Edit, node: ir.Node, position: int) -> bool:
    """Let arithmetic read what is before an Expand, perhaps of levels, if it repeats that itself."""
    expand = _without_levels(node.inputs[position])
    if expand is None or expand.domain or expand.op_type != "Expand":
        return False
    shapes = _shape(expand.inputs[0]), _shape(node.inputs[1 - position]), _shape(node.outputs[0])
    if shapes[0] is None or shapes[1] is None or shapes[2] is None:
        return False
    try:
        repeats = np.broadcast_shapes(shapes[0], shapes[1]) == shapes[2]
    except ValueError:
        return False
    if repeats:
        node.replace_input_with(position, _real(edit, node.inputs[position], expand))
    return repeats


def _real(edit: Edit, value: ir.Value | None, expand: ir.Node) -> ir.Value | None:
    """Return what an Expand repeats; if that is integers, dequantised as ``value``, its result, is."""
    maker = None if value is None else value.producer()
    if not is_dequantise(maker) or maker.inputs[0] is not expand.outputs[0]:
        return expand.inputs[0]
    new = edit.insert(expand, "DequantizeLinear", [expand.inputs[0], *maker.inputs[1:]])
    new.type, new.shape = maker.outputs[0].type, None if expand.inputs[0] is None else expand.inputs[0].shape
    return new


def _without_levels(value: ir.Value | None) -> ir.Node | None:
    """Return what makes a value, or what a Q and DQ behind that, of the levels that it reads itself, are of."""
    node = None if value is None else value.producer()
    if not is_dequantise(node) or node.inputs[0] is None:
        return node
    quantise = node.inputs[0].producer()
    if quantise is not None and quantise.op_type == "Expand":
        return quantise
    if not is_quantise(quantise) or quantise.inputs[0] is None or not same_parameters(node, quantise):
        return None
    maker = quantise.inputs[0].producer()
    before = None if maker is None or not maker.inputs else source(maker.inputs[0])
    return maker if before is not None and same_parameters(before, node) else None


REPEATS = Rule("repeats", "No sum or product reads an Expand of what it repeats itself",
               "broadcasting is what an Expand does", _apply_repeats)


def _apply_pixels(edit: Edit) -> int:
    return sum(_resized(edit, node) for node in edit.nodes() if not node.domain and node.op_type in ("Expand", "Tile"))


def _resized(edit: Edit, node: ir.Node) -> bool:
    """Replace a Tile or Expand of levels of one pixel to an image by a nearest Resize."""
    x, result = node.inputs[0], node.outputs[0]
    before, behind = _shape(x), _shape(result)
    if x is None or before is None or behind is None or len(before) != _IMAGE_RANK or len(behind) != _IMAGE_RANK \
            or before[0] != 1 or before[2:] != (1, 1) or before[:2] != behind[:2] or min(behind) < 1 \
            or (source(x) is None and x.dtype not in (ir.DataType.INT8, ir.DataType.UINT8)):
        return False
    sizes = edit.constant(np.array([1, 1, *behind[2:]], np.float32), f"{result.name}:scales")
    dequantise = source(x) if result.is_graph_output() else None
    levels = None if dequantise is None else dequantise.inputs[0]
    new = edit.insert(node, "Resize", [x if levels is None else levels, None, sizes], {
        "mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"})
    maker = new.producer()
    if levels is not None and dequantise is not None:   # The host dequantises what leaves the model.
        new.type, new.shape = levels.type, result.shape
        new = edit.insert(node, "DequantizeLinear", [new, *dequantise.inputs[1:]])
    new.type, new.shape = result.type, result.shape
    name = node.name
    edit.replace(node, new)
    assert maker is not None
    maker.name = name
    return True


PIXELS = Rule("pixels", "A Tile or Expand of one pixel of levels to an image is a nearest Resize",
              "both store the pixel as often as it is there", _apply_pixels)
