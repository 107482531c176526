"""A sum that a power of two multiplies or divides before it is quantised: a mean of two tensors, for instance."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import constant, is_quantise, per_tensor, readers

__all__ = ["HALVES"]

_SUMS = ("Add", "Sub")


def _apply(edit: Edit) -> int:
    return sum(_scaled(edit, node) for node in edit.nodes() if is_quantise(node) and per_tensor(node))


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


HALVES = Rule("halves", "Powers of two that multiply or divide a sum before a Q are in the Q's scale",
              "a power of two changes no digit of a float32, but for subnormal ones", _apply)
