"""Branches: an If whose condition constants and shapes tell is the branch that is taken."""

from collections import Counter

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.folding import folds, result
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, constant, is_constant

__all__ = ["BRANCHES", "has_branches"]

_OF_CONDITIONS = frozenset({"And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or", "Size",
                            "Where", "Xor"})
_DEEPEST = 32


def has_branches(graph: ir.Graph) -> bool:
    """Tell whether a graph has an If."""
    return any(map(_is_if, graph))


def _is_if(node: ir.Node) -> bool:
    return node.op_type == "If" and not node.domain


def _apply(edit: Edit) -> int:
    found = [(node, condition) for node in edit.nodes() if _is_if(node)
             and (condition := _value(edit, node.inputs[0])) is not None and condition.size == 1]
    for node, condition in found:
        _take(edit, node, node.attributes["then_branch" if condition.item() else "else_branch"].as_graph())
    if found:
        edit.drop_unread()      # what made conditions reads shapes
    return len(found)


def _value(edit: Edit, value: ir.Value | None, depth: int = 0) -> np.ndarray | None:
    """Return what a value is, made of constants and shapes alone; None of another."""
    node = None if value is None else value.producer()
    if value is None or is_constant(value):
        return constant(value)
    if node is None or node.domain or len(node.outputs) != 1 or depth > _DEEPEST:
        return None
    if node.op_type == "Shape":
        return _extents(node)
    if not folds(node) and node.op_type not in _OF_CONDITIONS:
        return None
    arrays = [_value(edit, each, depth + 1) for each in node.inputs]
    if any(array is None and each is not None for array, each in zip(arrays, node.inputs, strict=True)):
        return None
    return result(node, arrays, edit.opset)


def _extents(node: ir.Node) -> np.ndarray | None:
    """Return the extents that a Shape gives; None where one of them is open."""
    shape = None if node.inputs[0] is None else node.inputs[0].shape
    asked = None if shape is None else list(shape)[attribute(node, "start", 0):attribute(node, "end", None)]
    return np.asarray(asked, np.int64) if asked is not None and all(isinstance(each, int) for each in asked) else None


def _take(edit: Edit, node: ir.Node, branch: ir.Graph) -> None:
    """Put what a branch holds in the place of its If; names stay where no other value has them."""
    counts = Counter(value.name for each in edit.graph.all_nodes() for value in each.outputs)
    counts.update(value.name for graph in (edit.graph, *edit.graph.subgraphs()) for value in
                  (*graph.inputs, *graph.initializers.values()))
    results = list(branch.outputs)
    branch.outputs.clear()
    for value in list(branch.initializers.values()):
        del branch.initializers[value.name]
        if counts[value.name] == 1:
            edit.graph.register_initializer(value)
        else:   # a new one: the file's tensor would be renamed with its value
            other = edit.constant(np.asarray(value.const_value.numpy()), value.name)
            results = [other if each is value else each for each in results]
            edit.redirect(value, other)
    inner = list(branch)
    for each in inner:
        branch.remove(each)
        edit.graph.insert_before(node, each)
        for value in each.outputs:
            value.name = value.name if counts[value.name] == 1 else edit.name(value.name)
    own = {value for each in inner for value in each.outputs}
    for old, new in zip(list(node.outputs), results, strict=True):
        # Only a value of the branch itself, and that once, can take a result's name.
        made = new if new in own else edit.insert(node, "Identity", [new])
        own.discard(new)
        edit.redirect(old, made)
        edit.hand_on(old, made)
    for each in [inner for graph in node.attributes.values() for inner in graph.as_graph().all_nodes()]:
        for index in range(len(each.inputs)):
            each.replace_input_with(index, None)    # what is not taken reads nothing
    edit.drop(node)


BRANCHES = Rule("branches", "An If whose condition constants and shapes tell is the branch that it takes",
                "that is what an If does (ONNX)", _apply)
