"""A model whose quantisers are another tool's, with ONNX's own in their place, and notes of it."""

import onnx

from tilewright.compiler.onnx.dialects.mct import quants_of_mct
from tilewright.compiler.onnx.dialects.qonnx import expand_qonnx
from tilewright.compiler.onnx.reading_notes import add_note

__all__ = ["QONNX_NOTE", "expand_dialects"]

_AS = "computed as QuantizeLinear, Clip and DequantizeLinear, and compared as such"

QONNX_NOTE = f"Quant of QONNX is {_AS}"
"""Of a model that nothing else runs as it is."""

_MCT_NOTE = f"quantisers of MCT are {_AS}"


def expand_dialects(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with ONNX's operators in place of QONNX's and of MCT's quantisers, and notes of it.

    Raises
    ------
    UnsupportedNodeError
        For every quantiser that has no such form.
    UnsupportedModelError
        If the model's opset is old and cannot be raised.
    """
    left = quants_of_mct(proto)
    if (expanded := expand_qonnx(proto)) is None:
        return proto
    add_note(expanded, QONNX_NOTE if left is None else _MCT_NOTE)
    if left:
        add_note(expanded, f"{left} tensors that MCT quantises to more than 8 bits are left in float")
    return expanded
