"""A Pad of zeros before a Conv alone is the Conv's own padding."""

import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    attribute,
    constant,
    is_dequantise,
    is_quantise,
    readers,
    same_parameters,
    source,
)

__all__ = ["PADDING"]

_IMAGE_AXES = 2
"""Dimensions before those of an image, which a Conv does not pad."""


def _apply(edit: Edit) -> int:
    return sum(_padded(edit, node) for node in edit.nodes() if node.op_type == "Conv" and not node.domain)


def _padded(edit: Edit, conv: ir.Node) -> bool:
    """Let a Conv pad what a Pad before it does; tell whether there is one that it can stand for."""
    pad = _pad_before(edit, conv.inputs[0])
    amounts = None if pad is None or len(pad.inputs) < 2 else constant(pad.inputs[1])
    if pad is None or amounts is None or attribute(conv, "auto_pad", "NOTSET") not in ("NOTSET", "VALID") \
            or attribute(pad, "mode", "constant") != "constant" or (len(pad.inputs) > 3 and pad.inputs[3] is not None):
        return False
    value = constant(pad.inputs[2]) if len(pad.inputs) > 2 and pad.inputs[2] is not None else None
    half = amounts.size // 2
    image = [*amounts[_IMAGE_AXES:half].tolist(), *amounts[half + _IMAGE_AXES:].tolist()]
    if (value is None) != (len(pad.inputs) < 3 or pad.inputs[2] is None) or (value is not None and value.any()) \
            or (amounts < 0).any() or amounts.sum() != sum(image):
        return False
    own = attribute(conv, "pads", [0] * len(image))
    conv.attributes["pads"] = ir.AttrInt64s("pads", [int(a + b) for a, b in zip(own, image, strict=True)])
    conv.attributes.pop("auto_pad", None)
    conv.replace_input_with(0, pad.inputs[0])
    return True


def _pad_before(edit: Edit, x: ir.Value | None) -> ir.Node | None:
    """Return the Pad that makes ``x`` for one reader; one of levels with or without a pair of their own parameters."""
    node = None if x is None else x.producer()
    chain = [x]
    if is_dequantise(node) and node.inputs[0] is not None and is_quantise(node.inputs[0].producer()):
        levels = node.inputs[0]
        before = levels.producer()
        assert before is not None
        pair, node = node, None if before.inputs[0] is None else before.inputs[0].producer()
        if node is None or not same_parameters(pair, source(node.inputs[0])) or not same_parameters(pair, before):
            return None
        chain += [levels, before.inputs[0]]
    if node is None or node.domain or node.op_type != "Pad":
        return None
    alone = all(each is not None and len(readers(each)) == 1 and not edit.is_output(each) for each in chain)
    return node if alone else None


PADDING = Rule("padding", "A Pad of zeros that a Conv alone reads is the Conv's own", "a Conv pads with zeros", _apply)
