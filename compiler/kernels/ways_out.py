"""Advice on changing a model so that the host core need not compute an operator: by the cause, else by the operator."""

import re

__all__ = ["ENDINGS", "MIDDLE", "causes", "texts", "way_out", "way_out_of_refusal"]

MIDDLE = "layers behind it read its result"
"""The end of a reason of an operator that could be left out at the end of a model, and is not there."""

_REPLACE = "compute that part outside of the model, or replace the node by one that is supported"
_QUANTISED = "--calibrate FILE does this for what a file leaves in float"
_ONE_TYPE = "quantise all activations to one type, int8 or uint8"
_AXIS = "quantise its weights per tensor, or along the axis of its output channels"
_INT8 = "quantise its weights to int8 (weight_type=QuantType.QInt8)"
_QDQ = "write the model in the other form (quant_format=QuantFormat.QDQ)"
_SAME = "give its input and its output one scale and one zero point"
_CLOSER = ("give input, weights and output scales that are closer together; a channel whose weights are almost zero "
           "wants a larger scale than theirs")
_STATIC = "quantise with ranges that are constants: quantize_static, or the float model with --calibrate FILE"
_RESIZE = "resize height and width with mode nearest by an integer factor, or linear by 2, antialias 0"
_MEAN = "use GlobalAveragePool, or ReduceMean over height and width, between quantised tensors"
_NORMALISED = "train with BatchNormalization, which folds into convolutions"
_OUTSIDE = "compute it outside of the model, on its outputs"
_TABLE = "quantise its one input and its output, so that it becomes a table of 256 values"

_BY_CAUSE: tuple[tuple[re.Pattern[str], str], ...] = tuple((re.compile(cause), text) for cause, text in (
    # what the file leaves in float, and what only follows from it
    ("input is computed in float", "nothing to do here: change the layer that computes its input in float"),
    ("result is needed in float", "nothing to do here: change the layer that reads its result in float"),
    ("not quantised immediately and exactly once", f"quantise its result, once and right behind it; {_QUANTISED}"),
    ("input '.*' is float", f"quantise that input; {_QUANTISED}"),
    ("weights are float", f"quantise its weights to int8; {_QUANTISED}"),
    # types and scales
    ("int8 and uint8|uint8 values", _ONE_TYPE),
    (r"weights are u?int", _INT8),
    ("scales of its weights do not belong", _AXIS),
    (r"activation '.*' has \d+ scales", "quantise activations per tensor"),
    ("activation '.*' is ", "quantise activations to int8 or uint8"),
    ("(scale|zero point)( '.*')? is computed while", _STATIC),
    (r"scale '.*' is ", "quantise with float32 scales"),
    ("different scales or zero points|does not change the scale", _SAME),
    ("bias at the product of the scales|one step of its sums", _CLOSER),
    ("bias is neither", "quantise its bias to int32, or leave it in float32"),
    ("its bias has|has another bias", "give its bias one element for each output channel"),
    ("its constants do not fit", "give input and output scales that are closer together"),
    ("infinity or NaN", "use finite constants"),
    # operands
    ("weight '.*' is computed while|multiplies by what is computed", "make one of its two operands a constant"),
    ("computed while the model runs", "make it a constant"),
    (r"weights have the shape|weights are \S+ of \d+ dimensions|weights have \d+ dimensions",
     "split it into products or convolutions over two dimensions, and join their results with Concat"),
    ("operand is a constant|inputs is a constant", _QDQ),
    ("input '.*' is a constant", "let the constant be its second operand, or fold it into a bias"),
    ("its slope", "give it one slope for each channel, of the shape (channels, 1, 1)"),
    ("multiplies only by constants", "multiply by a constant, or by tensors of one type and shape"),
    ("operands differ in shape", "expand the smaller operand when exporting"),
    # windows and shapes
    ("wholly in the padding", "use pads that are smaller than the window"),
    ("pads are ", "pad height and width alone, and slice instead of negative pads"),
    (r"reduces \d+ elements", "reduce in two steps, over smaller windows"),
    ("reduces more than", "reduce channels, height or width of one image"),
    ("cannot move single elements", "swap height and width nowhere: keep the order of a tensor's axes"),
    (r"its (antialias|coordinate_transformation_mode|nearest_mode|exclude_outside|mode|cubic_coeff_a) is", _RESIZE),
    ("repeat all pixels|pixel weights|in 8 bits may be|resizes axes|it makes |result is empty", _RESIZE),
    ("its steps are", "slice with steps of at least 1"),
    ("NHWC", "export it with tensors in NCHW"),
    ("input has the shape|result has the shape|joins batches",
     "use tensors of one image: (1, channels, height, width) or (1, channels)"),
    # the rest
    ("it moves nothing", "leave it out: its result is its input"),
    ("machine leaves out", "take a machine that has it: base has every unit"),
    ("machine has no integer requantisation", "choose one that has it, as with --machine base,integer_requantise=true"),
    ("machine requantises in whole numbers alone",
     "choose one that does both, as with --machine base,integer_requantise=true"),
    ("its addends are too large", "quantise with smaller multipliers and addends, of at most 18 bits"),
    ("machine has no row unit", "choose one that has it, as with --machine base,row_unit=true"),
    ("row unit takes rows that lie in one run", "let its axis be the channels of an image, or the last of a matrix"),
    ("row unit takes rows of at most", "split it over fewer channels: no machine takes more"),
    ("row unit takes rows of up to", "take a machine with more parameter_channels, up to 4096"),
    ("row unit normalises rows of", "nothing to do here: rows as short as these are the host core's"),
    ("row unit takes normalisations along", "normalise the last axis, and leave its variance in float"),
    ("row unit needs", "give it a scale, a bias and an epsilon that count in levels of its input and result"),
    ("row unit leaves levels", "quantise its input and its result to one type, and the result with a scale below 1"),
    ("so few elements cost", "nothing to do here: the datapath would take about as long"),
    ("a few numbers for each channel", "nothing to do here: the datapath does the rest of the normalisation"),
    ("drops values, as in training", "export the model for inference"),
    ("computes with the constant|all that it joins is constant",
     "fold constants into the model, for instance with onnxsim"),
    ("input is transposed", "transpose it when exporting"),
    ("ONNX Runtime does not compute it", "use Relu, or LeakyRelu"),
))
"""Ends of sentences by what a reason says; the first that is found in it counts."""

