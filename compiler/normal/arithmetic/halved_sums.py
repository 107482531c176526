"""Powers of two that multiply or divide: one after another, or a sum before it is quantised, as a mean of two does."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import constant, is_quantise, per_tensor, readers

__all__ = ["HALVES"]

_SUMS = ("Add", "Sub")


def _apply(edit: Edit) -> int:
    return sum(_joined(edit, node) for node in edit.nodes() if node.graph is not None) + sum(
        _scaled(edit, node) for node in edit.nodes() if is_quantise(node) and per_tensor(node))


def _joined(edit: Edit, node: ir.Node) -> bool:
    """Multiply once by the product of two powers of two, by none if it is 1; tell whether there are two.

    A number that the first makes infinite, and the second would not, keeps both.
    """
    found = _power_of_two(node)
    if found is None or edit.is_output(found[0]) or len(readers(found[0])) > 1:
        return False
    before = _power_of_two(found[0].producer())
    if before is None or (before[1] > 1 and found[1] < 1):
        return False
    factor = np.float32(before[1] * found[1])
    if not np.finfo(np.float32).tiny <= factor < np.inf or (factor == 1 and edit.is_output(node.outputs[0])):
        return False
    new = before[0] if factor == 1 else edit.insert(
        node, "Mul", [before[0], edit.constant(np.asarray(factor), node.outputs[0].name)])
    if factor == 1:
        edit.redirect(node.outputs[0], new)
        edit.drop(node)
        return True
    new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
    edit.replace(node, new)
    return True


def _scaled(edit: Edit, quantise: ir.Node) -> bool:
    """Let a Q read a sum without its factors, powers of two, which its scale takes; tell whether there is one."""
    value, factor = quantise.inputs[0], np.float64(1)
    while value is not None and not edit.is_output(value) and len(readers(value)) == 1 \
            and (found := _power_of_two(value.producer())) is not None:
        value, factor = found[0], factor * found[1]
    scale = constant(quantise.inputs[1])
    if value is quantise.inputs[0] or not _is_sum(value) or scale is None or scale.dtype != np.float32:
        return False
    new = (scale / factor).astype(np.float32)
    if not (np.finfo(np.float32).tiny <= new).all() or not np.isfinite(new).all():
        return False
    quantise.replace_input_with(1, edit.constant(new, quantise.outputs[0].name))
    quantise.replace_input_with(0, value)
    return True


def _power_of_two(node: ir.Node | None) -> tuple[ir.Value, float] | None:
    """Return what a node multiplies by a power of two, and that."""
    if node is None or node.domain or node.op_type not in ("Mul", "Div"):
        return None
    for x, other in (node.inputs, node.inputs[::-1])[:1 if node.op_type == "Div" else 2]:
        factor = constant(other)
        if x is not None and factor is not None and not factor.shape and factor.dtype == np.float32 \
                and np.isfinite(factor) and factor > 0 and np.frexp(factor)[0] == 0.5:
            return x, float(1 / factor if node.op_type == "Div" else factor)
    return None


def _is_sum(x: ir.Value | None) -> bool:
    """Tell whether a value is a sum or difference, with no single number, of which tables are made."""
    maker = None if x is None else x.producer()
    return maker is not None and not maker.domain and maker.op_type in _SUMS and not any(
        (held := constant(each)) is not None and held.size == 1 for each in maker.inputs)


HALVES = Rule("halves", "Powers of two that multiply or divide a sum before a Q are in the Q's scale, and of two in a "
              "row there is one, or none if their product is 1",
              "a power of two changes no digit of a float32, but for subnormal ones", _apply)
