"""ONNX operators that the datapath computes, for the manual: where they run, within which limits, and how exactly.

This module stands beside the passes and takes names and bounds from them. Tests compile an example of every operator
and compare it with its line. The host core computes operators beyond these limits (`compiler.kernels.registry`), and
the plan states the reason.
"""

from dataclasses import dataclass
from typing import Literal

from tilewright.compiler.graph.onnx_names import BINARY, CHOICES, UNARY
from tilewright.compiler.graph.onnx_operators import OnnxFlatten, OnnxReshape, OnnxSqueeze, OnnxUnsqueeze, type_name
from tilewright.isa.limits import MAX_WINDOW

__all__ = ["DATAPATH", "RUNS_ON", "Coverage"]

_RunsOn = Literal["conv23", "conv", "pool", "act", "table", "placement", "nothing"]

RUNS_ON: dict[_RunsOn, str] = {
    "conv23": "convolutions 3x3 by Winograd F(2x2, 3x3)",
    "conv": "products of any other window, and products per channel",
    "pool": "`pool.sum`: sums over windows",
    "act": "requantisation, then bounds, addition, maximum; fused into the layer before where possible",
    "table": "`act` with a table of 256 values; fused into the layer before where possible",
    "placement": "only addresses change and nothing is copied, except where two uses exclude each other",
    "nothing": "takes no cycles: the compiler removes it",
}
"""Each place that can compute an operator, with its meaning."""

