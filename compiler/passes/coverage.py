"""The operators of ONNX that become the datapath's, for the manual: where they run, within what limits, how exactly.

It stands beside the passes and takes names and bounds from them; tests compile an example of every operator and hold
it to its line. What is beyond the limits is the host core's (`compiler.kernels.registry`), with the reason in the plan.
"""

from dataclasses import dataclass
from typing import Literal

from tilewright.compiler.graph.onnx_names import BINARY, UNARY
from tilewright.compiler.graph.onnx_operators import OnnxFlatten, OnnxReshape, OnnxSqueeze, OnnxUnsqueeze, type_name
from tilewright.isa.limits import MAX_KERNEL, MAX_PADDING, MAX_WINDOW, MAX_WINDOW_STRIDE

__all__ = ["DATAPATH", "RUNS_ON", "Coverage"]

_RunsOn = Literal["conv23", "conv", "pool", "act", "table", "placement", "nothing"]

RUNS_ON: dict[_RunsOn, str] = {
    "conv23": "convolutions 3x3 by Winograd F(2x2, 3x3)",
    "conv": "products of any other window; what is per channel too",
    "pool": "`pool.sum`: sums over windows",
    "act": "requantisation and what follows it: bounds, addition, maximum; part of the layer before, where it can be",
    "table": "`act` with a table of 256 values; part of the layer before, where it can be",
    "placement": "addresses alone: nothing is copied, or a copy where two uses exclude each other",
    "nothing": "no cycle of its own: it disappears while compiling",
}
"""Each place that computes, with its meaning."""

