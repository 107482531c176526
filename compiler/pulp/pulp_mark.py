"""The marks by which an integer network of PULP's tools is known among ONNX files."""

from collections.abc import Mapping

import onnx

__all__ = ["is_pulp"]

_SHIFTING = {"Add", "Cast", "Div", "Floor", "Mul"}
_ENOUGH = 2
"""So many sums that are multiplied, divided, rounded down and clipped are a dialect and no accident."""

_STEPS = 16


def is_pulp(proto: onnx.ModelProto) -> bool:
    """Tell whether a model is one of Deeploy (by its own operators), or of NEMO, DORY or MATCH (by their pattern)."""
    if any(node.op_type == "RequantShift" for node in proto.graph.node):
        return True
    makers = {name: node for node in proto.graph.node for name in node.output}
    shifted = (node for node in proto.graph.node if node.op_type == "Clip" and _is_shifted(node, makers))
    return sum(1 for _ in shifted) >= _ENOUGH


def _is_shifted(clip: onnx.NodeProto, makers: Mapping[str, onnx.NodeProto]) -> bool:
    """Tell whether what ``clip`` bounds was multiplied, divided and cut to whole numbers."""
    seen: set[str] = set()
    node = makers.get(clip.input[0]) if clip.input else None
    for _ in range(_STEPS):
        if node is None or node.op_type not in _SHIFTING:
            break
        seen.add(node.op_type)
        node = next((makers[name] for name in node.input
                     if name in makers and makers[name].op_type != "Constant"), None)
    return {"Div", "Mul"} <= seen and bool({"Floor", "Cast"} & seen)
