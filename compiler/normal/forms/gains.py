"""Factors of a Gemm, alpha and beta, are in the scales of its constant weights and in its bias."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, constant, is_constant, levels_behind

__all__ = ["GAINS", "scaled_constant"]


def scaled_constant(edit: Edit, node: ir.Node, value: ir.Value | None, factor: float) -> ir.Value | None:
    """Return constant floats, or constant levels, times a positive factor; None of what is computed."""
    levels, number = levels_behind(value), np.float32(factor)
    if value is None or not np.isfinite(number) or number <= 0:
        return None
    if levels is None:
        array = constant(value)
        return None if array is None or array.dtype != np.float32 else edit.constant(array * number, value.name)
    scale = constant(levels.inputs[1])
    if scale is None or scale.dtype != np.float32 or not np.isfinite(scale * number).all():
        return None
    inputs = [levels.inputs[0], edit.constant(np.asarray(scale * number, np.float32), levels.inputs[1].name),
              *levels.inputs[2:3]]
    attributes = {name: each.value for name, each in levels.attributes.items()}
    return edit.insert(node, "DequantizeLinear", inputs, attributes, like=value.name)


def _apply(edit: Edit) -> int:
    return sum(_folded(edit, node) for node in edit.nodes() if node.op_type == "Gemm" and not node.domain)


def _folded(edit: Edit, node: ir.Node) -> bool:
    """Take a Gemm's factors into its constants; tell whether it has some."""
    factors = {name: float(attribute(node, name, 1.0)) for name in ("alpha", "beta")}
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if bias is None:
        factors["beta"] = 1.0
    if all(each == 1 for each in factors.values()) or levels_behind(node.inputs[1]) is None \
            or not (bias is None or is_constant(bias) or levels_behind(bias) is not None):
        return False
    new = {index: scaled_constant(edit, node, node.inputs[index], factor)
           for index, factor in ((1, factors["alpha"]), (2, factors["beta"])) if factor != 1}
    if None in new.values():
        return False
    for index, value in new.items():
        node.replace_input_with(index, value)
    for name in factors:
        node.attributes.pop(name, None)
    if any(np.frexp(np.float32(each))[0] != 0.5 for each in factors.values()):
        edit.note(f"factors of {node.name or node.outputs[0].name!r} are in the scales of its constants, each rounded "
                  "once more")
    return True


GAINS = Rule("gains", "Factors of a Gemm of constant levels, alpha and beta, are in their scales",
             "NOT exact, unless they are powers of two: each scale is rounded to float32 once more, by 2⁻²⁴ of its "
             "size; a note says so", _apply, exact=False)
