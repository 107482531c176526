"""The operators of ONNX and com.microsoft that have scale and zero point of every tensor among their inputs."""

from typing import ClassVar

from tilewright.compiler.graph.onnx_operators import Attribute, OnnxGemmLike, OnnxOperator, OnnxWindowed

__all__ = [
    "OnnxQGemm", "OnnxQLinear", "OnnxQLinearAdd", "OnnxQLinearAveragePool", "OnnxQLinearConcat", "OnnxQLinearConv",
    "OnnxQLinearGlobalAveragePool", "OnnxQLinearLeakyRelu", "OnnxQLinearMatMul", "OnnxQLinearMul",
    "OnnxQLinearSigmoid", "OnnxQLinearSoftmax",
]


class OnnxQLinear(OnnxOperator):
    """An integer operator, each tensor followed by scale and zero point; ``FLOAT`` names its float operator."""

    FLOAT: ClassVar[str]
    channels_last = Attribute(0)


class OnnxQLinearConv(OnnxQLinear, OnnxWindowed):
    """Convolution."""

    FLOAT = "Conv"


class OnnxQLinearMatMul(OnnxQLinear):
    """Product of matrices."""

    FLOAT = "MatMul"


class OnnxQGemm(OnnxQLinear, OnnxGemmLike):
    """Product of matrices with a bias."""

    FLOAT = "Gemm"


class OnnxQLinearAdd(OnnxQLinear):
    """a + b."""

    FLOAT = "Add"


class OnnxQLinearMul(OnnxQLinear):
    """a · b; ``unsigned``, which only recognition sets, tells the kernel that the model's values are uint8."""

    FLOAT = "Mul"
    unsigned = Attribute(0)


class OnnxQLinearAveragePool(OnnxQLinear, OnnxWindowed):
    """Average over a window; whether padding counts is an attribute."""

    FLOAT = "AveragePool"
    count_include_pad = Attribute(0)


class OnnxQLinearGlobalAveragePool(OnnxQLinear):
    """Average over the whole image."""

    FLOAT = "GlobalAveragePool"


class OnnxQLinearConcat(OnnxQLinear):
    """Tensors one after the other along ``axis``."""

    FLOAT = "Concat"


class OnnxQLinearSigmoid(OnnxQLinear):
    """1 / (1 + e⁻ˣ)."""

    FLOAT = "Sigmoid"


class OnnxQLinearLeakyRelu(OnnxQLinear):
    """x, or alpha · x below 0."""

    FLOAT = "LeakyRelu"


class OnnxQLinearSoftmax(OnnxQLinear):
    """Softmax along ``axis``."""

    FLOAT = "Softmax"
