"""Q and DQ of ONNX Runtime's own domain are ONNX's."""

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule

__all__ = ["DOMAINS"]

_DOMAIN = "com.microsoft"


def _apply(edit: Edit) -> int:
    found = [node for node in edit.graph if node.domain == _DOMAIN and node.op_type in (
        "QuantizeLinear", "DequantizeLinear")]
    for node in found:
        node.domain = ""
    return len(found)


DOMAINS = Rule("domains", "QuantizeLinear and DequantizeLinear of com.microsoft are ONNX's own",
               "both are defined alike (ContribOperators.md of ONNX Runtime)", _apply)
