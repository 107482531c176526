"""Sums and means of several tensors, also of such as were stacked along a short axis, are Adds of two."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.inserted_moves import with_axes, without_axes
from tilewright.compiler.normal.ranks import sizes_of
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, constant, is_dequantise, is_quantise, per_tensor, readers

__all__ = ["STACKED"]

_LEAST_RANK = 5
_MOST = 4
_BROADCASTS_FROM = 8
"""The opset from which on a Sum repeats dimensions of one, as an Add does."""

_ELEMENTWISE = ("Add", "Div", "Mul", "Sub")


def _apply(edit: Edit) -> int:
    return sum(_taken_apart(edit, node) if node.op_type == "ReduceSum" else _by_twos(edit, node)
               for node in edit.nodes() if node.op_type in ("ReduceSum", "Sum", "Mean") and not node.domain)


def _by_twos(edit: Edit, node: ir.Node) -> bool:
    """Replace a Sum or Mean of several tensors by Adds, from the first on, and a Div; tell whether it is one."""
    values = list(node.inputs)
    if len(values) < 2 or edit.opset < _BROADCASTS_FROM or any(
            each is None or each.dtype is not ir.DataType.FLOAT for each in values):
        return False
    total = values[0]
    for value in values[1:]:
        total = edit.insert(node, "Add", [total, value])
        total.type = node.outputs[0].type
    if node.op_type == "Mean":
        count = edit.constant(np.asarray(len(values), np.float32), node.outputs[0].name)
        total = edit.insert(node, "Div", [total, count])
    assert total is not None
    total.type, total.shape = node.outputs[0].type, node.outputs[0].shape
    edit.replace(node, total)
    return True


def _taken_apart(edit: Edit, node: ir.Node) -> bool:
    """Replace such a sum by Adds; tell whether it is one."""
    value = node.inputs[0]
    sizes, axes = sizes_of(value), _axes(node)
    if value is None or sizes is None or axes is None or len(axes) != 1 or len(sizes) < _LEAST_RANK:
        return False
    axis = axes[0] % len(sizes)
    count = sizes[axis]
    if count is None or not 1 < count <= _MOST:
        return False
    parts = [_part(edit, node, value, axis, index) for index in range(count)]
    total = parts[0]
    for part in parts[1:]:
        total = edit.insert(node, "Add", [total, part])
    if attribute(node, "keepdims", 1):
        total = with_axes(edit, node, total, [axis])
    edit.replace(node, total)
    return True


def _axes(node: ir.Node) -> list[int] | None:
    """Return the axes of a ReduceSum, an attribute or an input; None if they are not known."""
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        given = constant(node.inputs[1])
        return None if given is None else [int(each) for each in given.flat]
    given = attribute(node, "axes")
    return None if given is None else [int(each) for each in given]


def _part(edit: Edit, place: ir.Node, value: ir.Value, axis: int, index: int) -> ir.Value:
    """Return element ``index`` of ``value`` along ``axis``, which goes: what it was made of, where that is known."""
    maker, sizes = value.producer(), sizes_of(value)
    if maker is not None and not maker.domain and sizes is not None and not value.is_graph_output():
        if maker.op_type == "Concat" and attribute(maker, "axis") in (axis, axis - len(sizes)) \
                and all(_size(each, axis, len(sizes)) == 1 for each in maker.inputs):
            return _without_axis(edit, place, maker.inputs[index], axis)
        if (is_quantise(maker) or is_dequantise(maker)) and per_tensor(maker):
            part = _part(edit, place, _known(maker.inputs[0]), axis, index)
            result = edit.insert(place, maker.op_type, [part, *maker.inputs[1:]])
            result.type = value.type
            return result
        lengths = [_size(each, axis, len(sizes)) for each in maker.inputs]
        if maker.op_type in _ELEMENTWISE and len(readers(value)) == 1 and set(lengths) <= {1, sizes[axis]}:
            return edit.insert(place, maker.op_type, [
                _without_axis(edit, place, each, axis) if length == 1 else _part(edit, place, _known(each), axis, index)
                for each, length in zip(maker.inputs, lengths, strict=True)])
    ends = [edit.constant(np.array([each], np.int64), f"{value.name}:part") for each in (index, index + 1, axis)]
    return without_axes(edit, place, edit.insert(place, "Slice", [value, *ends]), [axis])


def _size(value: ir.Value | None, axis: int, rank: int) -> int | None:
    """Return the extent of a value of ``rank`` dimensions along an axis; None of another, or if it is open."""
    sizes = sizes_of(value)
    return sizes[axis] if sizes is not None and len(sizes) == rank else None


def _without_axis(edit: Edit, place: ir.Node, value: ir.Value | None, axis: int) -> ir.Value:
    """Return a value without its dimension of one, or what an Unsqueeze gave that dimension."""
    known = _known(value)
    maker = known.producer()
    if maker is not None and maker.op_type == "Unsqueeze" and not maker.domain and _axes(maker) == [axis]:
        return _known(maker.inputs[0])
    return without_axes(edit, place, known, [axis])


def _known(value: ir.Value | None) -> ir.Value:
    assert value is not None
    return value


STACKED = Rule("stacked", "A Sum or Mean of several tensors, and a ReduceSum of two to four that lie along an axis of "
               "their own, in five dimensions or more, is Adds of them", "ONNX leaves the order of sums open, and "
               "element by element nothing else is computed", _apply)
