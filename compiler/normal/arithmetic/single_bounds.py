"""Bounds of a tensor are one Relu or Clip, however many operators state them."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, constant, is_constant, readers

__all__ = ["BOUNDS"]

Bounds = tuple[ir.Value, np.float32, np.float32]
"""A bounded tensor, its least and its greatest value: float32 holds each level of 8 bits."""

_BOUNDS_ARE_INPUTS = 11
_RELU_OF_LEVELS = 14
_LEAST, _MOST = np.float32(-np.inf), np.float32(np.inf)


def _apply(edit: Edit) -> int:
    return sum(_stated(edit, node) for node in edit.nodes() if not node.domain and node.op_type in _READ)


def _stated(edit: Edit, node: ir.Node) -> bool:
    """Write a node, and what bounds its input alone, as one bound; tell whether that changes the graph."""
    found = _bounds(node)
    if found is None:
        return False
    x, least, most = found
    before = x.producer()
    inner = None if before is None or len(readers(x)) > 1 or edit.is_output(x) else _bounds(before)
    if inner is None and node.op_type in ("Relu", "Clip"):
        return False
    if inner is not None:
        x, (least, most) = inner[0], (np.clip(each, least, most) for each in inner[1:])
    new, name = _bounded(edit, node, x, np.float32(least), np.float32(most)), node.name
    edit.replace(node, new)
    maker = new.producer()
    assert maker is not None
    maker.name = name
    return True


def _bounded(edit: Edit, node: ir.Node, x: ir.Value, least: np.float32, most: np.float32) -> ir.Value:
    """Return ``x`` within bounds, by a node before ``node``."""
    kind = _kind(x)
    if least == 0 and most == _MOST and (kind == np.float32 or (kind == np.int8 and edit.opset >= _RELU_OF_LEVELS)):
        new = edit.insert(node, "Relu", [x], like=node.name)
    elif edit.opset < _BOUNDS_ARE_INPUTS:
        stated = {key: float(each) for key, each in (("min", least), ("max", most)) if np.isfinite(each)}
        new = edit.insert(node, "Clip", [x], stated, like=node.name)
    else:
        ends = [edit.constant(np.asarray(each, kind), f"{node.outputs[0].name}:bound") if np.isfinite(each) else None
                for each in (least, most)]
        new = edit.insert(node, "Clip", [x, *ends], like=node.name)
    new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
    return new


def _bounds(node: ir.Node) -> Bounds | None:
    """Return what a node bounds and by which numbers; None if it does not, or not by finite ones that are in order."""
    if node.domain or node.op_type not in _READ or not node.inputs or node.inputs[0] is None:
        return None
    x, *ends = node.inputs
    if node.op_type == "Relu" or (node.op_type == "LeakyRelu" and attribute(node, "alpha", 0.01) == 0):
        return (x, np.float32(0), _MOST) if _kind(x) is not None else None
    if node.op_type in ("Max", "Min"):
        return _largest(node)
    if node.op_type == "PRelu":
        slope = constant(ends[0])
        return (x, np.float32(0), _MOST) if slope is not None and not slope.any() and _kind(x) is not None else None
    if node.op_type == "Where":
        return _chosen(node)
    if node.op_type != "Clip" or node.attributes or _kind(x) is None:
        return None
    held = [None if each is None else constant(each) for each in ends]
    if any(each is not None and (array is None or array.size != 1 or array.dtype != _kind(x))
           for each, array in zip(ends, held, strict=True)):
        return None
    least, most = ((each.item() if each is not None else default)
                   for each, default in zip((*held, None, None), (_LEAST, _MOST), strict=False))
    return (x, np.float32(least), np.float32(most)) if least <= most else None


def _largest(node: ir.Node) -> Bounds | None:
    """Return the bound of a Max or Min of a tensor and a number; None of another."""
    if len(node.inputs) != 2:
        return None
    for x, other in (node.inputs, node.inputs[::-1]):
        bound = _number(x, other)
        if x is not None and bound is not None:
            return (x, bound, _MOST) if node.op_type == "Max" else (x, _LEAST, bound)
    return None


def _chosen(node: ir.Node) -> Bounds | None:
    """Return the bound of a Where that takes the greater, or the less, of a tensor and a number; None of another."""
    mask = None if node.inputs[0] is None else node.inputs[0].producer()
    if mask is None or mask.domain or mask.op_type not in _GREATER | _LESS:
        return None
    for x, other in (node.inputs[1:], node.inputs[:0:-1]):
        bound = _number(x, other)
        sides = [bound is not None and bool(_number(x, each) == bound) for each in mask.inputs]
        if x is None or bound is None or sum(sides) != 1 or mask.inputs[sides[0]] is not x:
            continue
        takes_greater = ((mask.op_type in _GREATER) == sides[1]) == (x is node.inputs[1])
        return (x, bound, _MOST) if takes_greater else (x, _LEAST, bound)
    return None


def _number(x: ir.Value | None, other: ir.Value | None) -> np.float32 | None:
    """Return the one finite number of a constant that does not change the shape of ``x``; None of another."""
    bound = constant(other)
    if x is None or bound is None or is_constant(x) or bound.size != 1 or bound.dtype != _kind(x) \
            or not np.isfinite(bound).all() or (bound.ndim and (x.shape is None or len(x.shape) < bound.ndim)):
        return None
    return np.float32(bound.item())


def _kind(x: ir.Value) -> np.dtype | None:
    """Return the type of floats or of levels of 8 bits; None of other numbers."""
    return _KINDS.get(x.dtype or ir.DataType.FLOAT)


_KINDS: dict[ir.DataType, np.dtype] = {ir.DataType.FLOAT: np.dtype(np.float32), ir.DataType.INT8: np.dtype(np.int8),
          ir.DataType.UINT8: np.dtype(np.uint8)}
_READ = frozenset({"Relu", "Clip", "LeakyRelu", "Max", "Min", "PRelu", "Where"})
_GREATER = frozenset({"Greater", "GreaterOrEqual"})
_LESS = frozenset({"Less", "LessOrEqual"})

BOUNDS = Rule("bounds", "A Max or Min with one number, a Where that takes the greater or the less of a tensor and one, "
              "a LeakyRelu or PRelu of slope 0, and several bounds in a row are one Relu or Clip",
              "each is the nearest number within its bounds, and bounds of bounds are bounds", _apply)
