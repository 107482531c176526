"""ONNX's operators as the reader finds them: a class for each that a pass selects, one for all others.

Attributes stay as the model has them, for the host core's kernels; an :class:`Attribute` of a class is the typed way to
one of them, with the value that its absence stands for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar

from tilewright.compiler.graph.integer_operators import WindowAsRead
from tilewright.compiler.graph.node import GraphOperator

__all__ = [
    "Attribute", "OnnxAdd", "OnnxArithmetic", "OnnxAveragePool", "OnnxBatchNormalization", "OnnxBinary", "OnnxCast",
    "OnnxClip", "OnnxConcat", "OnnxConv", "OnnxConvInteger", "OnnxConvTranspose", "OnnxDepthToSpace",
    "OnnxDequantizeLinear", "OnnxDiv", "OnnxDropout", "OnnxExpand", "OnnxFlatten", "OnnxGather", "OnnxGelu",
    "OnnxGemm", "OnnxGemmLike", "OnnxGlobalAveragePool", "OnnxGlobalMaxPool", "OnnxIdentity", "OnnxImageProduct",
    "OnnxLeakyRelu", "OnnxMatMul", "OnnxMatMulInteger", "OnnxMax", "OnnxMaxPool", "OnnxMoving", "OnnxMul",
    "OnnxOperator", "OnnxPRelu", "OnnxPad", "OnnxPosition", "OnnxPow", "OnnxQuantizeLinear", "OnnxQuickGelu",
    "OnnxReduceMax", "OnnxReduceMean", "OnnxReduceSum", "OnnxReduction", "OnnxRelu", "OnnxReshape", "OnnxResize",
    "OnnxRowProduct", "OnnxSlice", "OnnxSoftmax", "OnnxSpaceToDepth", "OnnxSqueeze", "OnnxSub", "OnnxTile",
    "OnnxTranspose", "OnnxUnary", "OnnxUnsqueeze", "OnnxUpsample", "OnnxView", "OnnxWhere", "OnnxWindowed",
    "type_name",
]

_T = TypeVar("_T")
_Ints = tuple[int, ...]


class Attribute(Generic[_T]):
    """An attribute of the same name in ONNX, with its default."""

    def __init__(self, default: _T) -> None:
        self._default, self._name = default, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, operator: Any, owner: type) -> _T:
        return operator.attributes.get(self._name, self._default)


@dataclass(frozen=True)
class OnnxOperator(GraphOperator):
    """An operator of ONNX's or com.microsoft's.

    Attributes
    ----------
    attributes : mapping of str to Any
        As the model has them.
    op_type : str
        ONNX's name for it, where the class is one of several operators.
    rounded : bool
        ONNX Runtime computes it in float although integers stand around it.
    """

    attributes: Mapping[str, Any] = field(default_factory=dict)
    op_type: str = ""
    rounded: bool = False

    @property
    def name(self) -> str:
        return self.op_type or type_name(type(self))

    def with_attributes(self, **changes: Any) -> Self:
        """Return a copy with some of ONNX's attributes replaced."""
        return replace(self, attributes={**self.attributes, **changes})

    def domain(self, opset: int) -> str:
        """Return the operator set that has it in version ``opset`` of ONNX's own."""
        return ""


class OnnxWindowed(OnnxOperator):
    """An operator over a window."""

    kernel_shape = Attribute[_Ints | None](None)
    strides = Attribute[_Ints]((1, 1))
    dilations = Attribute[_Ints]((1, 1))
    pads = Attribute[_Ints]((0, 0, 0, 0))
    auto_pad = Attribute("NOTSET")
    ceil_mode = Attribute(0)
    group = Attribute(1)

    @property
    def window(self) -> WindowAsRead:
        """The window as the attributes state it."""
        return WindowAsRead(kernel=self.kernel_shape, strides=self.strides, dilations=self.dilations, pads=self.pads,
                            auto_pad=self.auto_pad, ceil_mode=self.ceil_mode)


