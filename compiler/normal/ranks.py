"""How many dimensions a value has, and how large they are, where the graph tells it without inference."""

import onnx_ir as ir

from tilewright.compiler.normal.values import attribute, is_constant, levels_behind

__all__ = ["rank_of", "sizes_of"]

_KEEPING = frozenset({
    "Add", "AveragePool", "BatchNormalization", "Cast", "Clip", "Concat", "Conv", "ConvTranspose", "DepthToSpace",
    "DequantizeLinear", "Div", "Dropout", "Elu", "Gelu", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid",
    "HardSwish", "Identity", "LeakyRelu", "LRN", "MaxPool", "Mul", "Pad", "PRelu", "QuantizeLinear", "Relu", "Resize",
    "Sigmoid", "Slice", "Softmax", "SpaceToDepth", "Split", "Sub", "Tanh", "Tile", "Transpose"})
"""Operators whose result has as many dimensions as their first input, if no other input that is computed has more."""

_FARTHEST = 64
_LEVELS = ("DequantizeLinear", "QuantizeLinear")


def rank_of(value: ir.Value | None) -> int | None:
    """Return how many dimensions a value has; None where nothing before it tells."""
    for _ in range(_FARTHEST):
        if value is None:
            return None
        if value.const_value is not None:
            return len(value.const_value.shape)
        if value.shape is not None:
            return len(value.shape)
        node = value.producer()
        if node is None or node.domain:
            return None
        if node.op_type in ("Gemm", "Flatten"):
            return 2
        if node.op_type == "Transpose" and (turn := attribute(node, "perm")) is not None:
            return len(turn)
        if node.op_type == "Reshape":
            target = node.inputs[1].const_value if len(node.inputs) > 1 and node.inputs[1] is not None else None
            return None if target is None else int(target.size)
        if node.op_type not in _KEEPING:
            return None
        value = next((each for each in node.inputs if each is not None and not _is_fixed(each)), node.inputs[0])
    return None


def _is_fixed(value: ir.Value) -> bool:
    return is_constant(value) or levels_behind(value) is not None


def sizes_of(value: ir.Value | None) -> list[int | None] | None:
    """Return the dimensions of a value, None for those that are open; None where nobody states any."""
    levels = levels_behind(value)
    held = value if levels is None else levels.inputs[0]
    while held is not None and held.const_value is None and held.shape is None:
        node = held.producer()
        held = node.inputs[0] if node is not None and node.op_type in _LEVELS else None
    if held is None:
        return None
    if held.const_value is not None:
        return [int(each) for each in held.const_value.shape.numpy()]
    return None if held.shape is None else [each if isinstance(each, int) else None for each in held.shape]
