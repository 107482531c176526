"""Operators that change nothing are not there."""

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.ranks import rank_of
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    attribute,
    constant,
    is_constant,
    is_dequantise,
    is_move,
    is_quantise,
    levels_behind,
    readers,
    same_parameters,
)

__all__ = ["IDLE"]

_ORDERED = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
"""Operators that keep the order of elements."""

_VIEWS = (*_ORDERED, "Expand")
"""Operators that hand on their input as it is where the shape stays."""

_UNDONE = {"Neg": "Neg", "Squeeze": "Unsqueeze"}
"""Operators that undo what another of the same axes did."""

_LAST = 2**31 - 1
"""The end of a Slice from here on is that of the axis."""

_NEUTRAL = {"Mul": 1.0, "Div": 1.0, "Pow": 1.0, "Add": 0.0, "Sub": 0.0}

_OF_ALL = ("Max", "Mean", "Min", "Sum")
"""Operators of any number of tensors, and of one they hand it on."""


def _apply(edit: Edit) -> int:
    return sum(_dropped(edit, node) for node in edit.nodes() if not node.domain and node.inputs)


def _dropped(edit: Edit, node: ir.Node) -> bool:
    if node.op_type == "Concat" and (full := [each for each in node.inputs if not _is_empty(each)]) \
            and len(full) < len(node.inputs):
        new = edit.insert(node, "Concat", full, {"axis": attribute(node, "axis", 1)})
        new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
        edit.replace(node, new)
        return True
    joined = _joined(node)
    x = _unchanged(node)
    if x is None or is_constant(x) or any(edit.is_output(each) for each in node.outputs) \
            or any(output.uses() for output in node.outputs[1:]) \
            or (levels_behind(x) is not None and len(readers(x)) > 1):
        return joined
    edit.redirect(node.outputs[0], x)
    edit.drop(node)
    return True


def _joined(node: ir.Node) -> bool:
    """Let a node read what the view or Transpose before it reads, if it can do both at once; tell whether it can."""
    if node.op_type == "Concat":
        return _concat_joined(node)
    before = node.inputs[0].producer() if node.inputs[0] is not None else None
    if before is None or before.domain or not before.inputs:
        return False
    if node.op_type == "Reshape" and before.op_type in _ORDERED:
        target = constant(node.inputs[1]) if len(node.inputs) > 1 else None
        if target is None or not target.all() or (target < 0).sum() > 1:
            return False
        node.replace_input_with(0, before.inputs[0])
        return True
    turn, first = attribute(node, "perm"), attribute(before, "perm")
    if not node.op_type == before.op_type == "Transpose" or turn is None or first is None or len(turn) != len(first):
        return False
    node.replace_input_with(0, before.inputs[0])
    node.attributes["perm"] = ir.AttrInt64s("perm", [first[axis] for axis in turn])
    return True


def _concat_joined(node: ir.Node) -> bool:
    """Let a Concat join what one before it joins, which nothing else reads; tell whether there was such."""
    for index, value in enumerate(node.inputs):
        before = None if value is None else value.producer()
        if value is None or before is None or before.domain or before.op_type != "Concat" or value.is_graph_output() \
                or len(readers(value)) > 1 or _axis(before) != _axis(node):
            continue
        parts = [*node.inputs[:index], *before.inputs, *node.inputs[index + 1:]]
        node.resize_inputs(len(parts))
        for place, part in enumerate(parts):
            node.replace_input_with(place, part)
        return True
    return False


def _axis(node: ir.Node) -> int:
    """Return the axis of a Concat, from the beginning where the rank of its result is known."""
    axis, rank = int(attribute(node, "axis", 1)), rank_of(node.outputs[0])
    return axis % rank if rank else axis


def _move_before(x: ir.Value) -> ir.Node | None:
    """Return what makes ``x``; of levels that are moved, and quantised by their own parameters again, the move."""
    node = x.producer()
    quantise = node.inputs[0].producer() if is_dequantise(node) and node.inputs[0] is not None else None
    if not is_quantise(quantise) or not same_parameters(quantise, node) or quantise.inputs[0] is None:
        return node
    move = quantise.inputs[0].producer()
    if move is None or not is_move(move) or move.inputs[0] is None:
        return node
    given = move.inputs[0].producer()
    return move if is_dequantise(given) and same_parameters(given, node) else node


