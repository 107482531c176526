"""ONNX's operator names, each with its class, and which of them the compiler knows."""

from collections.abc import Mapping
from typing import Any

from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxAveragePool,
    OnnxBatchNormalization,
    OnnxBinary,
    OnnxCast,
    OnnxClip,
    OnnxConcat,
    OnnxConv,
    OnnxConvInteger,
    OnnxConvTranspose,
    OnnxDepthToSpace,
    OnnxDequantizeLinear,
    OnnxDiv,
    OnnxDropout,
    OnnxExpand,
    OnnxFlatten,
    OnnxGather,
    OnnxGelu,
    OnnxGemm,
    OnnxGlobalAveragePool,
    OnnxGlobalMaxPool,
    OnnxIdentity,
    OnnxLeakyRelu,
    OnnxMatMul,
    OnnxMatMulInteger,
    OnnxMax,
    OnnxMaxPool,
    OnnxMul,
    OnnxOperator,
    OnnxPad,
    OnnxPosition,
    OnnxPow,
    OnnxPRelu,
    OnnxQuantizeLinear,
    OnnxQuickGelu,
    OnnxReduceMax,
    OnnxReduceMean,
    OnnxReduceSum,
    OnnxReduction,
    OnnxRelu,
    OnnxReshape,
    OnnxResize,
    OnnxSlice,
    OnnxSoftmax,
    OnnxSpaceToDepth,
    OnnxSqueeze,
    OnnxSub,
    OnnxTile,
    OnnxTranspose,
    OnnxUnary,
    OnnxUnsqueeze,
    OnnxUpsample,
    OnnxWhere,
    type_name,
)
from tilewright.compiler.graph.qlinear_operators import OnnxQLinearConv, OnnxQLinearMatMul, OnnxQLinearMul

__all__ = ["BINARY", "CHOICES", "COMPUTED_IN_TABLES", "RECOGNISED", "UNARY", "onnx_operator"]


def _by_name(*kinds: type[OnnxOperator]) -> dict[str, type[OnnxOperator]]:
    return {type_name(kind): kind for kind in kinds}


_UNARY: dict[str, type[OnnxOperator]] = {
    **dict.fromkeys((
        "Abs", "Ceil", "Celu", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "Log", "Mish", "Neg",
        "Reciprocal", "Round", "Selu", "Sigmoid", "Sign", "Softplus", "Softsign", "Sqrt", "Swish", "Tanh",
        "ThresholdedRelu", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"),
                     OnnxUnary),
    **_by_name(OnnxRelu, OnnxClip, OnnxLeakyRelu, OnnxGelu, OnnxQuickGelu)}

_BINARY: dict[str, type[OnnxOperator]] = {
    "Min": OnnxBinary,
    **_by_name(OnnxMax, OnnxPow, OnnxPRelu, OnnxAdd, OnnxSub, OnnxMul, OnnxDiv)}

_CLASSES: dict[str, type[OnnxOperator]] = {
    **_UNARY, **_BINARY, **dict.fromkeys(("ReduceMin", "ReduceL2", "ReduceSumSquare"), OnnxReduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), OnnxPosition),
    **_by_name(
        OnnxConv, OnnxConvInteger, OnnxConvTranspose, OnnxGemm, OnnxMatMul, OnnxMatMulInteger,
        OnnxAveragePool, OnnxGlobalAveragePool, OnnxReduceMax,
        OnnxReduceMean, OnnxReduceSum, OnnxMaxPool, OnnxGlobalMaxPool, OnnxBatchNormalization, OnnxFlatten,
        OnnxReshape, OnnxSqueeze, OnnxUnsqueeze, OnnxIdentity, OnnxDropout, OnnxCast, OnnxWhere, OnnxSoftmax,
        OnnxConcat, OnnxSlice, OnnxResize, OnnxUpsample, OnnxPad, OnnxTranspose, OnnxDepthToSpace, OnnxSpaceToDepth,
        OnnxGather, OnnxExpand, OnnxTile, OnnxQuantizeLinear, OnnxDequantizeLinear, OnnxQLinearConv, OnnxQLinearMatMul,
        OnnxQLinearMul)}

UNARY = frozenset(_UNARY)
"""Names of the operators that compute each element of their first input by itself."""

BINARY = frozenset(_BINARY)
"""Names of the operators that compute each pair of elements by itself."""

CHOICES = frozenset(("And", "Cast", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or", "Where",
                     "Xor"))
"""Names of the operators that choose by a condition, or make one, each element by itself."""

COMPUTED_IN_TABLES = UNARY | BINARY
"""Names of the operators that may become part of a table."""

RECOGNISED = frozenset(_by_name(
    OnnxQLinearConv, OnnxQLinearMatMul, OnnxQuantizeLinear, OnnxDequantizeLinear, OnnxConv, OnnxConvTranspose, OnnxGemm,
    OnnxMatMul, OnnxAdd, OnnxRelu, OnnxClip, OnnxMaxPool, OnnxGlobalMaxPool, OnnxAveragePool, OnnxGlobalAveragePool,
    OnnxReduceMean, OnnxFlatten, OnnxReshape, OnnxSqueeze, OnnxUnsqueeze, OnnxIdentity, OnnxDropout)) | {"Split"}
"""Names of the operators that may become integer operators."""


def onnx_operator(op_type: str, attributes: Mapping[str, Any]) -> OnnxOperator:
    """Return the operator that ONNX calls ``op_type``."""
    kind = _CLASSES.get(op_type, OnnxOperator)
    return kind(attributes) if type_name(kind) == op_type else kind(attributes, op_type)
