"""All activations of 8 bits have one type: uint8 with zero point z holds what int8 holds with z - 128."""

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    CHOICES,
    WEIGHTS,
    constant,
    is_constant,
    is_dequantise,
    is_move,
    is_quantise,
    per_tensor,
    readers,
    zero_type,
)

__all__ = ["STORAGE", "storage_of"]

_SHIFT = 128
_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


def storage_of(edit: Edit) -> np.dtype | None:
    """Return the type that activations of a model should have that has both; None of one that has one alone.

    It is int8, but uint8 where weights leave int8: ONNX Runtime has no kernel for int8 by uint8.
    """
    found = {kind for node in edit.graph for kind in _types_of(node)}
    if len(found) < 2:
        return None
    return np.dtype(np.uint8 if any(map(_leaves_int8, edit.graph)) else np.int8)


def _types_of(node: ir.Node) -> Iterator[np.dtype]:
    """Yield the 8-bit types of activations that a node reads or makes."""
    if (is_quantise(node) or is_dequantise(node)) and not is_constant(node.inputs[0]):
        kind = zero_type(node)
        if kind in _BYTES:
            yield kind


def _leaves_int8(node: ir.Node) -> bool:
    """Tell whether a node multiplies by uint8 weights that int8 does not hold."""
    if node.domain or node.op_type not in WEIGHTS or len(node.inputs) < 2 or node.inputs[1] is None:
        return False
    maker = node.inputs[1].producer()
    return is_dequantise(maker) and is_constant(maker.inputs[0]) and maker.inputs[0].dtype == ir.DataType.UINT8


def _apply(edit: Edit) -> int:
    target = storage_of(edit)
    if target is None:
        return 0
    count = 0
    done: set[int] = set()
    for node in edit.nodes():
        if (is_quantise(node) or is_dequantise(node)) and id(node) not in done and zero_type(node) in _BYTES \
                and zero_type(node) != target and per_tensor(node):
            if is_constant(node.inputs[0]):
                count += _constant_relabelled(edit, node, target)
            else:
                count += _set_relabelled(edit, node, target, done)
    return count + sum(_bordered(edit, node, target) for node in edit.nodes())


def _constant_relabelled(edit: Edit, node: ir.Node, target: np.dtype) -> int:
    """Relabel levels that are the constant operand of a sum or product of two; weights stay as they are."""
    levels = node.inputs[0]
    if levels is None or edit.is_output(levels) or any(each.op_type in WEIGHTS for each in readers(node.outputs[0])):
        return 0
    for index in (0, 2):
        array = constant(node.inputs[index])
        assert array is not None
        node.replace_input_with(index, edit.constant(_shifted(array, target), node.inputs[index].name))
    return 1


def _shifted(array: np.ndarray, target: np.dtype) -> np.ndarray:
    return np.asarray(array.astype(np.int16) + (_SHIFT if target == np.uint8 else -_SHIFT)).astype(target)


def _set_relabelled(edit: Edit, first: ir.Node, target: np.dtype, done: set[int]) -> int:
    """Relabel the levels that Q, moves and DQ share with those of ``first``, if nothing else sees them."""
    found: dict[int, ir.Node] = {}
    todo, free = [first], True
    while todo:
        node = todo.pop()
        if id(node) in found:
            continue
        found[id(node)] = node
        borders = is_quantise(node) or is_dequantise(node)
        if not (borders and per_tensor(node)) and not (is_move(node) or (not node.domain and node.op_type in CHOICES)):
            free = False
            break
        given = [] if is_quantise(node) else list(node.inputs if node.op_type == "Concat" else node.inputs[:1])
        makers = [None if each is None else each.producer() for each in given]
        if any(maker is None or not _is_ours(maker, each) for maker, each in zip(makers, given, strict=True)):
            free = False
            break
        todo += [maker for maker in makers if maker is not None]
        for output in () if is_dequantise(node) else node.outputs:
            if edit.is_output(output):
                free = False
            todo += readers(output)
    done.update(found)
    if not free:
        return 0
    for node in found.values():
        if is_quantise(node) or is_dequantise(node):
            zero = constant(node.inputs[2])
            assert zero is not None
            if zero.dtype == target:
                continue
            node.replace_input_with(2, edit.constant(_shifted(zero, target), node.inputs[2].name))
        for output in () if is_dequantise(node) else node.outputs:
            output.type = ir.TensorType(ir.DataType.from_numpy(target))
    return 1


def _is_ours(maker: ir.Node, value: ir.Value | None) -> bool:
    """Tell whether ``value`` is in the graph itself, and not of one around or within it."""
    return value is not None and maker.graph is not None


def _bordered(edit: Edit, node: ir.Node, target: np.dtype) -> int:
    """Put a pair of the other type beside levels that the model takes or gives, or that an operator computes on."""
    zero = constant(node.inputs[2]) if (is_quantise(node) or is_dequantise(node)) and per_tensor(node) else None
    if zero is None or zero.dtype not in _BYTES or zero.dtype == target or is_constant(node.inputs[0]):
        return 0
    scale, x = node.inputs[1], node.inputs[0]
    assert x is not None
    shifted = _shifted(zero, target)
    if is_dequantise(node):
        if is_quantise(x.producer()) or all(map(is_quantise, readers(node.outputs[0]))):
            return 0
        kept = [each for each in readers(node.outputs[0]) if is_quantise(each)]
        inner = edit.constant(shifted, node.inputs[2].name)
        q = edit.insert(node, "QuantizeLinear", [node.outputs[0], scale, inner], after=True, like=node.outputs[0].name)
        dq = edit.insert(_maker(q), "DequantizeLinear", [q, scale, inner], after=True, like=node.outputs[0].name)
        _typed(q, dq, node.outputs[0], target)
        edit.redirect(node.outputs[0], dq, keep=[*kept, _maker(q)])
        return 1
    levels = node.outputs[0]
    if is_dequantise(x.producer()) or (not edit.is_output(levels) and all(map(is_dequantise, readers(levels)))):
        return 0
    inner = edit.constant(shifted, node.inputs[2].name)
    q = edit.insert(node, "QuantizeLinear", [x, scale, inner], like=x.name)
    dq = edit.insert(node, "DequantizeLinear", [q, scale, inner], like=x.name)
    _typed(q, dq, x, target)
    node.replace_input_with(0, dq)
    for each in [each for each in readers(levels) if is_dequantise(each) and per_tensor(each)
                 and constant(each.inputs[2]) == zero and constant(each.inputs[1]) == constant(scale)]:
        if not edit.is_output(each.outputs[0]):
            edit.redirect(each.outputs[0], dq)
    return 1


def _maker(value: ir.Value) -> ir.Node:
    node = value.producer()
    assert node is not None
    return node


def _typed(levels: ir.Value, real: ir.Value, like: ir.Value, target: np.dtype) -> None:
    levels.type, real.type = ir.TensorType(ir.DataType.from_numpy(target)), ir.TensorType(ir.DataType.FLOAT)
    levels.shape = real.shape = like.shape


STORAGE = Rule("storage", "All activations of 8 bits are int8 (uint8 in a model whose uint8 weights leave int8); a "
               "model with one type alone keeps it, and what it takes and gives keeps its own",
               "q - z is the same with 128 less in both", _apply)
