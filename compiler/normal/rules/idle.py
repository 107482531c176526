"""Operators that change nothing are not there."""

import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, constant, is_constant, levels_behind, readers

__all__ = ["IDLE"]

_VIEWS = ("Reshape", "Flatten", "Expand", "Squeeze", "Unsqueeze")
"""Operators that hand on their input as it is where the shape stays."""

_NEUTRAL = {"Mul": 1.0, "Div": 1.0, "Add": 0.0, "Sub": 0.0}


def _apply(edit: Edit) -> int:
    return sum(_dropped(edit, node) for node in edit.nodes() if not node.domain and node.inputs)


def _dropped(edit: Edit, node: ir.Node) -> bool:
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
    """Let a Transpose of a Transpose read what that reads, and turn it at once; tell whether it was one."""
    before = node.inputs[0].producer() if node.op_type == "Transpose" and node.inputs[0] is not None else None
    turn, first = attribute(node, "perm"), None if before is None else attribute(before, "perm")
    if before is None or before.domain or before.op_type != "Transpose" or turn is None or first is None \
            or len(turn) != len(first):
        return False
    node.replace_input_with(0, before.inputs[0])
    node.attributes["perm"] = ir.AttrInt64s("perm", [first[axis] for axis in turn])
    return True


def _unchanged(node: ir.Node) -> ir.Value | None:
    """Return the input that a node hands on as it is; None of a node that does something."""
    x, name = node.inputs[0], node.op_type
    if x is None:
        return None
    if name == "Identity" or (name == "Concat" and len(node.inputs) == 1):
        return x
    if name == "Dropout":
        training = constant(node.inputs[2]) if len(node.inputs) > 2 else None
        known = len(node.inputs) < 3 or node.inputs[2] is None or (training is not None and not training.any())
        return x if known else None
    if name == "Cast":
        return x if x.dtype is not None and int(x.dtype) == attribute(node, "to") else None
    if name in _VIEWS:
        return x if _of_one_shape(x, node.outputs[0]) or (name == "Reshape" and _keeps(x, node)) else None
    if name == "Transpose":
        turn = attribute(node, "perm")
        return x if turn is not None and list(turn) == sorted(turn) else None
    if name in _NEUTRAL and len(node.inputs) == 2:
        return _neutral(node, name)
    return None


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


IDLE = Rule("idle", "Identity, Dropout, a Cast to the same type, x · 1, x + 0, a Transpose that keeps all axes, a "
            "Reshape to the same shape and a Concat of one tensor are not there; of two Transposes in a row there is "
            "one", "each hands on its input as it is", _apply)
