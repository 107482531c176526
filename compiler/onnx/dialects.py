"""Integer graphs in the dialects of other tools, rejected by the name of the tool."""

from collections.abc import Mapping

import onnx

from tilewright.compiler.errors import UnsupportedModelError

__all__ = ["check_dialects"]

_DEEPLOY = {"RequantShift", "RequantizedConv", "RequantizedGemm", "RequantizediGELU", "iSoftmax", "iLayerNorm", "iGELU",
            "IntegerMean", "IntegerDiv"}
_FINN = {"MultiThreshold", "StreamingFCLayer_Batch", "Thresholding_Batch", "VVAU", "MVAU", "XnorPopcountMatMul"}
_OPENVINO = {"FakeQuantize"}
_TENSORRT = {"TRT_INT8QuantizeLinear", "TRT_INT8DequantizeLinear", "TRT_FP8QuantizeLinear"}

_BEFORE = ("export the network before that step, in float or with QuantizeLinear and DequantizeLinear; --calibrate "
           "quantises a float one")
_DIALECTS: tuple[tuple[str, set[str], str], ...] = (
    ("Deeploy and DORY", _DEEPLOY, _BEFORE),
    ("FINN after its lowering", _FINN, "export it as QONNX, with Quant, before FINN's transformations"),
    ("OpenVINO", _OPENVINO, _BEFORE),
    ("TensorRT", _TENSORRT, _BEFORE),
)

_SHIFTING = {"Add", "Cast", "Div", "Floor", "Mul"}
_ENOUGH = 2
"""So many sums that are multiplied, divided, rounded down and clipped are a dialect and no accident."""


def check_dialects(proto: onnx.ModelProto) -> None:
    """Refuse integer graphs whose meaning is another tool's.

    Raises
    ------
    UnsupportedModelError
        It names the tool, the node, and what to do.
    """
    for tool, operators, way_out in _DIALECTS:
        found = next((node for node in proto.graph.node if node.op_type in operators), None)
        if found is not None:
            raise UnsupportedModelError(f"Model must have ONNX's own operators, and node {_name(found)!r} "
                                        f"({found.op_type}) belongs to the integer dialect of {tool}", way_out)
    makers = {name: node for node in proto.graph.node for name in node.output}
    shifted = [node for node in proto.graph.node if node.op_type == "Clip" and _is_shifted(node, makers)]
    if len(shifted) >= _ENOUGH:
        raise UnsupportedModelError(
            f"Model must be in float or between QuantizeLinear and DequantizeLinear, and {len(shifted)} of its Clips, "
            f"{_name(shifted[0])!r} first, end the integer arithmetic of NEMO, DORY and MATCH (Mul, Add, Div, Floor)",
            _BEFORE)


def _is_shifted(clip: onnx.NodeProto, makers: Mapping[str, onnx.NodeProto]) -> bool:
    """Tell whether what ``clip`` bounds was multiplied, divided and cut to whole numbers."""
    seen: set[str] = set()
    node = makers.get(clip.input[0]) if clip.input else None
    for _ in range(16):
        if node is None or node.op_type not in _SHIFTING:
            break
        seen.add(node.op_type)
        node = next((makers[name] for name in node.input
                     if name in makers and makers[name].op_type != "Constant"), None)
    return {"Div", "Mul"} <= seen and bool({"Floor", "Cast"} & seen)


def _name(node: onnx.NodeProto) -> str:
    return node.name or (node.output[0] if node.output else node.op_type)