class OnnxMoving(OnnxOperator):
    """Gives the same for all values less 128, less 128."""


class OnnxConv(OnnxWindowed):
    """Convolution of x, weights and perhaps a bias."""


class OnnxRowProduct(OnnxConv):
    """Convolution of 1x1 that stands for a Gemm or MatMul of rows; ``op_type`` is Conv."""


class OnnxConvInteger(OnnxWindowed):
    """Convolution of integers x and weights, less their zero points, in int32."""


class OnnxMatMulInteger(OnnxOperator):
    """Product of stacks of matrices of integers, less their zero points, in int32."""


class OnnxConvTranspose(OnnxWindowed):
    """Transposed convolution of x, weights and perhaps a bias."""

    output_padding = Attribute[_Ints]((0, 0))
    output_shape = Attribute[_Ints | None](None)


class OnnxGemmLike(OnnxOperator):
    """Product alpha · A · B + beta · C of matrices, transposed first if told to."""

    alpha = Attribute(1.0)
    beta = Attribute(1.0)
    transA = Attribute(0)
    transB = Attribute(0)


class OnnxGemm(OnnxGemmLike):
    """Product of floats."""


class OnnxMatMul(OnnxOperator):
    """Product of stacks of matrices."""


class OnnxImageProduct(OnnxOperator):
    """Products of computed matrices, as images: (1, K, b, M) by (1, K, c, N) is (1, N, d, M).

    ``pairs`` has for each of the d products the number of its first matrix, of b, and that of its second, of c.
    """

    pairs = Attribute[tuple[tuple[int, int], ...]](((0, 0),))


class OnnxAveragePool(OnnxWindowed):
    """Average over a window; whether padding counts is an attribute."""

    count_include_pad = Attribute(0)


class OnnxGlobalAveragePool(OnnxOperator):
    """Average over the whole image."""


class OnnxMaxPool(OnnxWindowed, OnnxMoving):
    """Maximum over a window."""


class OnnxGlobalMaxPool(OnnxWindowed):
    """Maximum over the whole image; it states no window."""


class OnnxReduction(OnnxOperator):
    """ReduceMax, ReduceMin, …: one value of all along some axes, an attribute or the second input."""

    axes = Attribute[_Ints | None](None)
    keepdims = Attribute(1)


class OnnxReduceMax(OnnxReduction):
    """Maximum along some axes."""


class OnnxReduceMean(OnnxReduction):
    """Mean along some axes."""


class OnnxReduceSum(OnnxReduction):
    """Sum along some axes."""


class OnnxPosition(OnnxOperator):
    """ArgMax or ArgMin: where the largest or least element is, the same for all values less 128."""


class OnnxUnary(OnnxOperator):
    """Computes each element of its first input by itself."""


class OnnxRelu(OnnxUnary):
    """max(x, 0)."""


class OnnxClip(OnnxUnary):
    """min(max(x, low), high); the bounds are further inputs, in older operator sets attributes."""

    min = Attribute[float | None](None)
    max = Attribute[float | None](None)


class OnnxLeakyRelu(OnnxUnary):
    """x, or alpha · x below 0."""


class OnnxGelu(OnnxUnary):
    """x Φ(x); com.microsoft's before it was ONNX's."""

    _FIRST_OPSET = 20

    def domain(self, opset: int) -> str:
        return "com.microsoft" if opset < self._FIRST_OPSET else ""


class OnnxQuickGelu(OnnxUnary):
    """x · Sigmoid(alpha · x)."""

    def domain(self, opset: int) -> str:
        return "com.microsoft"


class OnnxBinary(OnnxOperator):
    """Computes each pair of elements by itself."""


class OnnxMax(OnnxBinary):
    """The largest of each two elements, or more."""


class OnnxPow(OnnxBinary):
    """x to the power of the second input."""


class OnnxPRelu(OnnxBinary):
    """x, or slope · x below 0; the slope is the second input."""


