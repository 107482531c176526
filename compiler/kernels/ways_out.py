"""Advice on changing a model so that the host core need not compute an operator: one table, by operator."""

__all__ = ["way_out"]

_CALIBRATE = "quantise its input, its constants and its output; --calibrate does this for a float model"
_MOVE = "use the same quantisation before and after it, and constant parameters"
_TABLE = "quantise its one input and its output, so that it becomes a table of 256 values"
_MEAN = "use GlobalAveragePool, or ReduceMean over height and width, between quantised tensors"
_NORMALISED = "train with BatchNormalization, which folds into convolutions"
_LOGIC = "compute it outside of the model, on its outputs"

_WAYS_OUT: tuple[tuple[frozenset[str], str], ...] = tuple((frozenset(names.split()), text) for names, text in (
    ("Conv ConvTranspose Gemm MatMul", _CALIBRATE),
    ("QLinearConv QLinearMatMul ConvInteger MatMulInteger", "use constant int8 weights, and activations of one type"),
    ("BatchNormalization", "fold it into the convolution before it, or quantise it with constants"),
    ("DequantizeLinear", "also quantise the operators that read its result, or end the model before it"),
    ("QuantizeLinear", "also quantise the operators that compute its input, or give the model integer inputs"),
    ("Add Sub Mul Div Max Min Pow PRelu QLinearMul", "use a constant operand, or quantised tensors of the same shape"),
    ("Sum Mean", "write it as Add of two tensors, each quantised"),
    ("Resize Upsample", "use mode nearest with integer factors, quantised before and after it"),
    ("Softmax LogSoftmax Hardmax SoftmaxOfLevels LogSoftmaxOfLevels",
     "end the model before it: the largest value stays the largest"),
    ("LRN ResponseOfLevels InstanceNormalization LayerNormalization GroupNormalization LpNormalization",
     _NORMALISED),
    ("NormalisationOfLevels", _NORMALISED),
    ("Concat DepthToSpace Expand Flatten Gather Identity Pad Reshape Slice SpaceToDepth Squeeze Tile", _MOVE),
    ("Transpose Unsqueeze", _MOVE),
    ("MaxPool GlobalMaxPool LpPool",
     "use no indices, and the same quantisation before and after"),
    ("AveragePool GlobalAveragePool", "use windows without dilations, between quantised tensors"),
    ("ReduceMean", _MEAN),
    ("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMin ReduceProd ReduceSum ReduceSumSquare", _MEAN),
    ("And ArgMax ArgMin CumSum Equal Greater GreaterOrEqual IsNaN Less LessOrEqual Not Or Where Xor", _LOGIC),
    ("Cast", "give the model its input in the type with which it computes"),
))
"""Ends of sentences. Functions of one value are not here: they are tables where they are quantised."""


def way_out(op: str) -> str:
    """Return a change that spares the host core ``op``, as the end of a sentence."""
    return next((text for names, text in _WAYS_OUT if op in names), _TABLE)
