"""Moves and choices are on levels: a Q behind them goes before them, and what reads their floats reads levels too."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    CHOICES,
    CLAMPS,
    constant,
    data_inputs,
    is_constant,
    is_move,
    is_quantise,
    levels_behind,
    per_tensor,
    readers,
    same_parameters,
    source,
)

__all__ = ["EARLIER", "INSIDE"]

_BOUNDED = {**dict.fromkeys(CLAMPS, (1, 2)), "Pad": (2,)}
"""Operators whose results are levels if the numbers among their inputs are."""

_LARGEST = "Max"
"""Of several tensors. What alone reads it may be another quantisation, which then all of them have."""


def _chooses(node: ir.Node) -> bool:
    return not node.domain and node.op_type in CHOICES and not any(output.uses() for output in node.outputs[1:])


def _apply_earlier(edit: Edit) -> int:
    return sum(_raised(edit, node) for node in edit.nodes() if _commutes(node))


def _commutes(node: ir.Node) -> bool:
    """Tell whether rounding before a node gives what rounding behind it does; what a Pad puts around is rounded too."""
    return is_move(node) or _chooses(node) or (not node.domain and node.op_type == "Pad")


def _raised(edit: Edit, node: ir.Node) -> int:
    """Put the Q that stand behind a move or a choice, all of equal parameters, before it too."""
    after = [each for output in node.outputs for each in readers(output)]
    if not after or any(edit.is_output(each) for each in node.outputs) \
            or not all(is_quantise(each) and per_tensor(each) and same_parameters(each, after[0]) for each in after):
        return 0
    data = data_inputs(node)
    sources = [source(each) for each in data]
    # Of several levels that something moves, what joins them is requantised, whatever is between.
    if len(data) > 1 and all(_moved_levels(each) for each in data):
        return 0
    # A requantisation goes before a move, where it is one of the tensor as it was; a choice has it behind.
    if all(sources) and (len(data) > 1 or same_parameters(sources[0], after[0]) or not is_move(node)):
        return 0
    count = 0
    for index, value in enumerate(data):
        if value is None or (is_constant(value) and not _looks_up(node)) \
                or (sources[index] is not None and len(data) > 1) \
                or value.dtype not in (None, ir.DataType.FLOAT) or same_parameters(levels_behind(value), after[0]):
            continue
        others = [each for each in readers(value) if each is not node]
        if sources[index] is None and (any(map(is_quantise, others)) or (others and value.producer() is None)) \
                and not all(_ends_like(edit, each, after[0]) for each in others):
            continue
        node.replace_input_with(index, edit.quantised(value, after[0], node))
        count += 1
    return count


def _looks_up(node: ir.Node) -> bool:
    """Tell whether a node takes rows of its first input by computed numbers, as an embedding does.

    Single numbers that are taken so are a function of levels, and stay as they are.
    """
    if node.domain or node.op_type != "Gather" or is_constant(node.inputs[1]):
        return False
    table = node.inputs[0].shape if node.inputs[0] is not None else None
    return table is not None and len(table) > 1


def _moved_levels(value: ir.Value | None) -> bool:
    """Tell whether a value is of levels, as they are or moved."""
    while value is not None and source(value) is None:
        node = value.producer()
        if node is None or not is_move(node) or node.op_type == "Concat":
            return False
        value = node.inputs[0]
    return value is not None


def _ends_like(edit: Edit, node: ir.Node, like: ir.Node) -> bool:
    """Tell whether a node quantises as ``like`` does, or is a move that nothing but such nodes reads."""
    if is_quantise(node):
        return same_parameters(node, like)
    return _commutes(node) and all(output.uses() and not edit.is_output(output) and all(
        is_quantise(each) and same_parameters(each, like) for each in readers(output)) for output in node.outputs)


EARLIER = Rule("earlier", "A Q behind moves, choices and Pads of floats stands before them",
               "rounding is the same monotone function of every element, and commutes with both", _apply_earlier)


def _apply_inside(edit: Edit) -> int:
    return sum(_lowered(edit, node) for node in edit.nodes()
               if is_move(node) or _chooses(node) or (not node.domain and node.op_type in {*_BOUNDED, _LARGEST}))


def _lowered(edit: Edit, node: ir.Node) -> int:
    """Put a Q and a DQ behind a move or a choice of levels whose floats something reads."""
    largest = not node.domain and node.op_type == _LARGEST
    data = list(node.inputs) if largest else data_inputs(node)
    sources = [source(each) for each in data]
    first = sources[0] if sources else None
    if first is None or not all(same_parameters(each, first) for each in sources) \
            or not _bounds_are_levels(node, first):
        return 0
    count = 0
    for output in node.outputs:
        after = readers(output)
        given = edit.is_output(output)
        if not after or (given and not _chooses(node)) or (largest and len(after) == 1):
            continue
        rescales = node.op_type in {*CLAMPS, "Concat"} and len(after) == 1
        if not given and all(is_quantise(each) and (rescales or same_parameters(each, first)) for each in after):
            continue
        kept = [each for each in after if is_quantise(each) and same_parameters(each, first)]
        new = edit.quantised(output, first, node, after=True)
        levels = new.producer()
        quantise = levels.inputs[0].producer() if levels is not None and levels.inputs[0] is not None else None
        edit.redirect(output, new, keep=[*kept, *([quantise] if quantise is not None else [])])
        if given:
            edit.hand_on(output, new)
        count += 1
    return count


def _bounds_are_levels(node: ir.Node, like: ir.Node) -> bool:
    """Tell whether a clamp or Pad of levels gives levels: each number is one, or a bound beyond all of them."""
    if node.op_type not in ("Clip", "Pad"):
        return True
    scale, zero = constant(like.inputs[1]), constant(like.inputs[2])
    if scale is None or zero is None or (node.op_type == "Clip" and node.attributes) or "value" in node.attributes:
        return False
    kind = np.iinfo(zero.dtype)
    for index in _BOUNDED[node.op_type]:
        if len(node.inputs) <= index or node.inputs[index] is None:
            continue
        bound = constant(node.inputs[index])
        if bound is None or bound.size != 1 or not np.isfinite(bound).all():
            return False
        with np.errstate(over="ignore"):    # the least float32 is a bound too
            steps = np.rint(bound.ravel()[0] / scale)
        level = float(steps) + float(zero)
        inside = kind.min <= level <= kind.max and np.float32(steps) * scale == bound.ravel()[0]
        beyond = node.op_type == "Clip" and (level < kind.min if index == 1 else level > kind.max)
        if not inside and not beyond:
            return False
    return True


INSIDE = Rule("inside", "Moves, choices, clamps and Pads of levels give levels: a Q and a DQ of the same parameters "
              "stand behind those whose floats something reads", "their results are some of their inputs' levels, and "
              "those that a clamp or Pad puts in their place or around them are levels", _apply_inside)