_BY_OPERATOR: tuple[tuple[frozenset[str], str], ...] = tuple((frozenset(names.split()), text) for names, text in (
    ("Conv ConvTranspose Gemm MatMul", "quantise its input, its constants and its output"),
    ("QLinearConv QLinearMatMul ConvInteger MatMulInteger", "use constant int8 weights, and activations of one type"),
    ("BatchNormalization", "fold it into the convolution before it, or quantise it with constants"),
    ("DequantizeLinear", "also quantise the operators that read its result, or end the model before it"),
    ("QuantizeLinear", "also quantise the operators that compute its input, or give the model integer inputs"),
    ("Add Sub Mul Div PRelu QLinearMul", "use a constant operand, or quantised tensors of the same shape"),
    ("Max Min", "bound it by one number, or by a quantised tensor of the same shape"),
    ("Pow", "use one exponent for all elements, so that it becomes a table of 256 values"),
    ("QuotientOfLevels", "divide by a constant, or multiply by the divisor's Reciprocal, quantised"),
    ("Sum Mean", "write it as Add of two tensors, each quantised"),
    ("Resize Upsample", "use mode nearest with integer factors, quantised before and after it"),
    ("Softmax LogSoftmax Hardmax SoftmaxOfLevels LogSoftmaxOfLevels",
     "end the model before it: the largest value stays the largest"),
    ("LRN ResponseOfLevels InstanceNormalization LayerNormalization GroupNormalization LpNormalization",
     _NORMALISED),
    ("NormalisationOfLevels RMSNormalization", _NORMALISED),
    ("Expand", "repeat channels, height or width of one image, not the image"),
    ("LpPool", "use MaxPool or AveragePool between quantised tensors"),
    ("Concat DepthToSpace Flatten Gather Identity Pad Reshape Slice SpaceToDepth Squeeze Tile", _SAME),
    ("Transpose Unsqueeze MaxPool GlobalMaxPool", _SAME),
    ("AveragePool GlobalAveragePool", "quantise its input and its output"),
    ("ReduceMean ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp", _MEAN),
    ("ReduceMax ReduceMin ReduceProd ReduceSum ReduceSumSquare", _MEAN),
    ("Where", "multiply by a mask of 0 and 1 in its place, a quantised input"),
    ("And ArgMax ArgMin CumSum Equal Greater GreaterOrEqual IsNaN Less LessOrEqual Not Or TopK Xor", _OUTSIDE),
    ("Cast", "give the model its input in the type with which it computes"),
))
"""The same by operator, where the reason says no more than that. Functions of one value are not here: they are tables
where they are quantised."""

_IN_THE_MIDDLE = (
    (frozenset("Softmax LogSoftmax Hardmax SoftmaxOfLevels LogSoftmaxOfLevels".split()),
     "train with Sigmoid in its place, which is a table of 256 values once it is quantised"),
    (frozenset("ArgMax ArgMin TopK".split()), "end the model before it, and compute it and what follows outside"),
)

ENDINGS = frozenset().union(*(names for names, _ in _IN_THE_MIDDLE))
"""Operators that a model need not end with."""


def texts() -> frozenset[str]:
    """Return all that is advised."""
    return frozenset(text for _, text in (*_BY_CAUSE, *_BY_OPERATOR, *_IN_THE_MIDDLE)) | {_REPLACE, _TABLE}


def causes() -> tuple[str, ...]:
    """Return the patterns of reasons that have advice of their own."""
    return tuple(cause.pattern for cause, _ in _BY_CAUSE)


def way_out(op: str, reason: str = "") -> str:
    """Return a change that spares the host core ``op``, as the end of a sentence.

    Parameters
    ----------
    op : str
        ONNX's operator, or the core's own.
    reason : str
        Why the datapath does not compute it, as the layer says.
    """
    if reason.endswith(MIDDLE) and (text := next((text for names, text in _IN_THE_MIDDLE if op in names), "")):
        return text
    return _by_cause(reason) or next((text for names, text in _BY_OPERATOR if op in names), _TABLE)


def way_out_of_refusal(*reasons: str) -> str:
    """Return what to do about an operator that neither the datapath nor the core computes, for these reasons."""
    return next(filter(None, map(_by_cause, reversed(reasons))), _REPLACE)


def _by_cause(reason: str) -> str:
    return next((text for cause, text in _BY_CAUSE if cause.search(reason)), "")
