"""The least of levels is the largest of their negatives: ReduceMin and Min are ReduceMax and Max between two Neg."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    constant,
    is_quantise,
    per_tensor,
    readers,
    same_parameters,
    source,
    zero_type,
)

__all__ = ["MIRRORED"]

_LARGEST = {"Min": "Max", "ReduceMin": "ReduceMax"}
_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


def _apply(edit: Edit) -> int:
    return sum(_turned(edit, node) for node in edit.nodes() if not node.domain and node.op_type in _LARGEST)


def _turned(edit: Edit, node: ir.Node) -> bool:
    """Replace a Min of several levels, or a ReduceMin of levels; tell whether it is one."""
    data = list(node.inputs) if node.op_type == "Min" else [node.inputs[0]]
    sources, result = [source(each) for each in data], node.outputs[0]
    if (node.op_type == "Min" and len(data) < 2) or edit.is_output(result) \
            or any(each is None or zero_type(each) not in _BYTES for each in sources):
        return False
    negative = [_negative(edit, node, value, like) for value, like in zip(data, sources, strict=True)]
    rest = [] if node.op_type == "Min" else node.inputs[1:]
    attributes = {name: each.value for name, each in node.attributes.items()}
    largest = edit.insert(node, _LARGEST[node.op_type], [*negative, *rest], attributes, like=result.name)
    after = readers(result)
    if after and is_quantise(after[0]) and per_tensor(after[0]) and zero_type(after[0]) in _BYTES \
            and all(is_quantise(each) and same_parameters(each, after[0]) for each in after):
        largest = _quantised(edit, node, largest, after[0])
    edit.replace(node, edit.insert(node, "Neg", [largest], like=result.name))
    return True


def _negative(edit: Edit, node: ir.Node, value: ir.Value | None, like: ir.Node | None) -> ir.Value:
    """Return the negative of levels, as the levels that count from the other end."""
    assert value is not None
    assert like is not None
    return _quantised(edit, node, edit.insert(node, "Neg", [value], like=value.name), like)


def _quantised(edit: Edit, node: ir.Node, value: ir.Value, like: ir.Node) -> ir.Value:
    """Return ``value`` behind a Q and a DQ of the parameters of ``like``, whose zero point lies at the other end."""
    zero = constant(like.inputs[2])
    assert zero is not None
    ends = np.iinfo(zero.dtype)
    parameters = [like.inputs[1], edit.constant(np.asarray(ends.min + ends.max - int(zero), zero.dtype), value.name)]
    levels = edit.insert(node, "QuantizeLinear", [value, *parameters], like=value.name)
    levels.type = ir.TensorType(ir.DataType.from_numpy(zero.dtype))
    return edit.insert(node, "DequantizeLinear", [levels, *parameters], like=value.name)


MIRRORED = Rule("mirrored", "The least of levels, Min or ReduceMin, is the negative of the largest of their negatives",
                "the negative of (q - z) · s is that of level min + max - q with zero point min + max - z, and what is "
                "rounded to even is so on both sides of 0", _apply)
