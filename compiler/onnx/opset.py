"""The opset that a model's own Q and DQ need, and the way there."""

import onnx

from tilewright.compiler.errors import UnsupportedModelError

__all__ = ["raised"]

_PER_AXIS, _NARROW_AND_WIDE = 13, 21
_OF_21 = {onnx.TensorProto.INT16, onnx.TensorProto.UINT16, onnx.TensorProto.INT4, onnx.TensorProto.UINT4}
_BORDERS = ("QuantizeLinear", "DequantizeLinear")


def raised(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model in an opset that has what its Q and DQ need: channels from 13 on, 4 and 16 bits from 21 on.

    Those of com.microsoft know both at every opset.

    Raises
    ------
    UnsupportedModelError
        If another of its operators cannot be brought there.
    """
    opset = next((each.version for each in proto.opset_import if each.domain in ("", "ai.onnx")), _PER_AXIS)
    least = _least(proto.graph)
    if opset >= least:
        return proto
    try:
        made = onnx.version_converter.convert_version(proto, least)
    except (RuntimeError, ValueError, onnx.version_converter.ConvertError) as error:
        raise UnsupportedModelError(f"Model of opset {opset} has quantisation that ONNX knows from opset {least} on, "
                                    "and cannot be brought there", f"export it again with opset {least}") from error
    made.metadata_props.extend(each for each in proto.metadata_props
                               if each.key not in {known.key for known in made.metadata_props})
    return made


def _least(graph: onnx.GraphProto) -> int:
    """Return the first opset that has the Q and DQ of a graph."""
    kinds = {tensor.name: (tensor.data_type, len(tensor.dims)) for tensor in graph.initializer}
    least = 0
    for node in graph.node:
        if node.op_type not in _BORDERS or node.domain:
            continue
        least = max(least, 10)
        for name in node.input[1:]:
            kind, rank = kinds.get(name, (0, 0))
            least = max(least, _PER_AXIS if rank else 0, _NARROW_AND_WIDE if kind in _OF_21 else 0)
        if any(each.name == "block_size" and each.i for each in node.attribute):
            least = _NARROW_AND_WIDE
    return least
