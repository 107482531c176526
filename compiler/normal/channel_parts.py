"""Parts of a tensor along its channels: what a Slice or a Split cuts out of it."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.values import attribute, constant, is_dequantise, is_quantise, same_parameters

__all__ = ["cut_in_order"]

_CHANNELS = 1


def cut_in_order(parts: Sequence[ir.Value | None], size: int) -> ir.Value | None:
    """Return the tensor of which ``parts``, of ``size`` channels each, are all channels in order, or None.

    A Q and a DQ that change nothing may stand between the cut and a part.
    """
    found = [_cut(value, size) for value in parts]
    first = found[0] if found else None
    if first is None or any(each is None or each[0] is not first[0] or each[1:] != (place * size, len(parts) * size)
                            for place, each in enumerate(found)):
        return None
    return first[0]


def _cut(value: ir.Value | None, size: int) -> tuple[ir.Value, int, int] | None:
    """Return the tensor that a value is cut out of, the value's first channel in it, and the tensor's channels."""
    node, pair = None if value is None else value.producer(), None
    if is_dequantise(node):
        q = None if node.inputs[0] is None else node.inputs[0].producer()
        if not is_quantise(q) or not same_parameters(q, node):
            return None
        pair, value = node, q.inputs[0]
        node = None if value is None else value.producer()
    if node is None or node.domain or value is None or node.inputs[0] is None:
        return None
    source = node.inputs[0]
    before = source.producer()
    if pair is not None and not (is_dequantise(before) and same_parameters(before, pair)):
        return None
    found = _sliced(node, source) if node.op_type == "Slice" else _split(node, value, size)
    return None if found is None else (source, *found)


def _sliced(node: ir.Node, source: ir.Value) -> tuple[int, int] | None:
    """Return the first channel of a Slice along the channels, and the channels of ``source``; None of another Slice."""
    given = [constant(each) for each in node.inputs[1:]]
    if len(given) < 3 or any(each is None or each.size != 1 for each in given) or source.shape is None:
        return None
    start, _, axis, *steps = (int(each.ravel()[0]) for each in given if each is not None)
    channels = source.shape[_CHANNELS]
    if axis % len(source.shape) != _CHANNELS or steps not in ([], [1]) or not isinstance(channels, int):
        return None
    return (start if start >= 0 else start + channels), channels


def _split(node: ir.Node, value: ir.Value, size: int) -> tuple[int, int] | None:
    """Return the first channel of ``value``, cut by a Split, and the channels of the whole; None of another node."""
    shape = node.inputs[0].shape if node.inputs[0] is not None else None
    axis = attribute(node, "axis", 0)
    if node.op_type != "Split" or (axis if axis >= 0 or shape is None else axis + len(shape)) != _CHANNELS:
        return None
    sizes = attribute(node, "split", None)
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        sizes = constant(node.inputs[1])
        if sizes is None:
            return None
    if sizes is None:
        sizes = [size] * len(node.outputs)
    place = list(node.outputs).index(value)
    return int(np.sum(sizes[:place])), int(np.sum(sizes))