_FLOAT = "within one level: ONNX Runtime computes it in float"
_ONE_TYPE = "activations all int8 or all uint8"
_WINDOW = f"kernel at most {MAX_KERNEL}x{MAX_KERNEL}, pads at most {MAX_PADDING}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """ONNX operators that become the same thing.

    Attributes
    ----------
    operators : tuple of str
        By ONNX's or com.microsoft's names.
    runs_on : tuple of RunsOn
        Where, one or several by size; keys of ``RUNS_ON``.
    limits : str
        Within what; beyond, the host core computes it.
    exactness : str
        Against ONNX Runtime's own kernels; begins with ``exact`` where all elements are equal always.
    """

    operators: tuple[str, ...]
    runs_on: tuple[_RunsOn, ...]
    limits: str
    exactness: str = "exact"


DATAPATH: tuple[Coverage, ...] = (
    Coverage(operators=("Conv", "QLinearConv"), runs_on=("conv23", "conv"),
             limits=f"images of one or two dimensions; {_WINDOW}; any strides, dilations and groups; weights constant "
                    f"and in int8 less their zero point, a scale per tensor or output channel; {_ONE_TYPE}",
             exactness=f"exact; where a Relu or Clip behind it does more than saturate, {_FLOAT}"),
    Coverage(operators=("ConvTranspose",), runs_on=("conv23", "conv"),
             limits=f"as Conv, one convolution per phase of the strides; {_WINDOW} each", exactness=_FLOAT),
    Coverage(operators=("Gemm", "MatMul", "QLinearMatMul", "QGemm"), runs_on=("conv",),
             limits="one row or more times a constant matrix, with one constant row as bias, also by an Add behind "
                    "a MatMul; alpha and beta 1 of several rows; weights as of Conv",
             exactness=f"exact; where alpha or beta is not 1, or an Add behind a MatMul adds one number, {_FLOAT}"),
    Coverage(operators=("Add", "QLinearAdd"), runs_on=("act",),
             limits=f"two tensors, either of which may be broadcast; {_ONE_TYPE}"),
    Coverage(operators=("Sub",), runs_on=("act", "table"),
             limits=f"two tensors, either of which may be broadcast; {_ONE_TYPE}", exactness=_FLOAT),
    Coverage(operators=("Mul", "QLinearMul"), runs_on=("conv",),
             limits="two computed tensors: an image by one with an element per channel, as squeeze and excitation has "
                    "it, or any others, broadcast or not, of a result of at most 2^20 elements, each of which is then "
                    f"a channel; {_ONE_TYPE}",
             exactness=f"exact where that is provable from the scales, which is almost always; else {_FLOAT}"),
    Coverage(operators=("BatchNormalization", "Add", "Sub", "Mul", "Div"), runs_on=("conv", "nothing"),
             limits="with constants: one, or one per channel, in the float weights beside it; others are a depthwise "
                    "convolution 1x1 between its quantisations; on the core where one level of input is so many of "
                    "output, more than 127, that int32 cannot say the constants", exactness=_FLOAT),
    Coverage(operators=("Add", "Sub", "Mul", "Div", "Relu", "Clip"), runs_on=("nothing",),
             limits="any number of them between a float input of the model and its QuantizeLinear, with constants of "
                    "at most 4096 elements: part of the quantisation of the input, which is the host's"),
    Coverage(operators=("GlobalAveragePool", "QLinearGlobalAveragePool"), runs_on=("pool",),
             limits=f"image at most {MAX_KERNEL}x{MAX_KERNEL}, or as many pixels as such a one"),
    Coverage(operators=("AveragePool", "QLinearAveragePool"), runs_on=("pool",),
             limits=f"{_WINDOW}; no dilations; where padding does not count, one layer per number of pixels counted",
             exactness=f"exact where that is provable from the scales; else {_FLOAT}"),
    Coverage(operators=("ReduceMean",), runs_on=("pool", "conv"),
             limits="of one image: over height and width, or by ones over any of channels, height and width, these at "
                    f"most {MAX_KERNEL}", exactness=_FLOAT),
    Coverage(operators=("ReduceSum",), runs_on=("conv",),
             limits=f"of one image, by ones: over any of channels, height and width, these at most {MAX_KERNEL}",
             exactness=_FLOAT),
    Coverage(operators=("MaxPool", "GlobalMaxPool"), runs_on=("act",),
             limits=f"window and pads at most {MAX_WINDOW}x{MAX_WINDOW}, strides at most {MAX_WINDOW_STRIDE}, or in "
                    "such steps; no dilations, no indices; one quantisation before and behind"),
    Coverage(operators=("Relu", "Clip"), runs_on=("act",),
             limits="constant bounds; one quantisation before and behind, else a table"),
    Coverage(operators=(*sorted(UNARY - {"Relu", "Clip"}), "QLinearSigmoid", "QLinearLeakyRelu"),
             runs_on=("table",),
             limits="of one int8 or uint8 tensor, in any arrangement up to the next QuantizeLinear; ONNX Runtime "
                    "itself fills the table"),
    Coverage(operators=tuple(sorted(BINARY)), runs_on=("table",),
             limits="with constants of one element, or of functions of the same tensor: SiLU is x · Sigmoid(x)"),
    Coverage(operators=("Concat", "QLinearConcat", "Split", "Slice", "DepthToSpace", "SpaceToDepth", "Gather", "Tile",
                        "Expand"), runs_on=("placement",),
             limits="any rank, with Transpose and reshapes between them; constant bounds and indices, no negative "
                    "steps; what is no matter of addresses is copied in at most 96 boxes, another order of channels is "
                    "a convolution 1x1; inputs of another scale pass a table first"),
    Coverage(operators=("Pad",), runs_on=("placement",),
             limits="batch 1; pads of rows and columns with a constant"),
    Coverage(operators=("Resize",), runs_on=("placement",),
             limits="mode nearest, each pixel repeated equally often"),
    Coverage(operators=("Resize",), runs_on=("conv",),
             limits="modes linear and cubic of height and width by constant scales or sizes, one convolution per phase "
                    "of the ratio: up to 256, or where rows and columns are resized apart (linear) as many together; "
                    "no antialias, exclude_outside, tf_crop_and_resize",
             exactness=f"{_FLOAT}, or cuts integers off towards 0; exact where factors and scales are powers of two, "
                       "and of uint8 in the integer form where factors are"),
    Coverage(operators=tuple(map(type_name, (OnnxFlatten, OnnxReshape, OnnxSqueeze, OnnxUnsqueeze))),
             runs_on=("nothing",),
             limits="before a fully connected layer, between shapes of one layout in memory, or at the border"),
    Coverage(operators=("Identity", "Dropout"), runs_on=("nothing",), limits="of inference"),
    Coverage(operators=("Transpose",), runs_on=("nothing",),
             limits="between NHWC and NCHW, where it meets its inverse further down; others are copies"),
    Coverage(operators=("QuantizeLinear", "DequantizeLinear"), runs_on=("nothing", "act", "table"),
             limits="per tensor: part of the layers; a change of scale is a table; at the model's border, the host's",
             exactness="exact; a change of scale within one level, as ONNX Runtime makes one step of two"),
)
"""Every operator that may run on the datapath; an operator may stand in two lines."""