def _unchanged(node: ir.Node) -> ir.Value | None:
    """Return the input that a node hands on as it is; None of a node that does something."""
    x, name = node.inputs[0], node.op_type
    if x is None:
        return None
    if name == "Identity" or (name in _OF_ALL and len(node.inputs) == 1):
        return x
    if name == "Dropout":
        training = constant(node.inputs[2]) if len(node.inputs) > 2 else None
        known = len(node.inputs) < 3 or node.inputs[2] is None or (training is not None and not training.any())
        return x if known else None
    if name == "Cast":
        return _of_type(x, attribute(node, "to"))
    if name == "BatchNormalization":
        return x if _keeps_channels(node) else None
    if name in _UNDONE:
        return _undone(x, node) or (x if name in _VIEWS and _of_one_shape(x, node.outputs[0]) else None)
    if name in _SELECTIONS:
        return _SELECTIONS[name](x, node)
    if name in _VIEWS:
        return x if _of_one_shape(x, node.outputs[0]) or (name == "Reshape" and _keeps(x, node)) else None
    if name == "Transpose":
        turn = attribute(node, "perm")
        return x if turn is not None and list(turn) == sorted(turn) else None
    if name in _NEUTRAL and len(node.inputs) == 2:
        return _neutral(node, name)
    return None


def _is_empty(x: ir.Value | None) -> bool:
    """Tell whether a value is a constant without an element."""
    held = constant(x)
    return held is not None and held.size == 0


def _keeps_channels(node: ir.Node) -> bool:
    """Tell whether a BatchNormalization takes away nothing, divides by 1, multiplies by 1 and adds nothing."""
    held = [constant(each) for each in node.inputs[1:]]
    if len(held) != len(_NO_CHANGE) or attribute(node, "training_mode", 0) or any(each is None for each in held):
        return False
    epsilon = np.float32(attribute(node, "epsilon", 1e-5))
    return all(each is not None and bool((each + (epsilon if place == len(_NO_CHANGE) - 1 else 0) == kept).all())
               for place, (each, kept) in enumerate(zip(held, _NO_CHANGE, strict=True)))


_NO_CHANGE = (1, 0, 0, 1)
"""Scale, offset, mean and variance of a BatchNormalization that changes nothing."""


def _of_type(x: ir.Value, kind: int) -> ir.Value | None:
    """Return what has the type ``kind``: ``x``, or what a Cast to a type that holds all of its values made ``x`` of."""
    if x.dtype is not None and int(x.dtype) == kind:
        return x
    before = x.producer()
    first = before.inputs[0] if before is not None and before.op_type == "Cast" and not before.domain else None
    if first is None or first.dtype is None or int(first.dtype) != kind or x.dtype is None:
        return None
    try:
        held = np.can_cast(first.dtype.numpy(), x.dtype.numpy(), "safe")
    except TypeError:
        return None     # of a type that NumPy does not have
    return first if held else None


def _undone(x: ir.Value, node: ir.Node) -> ir.Value | None:
    """Return what a node gives back, of a negated tensor or one with dimensions of one more."""
    before = _move_before(x)
    if before is None or before.domain or before.op_type != _UNDONE[node.op_type]:
        return None
    axes = [constant(each.inputs[1]) if len(each.inputs) > 1 else attribute(each, "axes") for each in (before, node)]
    stated = [None if each is None else sorted(np.ravel(each).tolist()) for each in axes]
    same = stated[0] == stated[1] and (stated[0] is None) == (node.op_type == "Neg")
    return before.inputs[0] if same else None


def _whole_slice(x: ir.Value, node: ir.Node) -> ir.Value | None:
    """Return what a Slice takes from its first element to its last, each once."""
    bounds = [None if each is None else constant(each) for each in node.inputs[1:]]
    if len(bounds) < 2 or any(each is None for each in bounds[:2]):
        return None
    steps = bounds[3] if len(node.inputs) > 4 and node.inputs[4] is not None else np.ones(1)
    if steps is None or (steps != 1).any() or bounds[0] is None or bounds[0].any() or bounds[1] is None:
        return None
    return x if (bounds[1] >= _LAST).all() or _of_one_shape(x, node.outputs[0]) else None


def _all_chosen(x: ir.Value, node: ir.Node) -> ir.Value | None:
    """Return what a Gather takes along an axis, each once and in order."""
    indices = constant(node.inputs[1])
    if indices is None or indices.ndim != 1 or not np.array_equal(indices, np.arange(indices.size)):
        return None
    return x if _of_one_shape(x, node.outputs[0]) else None


