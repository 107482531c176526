"""Which options each operator of TensorFlow Lite has that change what it computes, by the schema's names."""

__all__ = ["OPTIONS", "RAW_OPTIONS", "TEXTS", "VECTORS"]

_CONVOLUTION = ("Padding", "StrideW", "StrideH", "FusedActivationFunction", "DilationWFactor", "DilationHFactor")
_POOL = ("Pool2DOptions", ("Padding", "StrideW", "StrideH", "FilterWidth", "FilterHeight", "FusedActivationFunction"))
_REDUCER = ("ReducerOptions", ("KeepDims",))
_RESIZE = ("AlignCorners", "HalfPixelCenters")

OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ADD": ("AddOptions", ("FusedActivationFunction",)),
    "ARG_MAX": ("ArgMaxOptions", ("OutputType",)),
    "ARG_MIN": ("ArgMinOptions", ("OutputType",)),
    "AVERAGE_POOL_2D": _POOL,
    "BATCH_MATMUL": ("BatchMatMulOptions", ("AdjX", "AdjY")),
    "CALL_ONCE": ("CallOnceOptions", ("InitSubgraphIndex",)),
    "CONCATENATION": ("ConcatenationOptions", ("Axis", "FusedActivationFunction")),
    "CONV_2D": ("Conv2DOptions", _CONVOLUTION),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", ("BlockSize",)),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", (*_CONVOLUTION, "DepthMultiplier")),
    "DIV": ("DivOptions", ("FusedActivationFunction",)),
    "FULLY_CONNECTED": ("FullyConnectedOptions", ("FusedActivationFunction", "WeightsFormat", "KeepNumDims")),
    "GATHER": ("GatherOptions", ("Axis", "BatchDims")),
    "GELU": ("GeluOptions", ("Approximate",)),
    "IF": ("IfOptions", ("ThenSubgraphIndex", "ElseSubgraphIndex")),
    "LEAKY_RELU": ("LeakyReluOptions", ("Alpha",)),
    "MAX_POOL_2D": _POOL,
    "MEAN": _REDUCER,
    "MIRROR_PAD": ("MirrorPadOptions", ("Mode",)),
    "MUL": ("MulOptions", ("FusedActivationFunction",)),
    "PACK": ("PackOptions", ("ValuesCount", "Axis")),
    "REDUCE_MAX": _REDUCER,
    "RESHAPE": ("ReshapeOptions", ()),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", _RESIZE),
    "RESIZE_NEAREST_NEIGHBOR": ("ResizeNearestNeighborOptions", _RESIZE),
    "SOFTMAX": ("SoftmaxOptions", ("Beta",)),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", ("BlockSize",)),
    "SPLIT": ("SplitOptions", ("NumSplits",)),
    "SPLIT_V": ("SplitVOptions", ("NumSplits",)),
    "SQUEEZE": ("SqueezeOptions", ("SqueezeDims",)),
    "STRIDED_SLICE": ("StridedSliceOptions", ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask",
                                              "Offset")),
    "SUB": ("SubOptions", ("FusedActivationFunction",)),
    "SUM": _REDUCER,
    "TRANSPOSE_CONV": ("TransposeConvOptions", ("Padding", "StrideW", "StrideH", "FusedActivationFunction")),
    "UNPACK": ("UnpackOptions", ("Num", "Axis")),
    "VAR_HANDLE": ("VarHandleOptions", ("Container", "SharedName")),
}
"""The table of options of each operator that has some, and what is read of it."""

RAW_OPTIONS: dict[str, tuple[str, ...]] = {
    "custom Convolution2DTransposeBias": ("Padding", "StrideW", "StrideH"),
}
"""Custom operators that are read, and the whole numbers that their options are: ``TfLiteTransposeConvParams`` of
MediaPipe's ``transpose_conv_bias.cc``."""

VECTORS = frozenset({"SqueezeDims"})
"""Options that are lists."""

TEXTS = frozenset({"Container", "SharedName"})
"""Options that are names."""