class OnnxArithmetic(OnnxBinary):
    """Affine, if one of the two is a constant."""


class OnnxAdd(OnnxArithmetic):
    """a + b."""


class OnnxSub(OnnxArithmetic):
    """a - b."""


class OnnxMul(OnnxArithmetic):
    """a · b."""


class OnnxDiv(OnnxArithmetic):
    """a / b."""


class OnnxBatchNormalization(OnnxOperator):
    """γ · (x - μ) / √(σ² + ε) + β, of x, γ, β, μ, σ²."""

    epsilon = Attribute(1e-5)
    training_mode = Attribute(0)
    spatial = Attribute(1)


class OnnxView(OnnxMoving):
    """The same elements in another shape."""


class OnnxFlatten(OnnxView):
    """Two dimensions: those before ``axis``, and those from it on."""

    axis = Attribute(1)


class OnnxReshape(OnnxView):
    """A shape, which is the second input, or in older operator sets an attribute."""

    shape = Attribute[_Ints | None](None)
    allowzero = Attribute(0)


class OnnxSqueeze(OnnxView):
    """Without axes of one element; which ones is the second input, or in older operator sets an attribute."""

    axes = Attribute[_Ints | None](None)


class OnnxUnsqueeze(OnnxView):
    """With axes of one element; which ones is the second input, or in older operator sets an attribute."""

    axes = Attribute[_Ints | None](None)


class OnnxIdentity(OnnxMoving):
    """x."""


class OnnxDropout(OnnxOperator):
    """x, but in training."""


class OnnxCast(OnnxOperator):
    """x in another type."""


class OnnxWhere(OnnxOperator):
    """a or b, by a condition."""


class OnnxSoftmax(OnnxOperator):
    """Softmax along ``axis``."""

    axis = Attribute(-1)


class OnnxConcat(OnnxMoving):
    """Tensors one after the other along ``axis``."""

    axis = Attribute(1)


class OnnxSlice(OnnxMoving):
    """Part of x; starts, ends, axes and steps are inputs, in older operator sets attributes."""


class OnnxResize(OnnxOperator):
    """An image in another size."""

    mode = Attribute("nearest")
    coordinate_transformation_mode = Attribute[str | None](None)
    nearest_mode = Attribute[str | None](None)
    axes = Attribute[_Ints | None](None)


class OnnxUpsample(OnnxResize):
    """Resize of older operator sets."""


class OnnxPad(OnnxOperator):
    """x with padding; pads, value and axes are inputs, in older operator sets attributes."""

    mode = Attribute("constant")
    value = Attribute(0.0)


class OnnxTranspose(OnnxMoving):
    """x with its axes in the order ``perm``; turned round without one."""

    perm = Attribute[_Ints | None](None)


class OnnxDepthToSpace(OnnxMoving):
    """Blocks of channels as blocks of pixels."""

    blocksize = Attribute(0)
    mode = Attribute("DCR")


class OnnxSpaceToDepth(OnnxMoving):
    """Blocks of pixels as blocks of channels."""


class OnnxGather(OnnxMoving):
    """Elements of x at the indices that are the second input, along ``axis``."""

    axis = Attribute(0)


class OnnxExpand(OnnxMoving):
    """x repeated along axes of one element, to the shape that is the second input."""


class OnnxTile(OnnxMoving):
    """x several times along each axis; how often is the second input."""


class OnnxQuantizeLinear(OnnxOperator):
    """Integers of floats x, by a scale and a zero point."""

    axis = Attribute(1)


class OnnxDequantizeLinear(OnnxOperator):
    """Floats of integers x, by a scale and a zero point."""

    axis = Attribute(1)
    block_size = Attribute(0)


def type_name(kind: type[OnnxOperator]) -> str:
    """Return ONNX's name of the one operator that ``kind`` is a class of."""
    return kind.__name__.removeprefix("Onnx")