def _amounts(x: ir.Value, node: ir.Node, idle: int) -> ir.Value | None:
    """Return what a Pad pads by nothing, or a Tile repeats once."""
    amounts = constant(node.inputs[1]) if len(node.inputs) > 1 else None
    return x if amounts is not None and (amounts == idle).all() else None


def _always_chosen(x: ir.Value, node: ir.Node) -> ir.Value | None:
    """Return what a Where chooses for every element, of the shape of its result."""
    mask = constant(node.inputs[0])
    if mask is None or not (mask.all() or not mask.any()):
        return None
    chosen, other = node.inputs[1:] if mask.all() else (node.inputs[2], node.inputs[1])
    if chosen is None or other is None:
        return None
    small = all(array is not None and array.size == 1 and (array.ndim == 0 or (
        chosen.shape is not None and array.ndim <= len(chosen.shape))) for array in (mask, constant(other)))
    return chosen if small or _of_one_shape(chosen, node.outputs[0]) else None


def _cut_before(x: ir.Value, node: ir.Node) -> ir.Value | None:
    """Return what a Concat joins again, of the parts that one Split has cut it into."""
    split, axis = x.producer(), attribute(node, "axis")
    if len(node.inputs) == 1:
        return x
    if split is None or split.domain or split.op_type != "Split" or list(node.inputs) != list(split.outputs):
        return None
    return split.inputs[0] if attribute(split, "axis", 0) == axis else None


def _of_single(x: ir.Value, node: ir.Node) -> ir.Value | None:
    """Return what a pooling takes element by element."""
    sizes = [*attribute(node, "kernel_shape", [0]), *attribute(node, "strides", [1])]
    return x if set(sizes) == {1} and not any(attribute(node, "pads", [])) else None


_SELECTIONS: dict[str, Callable[[ir.Value, ir.Node], ir.Value | None]] = {
    "Slice": _whole_slice, "Gather": _all_chosen, "Where": _always_chosen, "Concat": _cut_before,
    "MaxPool": _of_single, "AveragePool": _of_single,
    "Pad": partial(_amounts, idle=0), "Tile": partial(_amounts, idle=1)}
"""Operators that choose, cut or repeat elements."""


def _of_one_shape(x: ir.Value, y: ir.Value) -> bool:
    """Tell whether two values are known to have the same shape, of numbers."""
    if x.shape is None or y.shape is None or not x.shape.is_static() or not y.shape.is_static():
        return False
    return list(x.shape.numpy()) == list(y.shape.numpy())


def _keeps(x: ir.Value, node: ir.Node) -> bool:
    """Tell whether a Reshape asks for each extent that ``x`` has; 0 is that itself, and one -1 what is left."""
    target = constant(node.inputs[1]) if len(node.inputs) > 1 else None
    if target is None or x.shape is None or len(x.shape) != target.size or attribute(node, "allowzero", 0):
        return False
    asked = [int(each) for each in target]
    return asked.count(-1) <= 1 and all(each in (0, -1) or each == extent
                                        for each, extent in zip(asked, x.shape, strict=True))


def _neutral(node: ir.Node, name: str) -> ir.Value | None:
    """Return what a node adds nothing to or multiplies by one, with a constant that does not change its shape."""
    pairs = [(node.inputs[0], node.inputs[1])]
    if name in ("Mul", "Add"):
        pairs.append((node.inputs[1], node.inputs[0]))
    for x, other in pairs:
        value = constant(other)
        if x is None or value is None or is_constant(x) or value.size != 1 or value.item() != _NEUTRAL[name]:
            continue
        rank = None if x.shape is None else len(x.shape)
        if value.ndim == 0 or (rank is not None and value.ndim <= rank):
            return x
    return None


IDLE = Rule("idle", "Identity, Dropout, a Cast to the same type, x · 1, x + 0, x¹, −−x, a Transpose that keeps all "
            "axes, a Reshape to the same shape, a Slice, Gather or Where of all elements, a Pad by nothing, a pooling "
            "of single elements, a BatchNormalization by 0 and 1, a Concat, Sum, Mean, Max or Min of one tensor, a "
            "Concat of all parts of a Split, and a Cast there and back are not there; of two Transposes, views or "
            "Concats in a row there is one", "each hands on its input as it is", _apply)
