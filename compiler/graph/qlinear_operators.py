"""The operators of ONNX and com.microsoft on integers that the host core computes as they are.

Each has scale and zero point of every tensor among its inputs. All others are operators on floats between
DequantizeLinear and QuantizeLinear when the graph is built (``compiler/normal/rules/expand.py``).
"""

from tilewright.compiler.graph.onnx_operators import Attribute, OnnxOperator, OnnxWindowed

__all__ = ["OnnxQLinearConv", "OnnxQLinearMatMul", "OnnxQLinearMul"]


class OnnxQLinearConv(OnnxWindowed):
    """Convolution with computed weights."""


class OnnxQLinearMatMul(OnnxOperator):
    """Product of two computed matrices."""


class OnnxQLinearMul(OnnxOperator):
    """a · b; ``unsigned``, which only recognition sets, tells the kernel that the model's values are uint8."""

    unsigned = Attribute(0)
