"""Patterns that are not legal in a graph in normal form, each with the sentence that says what is wrong."""

from collections.abc import Callable, Iterator

import numpy as np
import onnx
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rules.storage import storage_of
from tilewright.compiler.normal.types import fill_types
from tilewright.compiler.normal.values import (
    WEIGHTS,
    is_constant,
    is_dequantise,
    is_quantise,
    levels_behind,
    parameters,
    per_tensor,
    readers,
    same_parameters,
    zero_type,
)

__all__ = ["ILLEGAL", "faults"]

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
_NARROW = (ir.DataType.INT2, ir.DataType.UINT2, ir.DataType.INT4, ir.DataType.UINT4)


def _foreign(edit: Edit, node: ir.Node) -> bool:
    return bool(node.domain) and node.op_type in ("QuantizeLinear", "DequantizeLinear")


def _unstated(edit: Edit, node: ir.Node) -> bool:
    return is_quantise(node) and len(node.inputs) < 3


def _repeated(edit: Edit, node: ir.Node) -> bool:
    if not (is_quantise(node) or is_dequantise(node)) or is_constant(node.inputs[0]) or edit.is_output(node.outputs[0]):
        return False
    known = parameters(node)
    return known is not None and any(
        each is not node and each.op_type == node.op_type and each.inputs[0] is node.inputs[0]
        and not edit.is_output(each.outputs[0]) and parameters(each) == known and each.domain == node.domain
        for each in readers(node.inputs[0]))


def _round_trip(edit: Edit, node: ir.Node) -> bool:
    before = node.inputs[0].producer() if is_quantise(node) and node.inputs[0] is not None else None
    return is_dequantise(before) and same_parameters(node, before) and not edit.is_output(node.outputs[0])


def _of_constants(edit: Edit, node: ir.Node) -> bool:
    return is_quantise(node) and is_constant(node.inputs[0]) and all(map(is_constant, node.inputs[1:])) \
        and not edit.is_output(node.outputs[0]) and node.inputs[0].dtype == ir.DataType.FLOAT


def _narrow(edit: Edit, node: ir.Node) -> bool:
    weighted = not node.domain and node.op_type in WEIGHTS and len(node.inputs) > 1
    behind = levels_behind(node.inputs[1]) if weighted else None
    return behind is not None and behind.inputs[0] is not None and behind.inputs[0].dtype in _NARROW


def _of_two_types(edit: Edit, node: ir.Node) -> bool:
    """Tell whether a node is a product whose operand and result are of different types of 8 bits."""
    if node.domain or node.op_type not in WEIGHTS or storage_of(edit) is None or node.inputs[0] is None:
        return False
    before, after = node.inputs[0].producer(), readers(node.outputs[0])
    types = {zero_type(each) for each in after if is_quantise(each) and per_tensor(each)}
    types |= {zero_type(before)} if is_dequantise(before) and per_tensor(before) else set()
    return types >= set(_BYTES)


ILLEGAL: tuple[tuple[str, Callable[[Edit, ir.Node], bool]], ...] = (
    ("is of a domain that is not ONNX's", _foreign),
    ("leaves its zero point unstated", _unstated),
    ("is there twice for one tensor", _repeated),
    ("stands behind a DequantizeLinear of the same parameters", _round_trip),
    ("quantises a constant", _of_constants),
    ("multiplies by levels of fewer than 8 bits", _narrow),
    ("reads one type of 8 bits and makes another", _of_two_types),
)
"""Names and tests of what must not be there; a name is the end of a sentence about a node."""


def faults(proto: onnx.ModelProto) -> Iterator[str]:
    """Yield a sentence for each node that is not legal in normal form."""
    model = ir.from_proto(proto)
    edit = Edit(model.graph)
    fill_types(edit.graph)
    for node in edit.graph:
        for says, found in ILLEGAL:
            if found(edit, node):
                yield f"Node {node.name or node.outputs[0].name!r} ({node.op_type}) {says}"
