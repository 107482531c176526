"""Graphs of other worlds, rejected by name: integer dialects of other tools, classical machine learning."""

import onnx

from tilewright.compiler.errors import UnsupportedModelError

__all__ = ["check_classical", "check_dialects"]

_DEEPLOY = {"RequantizedConv", "RequantizedGemm", "RequantizediGELU", "iSoftmax", "iLayerNorm", "iGELU",
            "IntegerMean", "IntegerDiv"}
_FINN = {"MultiThreshold", "StreamingFCLayer_Batch", "Thresholding_Batch", "VVAU", "MVAU", "XnorPopcountMatMul"}
_OPENVINO = {"FakeQuantize"}
_TENSORRT = {"TRT_INT8QuantizeLinear", "TRT_INT8DequantizeLinear", "TRT_FP8QuantizeLinear"}

_CLASSICAL = "ai.onnx.ml"

_BEFORE = ("export the network before that step, in float or with QuantizeLinear and DequantizeLinear; --calibrate "
           "quantises a float one")
_DIALECTS: tuple[tuple[str, set[str], str], ...] = (
    ("Deeploy and DORY", _DEEPLOY, _BEFORE),
    ("FINN after its lowering", _FINN, "export it as QONNX, with Quant, before FINN's transformations"),
    ("OpenVINO", _OPENVINO, _BEFORE),
    ("TensorRT", _TENSORRT, _BEFORE),
)

_BLOCKS = "com.microsoft.nchwc"
_UNDONE = ("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", "ReorderInput", "ReorderOutput")
"""Operators in blocks that the normal form makes ONNX's own."""


def check_dialects(proto: onnx.ModelProto) -> None:
    """Refuse integer graphs whose meaning is another tool's, and weights in the layout of one processor.

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
    found = next((node for node in proto.graph.node if node.domain == _BLOCKS and node.op_type not in _UNDONE), None)
    if found is not None:
        raise UnsupportedModelError(f"Model must run on any processor, and node {_name(found)!r} ({found.op_type}) has "
                                    "its channels in blocks of the processor that ONNX Runtime's session ran on when "
                                    "it wrote the model",
                                    "save it at the level ORT_ENABLE_EXTENDED, or give the model that it was made from")


def check_classical(proto: onnx.ModelProto) -> None:
    """Refuse trees, encoders and other operators of classical machine learning, before any of their types.

    Raises
    ------
    UnsupportedModelError
        It names the first such node.
    """
    found = next((node for node in proto.graph.node if node.domain == _CLASSICAL), None)
    if found is not None:
        raise UnsupportedModelError(f"Model must be a neural network, and node {_name(found)!r} ({found.op_type}) is "
                                    f"of {_CLASSICAL}, classical machine learning",
                                    "run it with ONNX Runtime, or cut it off the network")


def _name(node: onnx.NodeProto) -> str:
    return node.name or (node.output[0] if node.output else node.op_type)