_FLOAT = "within one level: ONNX Runtime computes it in float"
_ONE_TYPE = "activations all int8 or all uint8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """ONNX operators that the datapath computes in the same way.

    Attributes
    ----------
    operators : tuple of str
        By ONNX's or com.microsoft's names.
    runs_on : tuple of RunsOn
        Where they run: one place or, depending on size, several; keys of ``RUNS_ON``.
    limits : str
        Limits; beyond them the host core computes the operator.
    exactness : str
        How the result compares with ONNX Runtime's kernels; begins with ``exact`` if all elements are always equal.
    """

    operators: tuple[str, ...]
    runs_on: tuple[_RunsOn, ...]
    limits: str
    exactness: str = "exact"


DATAPATH: tuple[Coverage, ...] = (
    Coverage(operators=("Conv", "QLinearConv"), runs_on=("conv23", "conv"),
             limits="images of one or two dimensions; kernels of any size, any strides, dilations and groups; constant "
                    f"weights that fit int8 less their zero point, with a scale per tensor or output channel; "
                    f"{_ONE_TYPE}",
             exactness=f"exact; if a following Relu or Clip does more than saturate, {_FLOAT}"),
    Coverage(operators=("ConvTranspose",), runs_on=("conv23", "conv"),
             limits="weights and all else as for Conv, with one convolution per phase of the strides",
             exactness=_FLOAT),
    Coverage(operators=("Gemm", "MatMul", "QLinearMatMul", "QGemm"), runs_on=("conv",),
             limits="one or more rows times a constant matrix, with one constant row as bias, which may be an Add "
                    "after a MatMul; for several rows alpha and beta must be 1; weights as for Conv",
             exactness=f"exact; if alpha or beta is not 1, or an Add after a MatMul adds one number, {_FLOAT}"),
    Coverage(operators=("MatMul", "QLinearMatMul"), runs_on=("conv",),
             limits="two computed tensors of any rank and transposition, batches of matrices that may be broadcast, at "
                    "most 256 products; a scale and a zero point for each tensor; quantised right behind; "
                    f"{_ONE_TYPE}",
             exactness=f"exact; if a following Relu or Clip does more than saturate, {_FLOAT}"),
    Coverage(operators=("Add", "QLinearAdd"), runs_on=("act",),
             limits=f"two tensors, either of which may be broadcast; {_ONE_TYPE}"),
    Coverage(operators=("Sub",), runs_on=("act", "table"),
             limits=f"two tensors, either of which may be broadcast; {_ONE_TYPE}", exactness=_FLOAT),
    Coverage(operators=("Mul", "QLinearMul"), runs_on=("conv",),
             limits="two computed tensors: either an image times one element per channel, as in squeeze-and-"
                    "excitation, or any others, broadcast or not, with a result of at most 2^20 elements, each of "
                    f"which then becomes a channel; {_ONE_TYPE}",
             exactness=f"exact where the scales prove it, which is almost always; else {_FLOAT}"),
    Coverage(operators=("BatchNormalization", "Add", "Sub", "Mul", "Div"), runs_on=("conv", "nothing"),
             limits="with constants, one or one per channel: folded into adjacent float weights, or else a depthwise "
                    "1x1 convolution between its quantisations; on the core if one input level is so many output "
                    "levels, more than 127, that int32 cannot hold the constants", exactness=_FLOAT),
    Coverage(operators=("Add", "Sub", "Mul", "Div", "Relu", "Clip"), runs_on=("nothing",),
             limits="any number of them between a float input of the model and its QuantizeLinear, with constants of "
                    "at most 4096 elements: folded into the quantisation of the input, which the host does"),
    Coverage(operators=("GlobalAveragePool", "QLinearGlobalAveragePool"), runs_on=("pool",),
             limits="images of any size"),
    Coverage(operators=("AveragePool", "QLinearAveragePool"), runs_on=("pool",),
             limits="windows and dilations of any size; if padding does not count, one layer for each number of "
                    "pixels that a window counts",
             exactness=f"exact where the scales prove it; else {_FLOAT}"),
    Coverage(operators=("ReduceMean",), runs_on=("pool", "conv"),
             limits="one image: over height and width, or, with weights of 1, over any of channels, height and width; "
                    "(1, rows, channels) or (1, channels, length) along one axis; several "
                    "in a row become one", exactness=_FLOAT),
    Coverage(operators=("ReduceSum",), runs_on=("conv",),
             limits="one image, with weights of 1: over any of channels, height and width",
             exactness=_FLOAT),
    Coverage(operators=("MaxPool", "GlobalMaxPool"), runs_on=("act",),
             limits=f"windows, strides and dilations of any size, in steps of at most {MAX_WINDOW}x{MAX_WINDOW}; no "
                    "indices; another quantisation behind it is a table"),
    Coverage(operators=("Max", "ReduceMax"), runs_on=("act", "table"),
             limits="computed tensors of the same shape; or one image along height, width or both, or along its "
                    "channels; or (1, rows, channels) along one axis: as max pooling"),
    Coverage(operators=("PRelu",), runs_on=("conv", "act", "table"),
             limits="a constant slope per channel of an image or vector; one slope for all is a table",
             exactness=f"{_FLOAT}; exact as a table"),
    Coverage(operators=("Relu", "Clip"), runs_on=("act",),
             limits="constant bounds; the same quantisation before and after, else a table"),
    Coverage(operators=(*sorted(UNARY - {"Relu", "Clip"}), "QLinearSigmoid", "QLinearLeakyRelu"),
             runs_on=("table",),
             limits="any function of one int8 or uint8 tensor, in any combination up to the next QuantizeLinear; ONNX "
                    "Runtime itself fills the table"),
    Coverage(operators=tuple(sorted(BINARY)), runs_on=("table",),
             limits="with constants of one element, or between functions of the same tensor: SiLU is x · Sigmoid(x)"),
    Coverage(operators=tuple(sorted(CHOICES)), runs_on=("table",),
             limits="within a function of one tensor: Where(x > 0, x, x / 10)"),
    Coverage(operators=("Concat", "QLinearConcat", "Split", "Slice", "DepthToSpace", "SpaceToDepth", "Gather", "Tile",
                        "Expand"), runs_on=("placement",),
             limits="any rank, with Transpose and reshapes between them; constant bounds and indices, no negative "
                    "steps; what addresses cannot express is copied in at most 96 boxes; another order of channels is "
                    "a 1x1 convolution; inputs of another scale pass through a table first"),
    Coverage(operators=("Pad",), runs_on=("placement",),
             limits="batch 1; pads rows and columns with a constant, or any axes in mode edge, reflect or wrap; "
                    "channels padded with a constant are a 1x1 convolution"),
    Coverage(operators=("Resize",), runs_on=("placement",),
             limits="mode nearest, over height and width; where it does not repeat each pixel equally often, copies in "
                    "at most 96 boxes"),
    Coverage(operators=("Resize",), runs_on=("conv",),
             limits="modes linear and cubic, over height and width, with constant scales or sizes; one convolution per "
                    "phase of the ratio, at most 256 (linear with separate rows and columns: 256 together); "
                    "no antialias, exclude_outside or tf_crop_and_resize",
             exactness=f"{_FLOAT}, or truncates integers towards 0; exact where factors and scales are powers of two, "
                       "and for uint8 in the integer form where factors are"),
    Coverage(operators=tuple(map(type_name, (OnnxFlatten, OnnxReshape, OnnxSqueeze, OnnxUnsqueeze))),
             runs_on=("nothing",),
             limits="before a fully connected layer, between shapes of one layout in memory, or at the border"),
    Coverage(operators=("Identity", "Dropout"), runs_on=("nothing",), limits="inference only"),
    Coverage(operators=("Transpose",), runs_on=("nothing",),
             limits="between NHWC and NCHW, if its inverse follows later; others are copies"),
    Coverage(operators=("QuantizeLinear", "DequantizeLinear"), runs_on=("nothing", "act", "table"),
             limits="per tensor: part of the layers; a change of scale is a table; at the model's border the "
                    "host does it",
             exactness="exact; a change of scale within one level, because ONNX Runtime fuses two steps into one"),
)
"""All operators that may run on the datapath; an operator may appear in two lines."""
