"""The integer operators that recognition makes from both ONNX forms: their meaning, inputs and attributes.

Scales and zero points of activations are those of the tensors. Weights are int8 (int16 where some leave it), output
channels first; the bias is int32, or ``""`` for none. What only moves integers is in
:mod:`tilewright.compiler.graph.move_operators`.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from tilewright.compiler.graph.node import GraphOperator
from tilewright.compiler.kernels.preparation import PreparationStep
from tilewright.compiler.network.integer_scale import IntegerScale, LongScale
from tilewright.compiler.network.interpolation import AxisPhase
from tilewright.compiler.network.layer_uses import StageUse, UnitUse
from tilewright.compiler.network.layers import ChannelScales, Kind, MaxPooling, Pads, Pair, Residual

__all__ = [
    "Bounded", "Computing", "Dequantize", "ExactWindow", "IntegerOperator", "OneLayer", "QAdd", "QAverage", "QClamp",
    "QConv", "QConvTranspose", "QDense", "QInterpolate", "QMaxPool", "QPass", "QProduct", "QScale", "QStage", "QTable",
    "Quantize", "TakesTable", "WindowAsRead", "Windowed",
]


@dataclass(frozen=True)
class IntegerOperator(GraphOperator):
    """An operator of ours: the datapath's, or the border's. All others are ONNX's, and the host core computes them."""

    ONNX_NAME: ClassVar[str] = ""
    """Its name in messages, where that is another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAsRead:
    """A sliding window as the model states it.

    Attributes
    ----------
    kernel : tuple of int or None
        None for one as large as the image, or as the weights.
    auto_pad : str
        ONNX's: NOTSET for ``pads``, VALID, SAME_UPPER or SAME_LOWER.
    ceil_mode : int
        Whether a window may reach beyond the pads.
    """

    kernel: tuple[int, ...] | None = None
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    auto_pad: str = "NOTSET"
    ceil_mode: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactWindow:
    """A sliding window that fits a whole number of times; pads are (top, left, bottom, right)."""

    kernel: Pair = (1, 1)
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Bounded(IntegerOperator):
    """An operator with a result clamped to ``low`` .. ``high``: int8 bounds, or uint8 ones until ShiftUnsigned."""

    low: int = -128
    high: int = 127

    def of_type(self, dtype: str) -> Self:
        """Return the operator with the bounds of ``dtype``."""
        bounds = np.iinfo(dtype)
        return replace(self, low=int(bounds.min), high=int(bounds.max))


@dataclass(frozen=True, kw_only=True)
class Windowed(IntegerOperator):
    """An operator over a window, which is exact once InferShapes has seen it."""

    window: WindowAsRead | ExactWindow = WindowAsRead()

    @property
    def exact_window(self) -> ExactWindow:
        """The window, which InferShapes must have seen."""
        if not isinstance(self.window, ExactWindow):
            raise TypeError(f"Window of a {self.name} must be resolved to numbers, and is still as the model states it")
        return self.window


@dataclass(frozen=True, kw_only=True)
class Computing(Bounded):
    """An operator with its own arithmetic and its own quantisation of the result.

    ``exact`` tells whether ONNX Runtime's own result is reproducible; where not, it computes in float.
    """

    exact: bool = True


@dataclass(frozen=True, kw_only=True)
class TakesTable(Computing):
    """An operator that maps its result by a table, if there is one.

    Attributes
    ----------
    table : ndarray or None
        int8 of 256: what becomes of -128 .. 127; with a stage, its parameters.
    stage : StageUse or None
        The stage of an extension, in place of a table.
    own_output : str
        The tensor whose quantisation the operator itself writes, before what has been fused behind it; ``""`` for that
        of the node's output.
    """

    table: np.ndarray | None = None
    stage: StageUse | None = None
    own_output: str = ""


@dataclass(frozen=True, kw_only=True)
class OneLayer(TakesTable):
    """An operator that becomes one layer, which operators after it may join.

    ``residual`` is the addition and ``pool`` the max pooling behind it. The node's last input is the residual's tensor.
    With ``table_first`` the table maps the operator's own value, before the addition.
    """

    residual: Residual | None = None
    table_first: bool = False
    pool: MaxPooling | None = None

    KIND: ClassVar[Kind]


@dataclass(frozen=True, kw_only=True)
class QConv(Windowed, OneLayer):
    """Convolution of x, weights, their scale and bias; ``alpha`` multiplies the scale.

    One that is ``whole`` writes its sums as they are, int32. With ``integers`` these take the place of all scales.
    """

    groups: int = 1
    alpha: float = 1.0
    whole: bool = False
    integers: IntegerScale | LongScale | None = None

    KIND = "conv"
    ONNX_NAME = "Conv"


@dataclass(frozen=True, kw_only=True)
class QAverage(Windowed, OneLayer):
    """Average of x over a window.

    ``counts_padding`` tells whether padding counts. ``windowed`` marks a part of an average over windows, which ONNX
    Runtime computes as such even if it covers all of its input.
    """

    counts_padding: bool = False
    windowed: bool = False

    KIND = "average"
    ONNX_NAME = "AveragePool"


@dataclass(frozen=True, kw_only=True)
class QPass(OneLayer):
    """x itself: a layer for the bounds, the addition, the table or the pooling that nothing before it takes."""

    KIND = "pass"


@dataclass(frozen=True, kw_only=True)
class QScale(OneLayer):
    """x times a computed vector, an element per channel. With ``integers`` these take the place of all scales."""

    integers: LongScale | None = None

    KIND = "conv"
    ONNX_NAME = "Mul"


@dataclass(frozen=True, kw_only=True)
class QProduct(TakesTable):
    """Products of computed matrices, those of (1, K, b, M) by those of (1, K, c, N): (1, N, d, M).

    ``pairs`` has for each of the d products the number of its first matrix, of b, and that of its second, of c. With
    ``integers``, of one channel, these take the place of all scales.
    """

    pairs: tuple[Pair, ...]
    integers: LongScale | None = None

    ONNX_NAME = "MatMul"


@dataclass(frozen=True, kw_only=True)
class QConvTranspose(TakesTable):
    """Transposed convolution of x, weights as ONNX has them, their scale and bias.

    With ``integers`` these take the place of all scales.
    """

    window: ExactWindow
    output_padding: Pair
    groups: int = 1
    integers: IntegerScale | LongScale | None = None

    ONNX_NAME = "ConvTranspose"


@dataclass(frozen=True, kw_only=True)
class QInterpolate(TakesTable):
    """Linear or cubic resize of x by the phases of its rows and columns; every column of x is there ``copies`` times.

    ``direct`` tells that ONNX Runtime weighs the integers themselves, of one quantisation before and behind, and cuts
    the fraction off.
    """

    rows: tuple[AxisPhase, ...]
    columns: tuple[AxisPhase, ...]
    copies: int = 1
    direct: bool = False

    ONNX_NAME = "Resize"

    @property
    def size(self) -> Pair:
        """Rows and columns of the result."""
        return sum(each.count for each in self.rows), sum(each.count for each in self.columns)


@dataclass(frozen=True, kw_only=True)
class QDense(Computing):
    """Product of a vector x and a matrix: x, weights, their scale and bias; what else there is as for QConv."""

    alpha: float = 1.0
    whole: bool = False
    integers: IntegerScale | LongScale | None = None

    ONNX_NAME = "Gemm"


@dataclass(frozen=True, kw_only=True)
class QAdd(Computing):
    """Sum of a and b."""

    ONNX_NAME = "Add"


@dataclass(frozen=True, kw_only=True)
class QTable(Computing):
    """Element of ``table``, int8 of 256, for each x of -128 .. 127 (uint8 less 128)."""

    table: np.ndarray


@dataclass(frozen=True)
class QStage(IntegerOperator):
    """Result of an extension's stage from x; ``parameters``, int8 of 256, are those of its channels."""

    use: StageUse
    parameters: np.ndarray


@dataclass(frozen=True, kw_only=True)
class QUnit(OneLayer):
    """Result of the unit of an extension for the channels of each pixel of x."""

    use: UnitUse

    KIND = "conv"


@dataclass(frozen=True, kw_only=True)
class QMaxPool(Windowed, Bounded):
    """Maximum of x over a window."""

    ONNX_NAME = "MaxPool"


@dataclass(frozen=True, kw_only=True)
class QClamp(Bounded):
    """x within bounds."""


@dataclass(frozen=True)
class Quantize(IntegerOperator):
    """Integers of the model's float32 input x, after the steps of ``preparation``; or x's own, in another shape."""

    preparation: tuple[PreparationStep, ...] = ()


@dataclass(frozen=True)
class Dequantize(IntegerOperator):
    """The model's float32 output of integers x, which have scales by ``channels`` if they are whole sums."""

    channels: ChannelScales | None = None
