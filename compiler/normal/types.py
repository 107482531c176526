"""Types of values that nobody states, as far as they follow from the operator alone."""

import onnx_ir as ir

__all__ = ["fill_types"]

_INT64 = {"Shape", "Size", "NonZero", "ArgMax", "ArgMin"}
_BOOL = {"And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not", "Or", "Xor"}
_OTHER = {"Constant", "ConstantOfShape", "DynamicQuantizeLinear", "EyeLike", "If", "Loop", "OneHot", "Range", "Scan",
          "Where", "ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul", "SequenceAt", "Bernoulli",
          "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "BitCast"}
"""Operators whose result is not of their first input's type."""


def fill_types(graph: ir.Graph) -> None:
    """Give the outputs of nodes whose type is not stated the one that follows from their inputs, in place."""
    for node in graph:
        for output in node.outputs:
            if output.type is None and (kind := _type(node)) is not None and output is node.outputs[0]:
                output.type = ir.TensorType(kind)


def _type(node: ir.Node) -> ir.DataType | None:
    name = node.op_type
    if name == "Cast":
        return ir.DataType(node.attributes["to"].value) if "to" in node.attributes else None
    if name == "DequantizeLinear":
        return None if len(node.inputs) < 2 or node.inputs[1] is None else node.inputs[1].dtype
    if name == "QuantizeLinear":
        zero = node.inputs[2] if len(node.inputs) > 2 else None
        if "output_dtype" in node.attributes and node.attributes["output_dtype"].value:
            return ir.DataType(node.attributes["output_dtype"].value)
        return ir.DataType.UINT8 if zero is None else zero.dtype
    if name in _INT64:
        return ir.DataType.INT64
    if name in _BOOL:
        return ir.DataType.BOOL
    if node.domain or name in _OTHER or not node.inputs or node.inputs[0] is None:
        return None
    return node.inputs[0].dtype
