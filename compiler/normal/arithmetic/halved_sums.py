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
    """Let a Q read what a power of two multiplies, with another scale; tell whether there is one."""
    value = quantise.inputs[0]
    node = None if value is None else value.producer()
    if value is None or node is None or node.domain or edit.is_output(value) or len(readers(value)) > 1:
        return False
    for x, other in (node.inputs, node.inputs[::-1])[:{"Mul": 2, "Div": 1}.get(node.op_type, 0)]:
        factor, scale = constant(other), constant(quantise.inputs[1])
        if not _is_sum(x) or factor is None or factor.shape or factor.dtype != np.float32 or scale is None \
                or scale.dtype != np.float32 or not np.isfinite(factor) or factor <= 0 or np.frexp(factor)[0] != 0.5:
            continue
        new = (scale * factor if node.op_type == "Div" else scale / factor).astype(np.float32)
        if not (np.finfo(np.float32).tiny <= new).all() or not np.isfinite(new).all():
            return False
        quantise.replace_input_with(1, edit.constant(new, quantise.outputs[0].name))
        quantise.replace_input_with(0, x)
        return True
    return False


def _is_sum(x: ir.Value | None) -> bool:
    """Tell whether a value is a sum or difference, with no single number, of which tables are made."""
    maker = None if x is None else x.producer()
    return maker is not None and not maker.domain and maker.op_type in _SUMS and not any(
        (held := constant(each)) is not None and held.size == 1 for each in maker.inputs)


HALVES = Rule("halves", "A power of two that multiplies or divides a sum before a Q is in the Q's scale",
              "a power of two changes no digit of a float32, but for subnormal ones", _apply)
