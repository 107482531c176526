"""One Q and one DQ for each tensor and parameters, and no Q behind a DQ of the same."""

from collections.abc import Hashable

import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import is_constant, is_dequantise, is_quantise, parameters, same_parameters

__all__ = ["PAIRS", "ROUND_TRIPS"]


def _apply_pairs(edit: Edit) -> int:
    first: dict[Hashable, ir.Node] = {}
    count = 0
    for node in edit.nodes():
        if not (is_quantise(node) or is_dequantise(node)) or node.inputs[0] is None or is_constant(node.inputs[0]):
            continue
        known = parameters(node)
        if known is None:
            continue
        other = first.setdefault((id(node.inputs[0]), node.op_type, known), node)
        if other is not node and not edit.is_output(node.outputs[0]):
            edit.redirect(node.outputs[0], other.outputs[0])
            edit.drop(node)
            count += 1
    return count


PAIRS = Rule("pairs", "Of each tensor and parameters there are at most one Q and one DQ, outputs of the model aside",
             "equal operators of one input give equal results", _apply_pairs)


def _apply_round_trips(edit: Edit) -> int:
    count = 0
    for node in edit.nodes():
        before = node.inputs[0].producer() if is_quantise(node) and node.inputs[0] is not None else None
        if not is_dequantise(before) or not same_parameters(node, before) or edit.is_output(node.outputs[0]):
            continue
        levels = before.inputs[0]
        if levels is None:
            continue
        edit.redirect(node.outputs[0], levels)
        edit.drop(node)
        count += 1
    return count


ROUND_TRIPS = Rule("round trips", "No Q stands behind a DQ of the same parameters",
                   "(q - z) · s / s in float32 is within 2⁻²³ of its size of q - z, and rounds back to it for up to "
                   "16 bits", _apply_round_trips)
