"""Types of values that nobody states, as far as they follow from the operator alone, and shapes where a rule asks."""

import onnx
import onnx_ir as ir

__all__ = ["fill_shapes", "fill_types"]

_VOLUMES = 5
_LEAST_RANK = 3
"""A Reshape to fewer dimensions ends a stack of images, and keeps the shape only of what has as few before it."""

_OF_TWO = {"Gemm", "Flatten"}
_OF_OTHER_RANK = {"ArgMax", "ArgMin", "Einsum", "Gather", "Squeeze", "Unsqueeze"}
"""Operators, besides reductions, whose result may have another number of dimensions than their first input."""

_CHOOSE = {"Gather": 1, "Slice": 1, "Where": 0}
"""Operators that choose elements, and which of their inputs tells which or from where on."""

_INT64 = {"Shape", "Size", "NonZero", "ArgMax", "ArgMin"}
_BOOL = {"And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not", "Or", "Xor"}
_OTHER = {"Constant", "ConstantOfShape", "DynamicQuantizeLinear", "EyeLike", "If", "Loop", "OneHot", "Range", "Scan",
          "Where", "SequenceAt", "Bernoulli",
          "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "BitCast"}
"""Operators whose result is not of their first input's type."""

_INT32 = {"ConvInteger", "MatMulInteger"}
_LEVELS = {"QLinearConv": 7, "QLinearMatMul": 7, "QLinearAdd": 7, "QLinearMul": 7, "QGemm": 8, "QLinearConcat": 1,
           "QLinearSigmoid": 4, "QLinearLeakyRelu": 4, "QLinearSoftmax": 4, "QLinearAveragePool": 4,
           "QLinearGlobalAveragePool": 4, "QLinearReduceMean": 4, "QLinearWhere": 8, "QLinearConvTranspose": 7}
"""Operators that make levels, of ONNX and ONNX Runtime: which of their inputs is these levels' zero point."""


def fill_types(graph: ir.Graph) -> None:
    """Give the outputs of nodes whose type is not stated the one that follows from their inputs, in place."""
    for node in graph:
        for output in node.outputs:
            if output.type is None and (kind := _type(node)) is not None and output is node.outputs[0]:
                output.type = ir.TensorType(kind)


def fill_shapes(model: ir.Model) -> bool:
    """Give values their shapes, in place, if a rule may ask for one; tell whether it was done.

    ONNX's own inference is asked once, of a model in which it knows all operators.
    """
    if not any(_may_keep(node) for node in model.graph):
        return False
    try:
        found = onnx.shape_inference.infer_shapes(ir.to_proto(model), data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError):
        return False    # The reader says what is wrong.
    known = {value.name: value.type.tensor_type for value in found.graph.value_info
             if value.type.tensor_type.HasField("shape") and value.type.tensor_type.elem_type}
    for node in model.graph:
        for value in node.outputs:
            kind = known.get(value.name or "")
            if kind is None:
                continue
            if value.type is None:
                value.type = ir.TensorType(ir.DataType(kind.elem_type))
            if value.shape is None:
                value.shape = ir.Shape([each.dim_value if each.HasField("dim_value") else each.dim_param or None
                                        for each in kind.shape.dim])
    return True


def _may_keep(node: ir.Node) -> bool:
    """Tell whether a node is a Reshape to images, or of vectors to vectors, of a value whose shape nobody states.

    Or a Concat of such a value and constants, an attention or a ReduceSum of such, a Conv of volumes, an If, or what
    chooses elements and may choose all.
    """
    if node.op_type == "If" and not node.domain:
        return True
    if node.op_type in _CHOOSE and not node.domain:
        return _may_choose_all(node, _CHOOSE[node.op_type])
    if node.op_type == "Conv" and not node.domain:
        return node.inputs[0] is not None and node.inputs[0].shape is None and _of_volumes(node.inputs[1])
    if node.op_type in ("Attention", "ReduceSum") and not node.domain:
        return any(each is not None and each.shape is None and each.const_value is None for each in node.inputs)
    if node.op_type == "Concat" and not node.domain and any(_is_fixed(each) for each in node.inputs):
        return any(each is not None and each.shape is None and not _is_fixed(each) for each in node.inputs)
    if node.domain or node.op_type != "Reshape" or len(node.inputs) < 2 or node.inputs[1] is None:
        return False
    target, x = node.inputs[1].const_value, node.inputs[0]
    if target is None or x is None or x.const_value is not None:
        return False
    return (target.size >= _LEAST_RANK or (target.size == 2 and _of_vectors(x))) and (
        x.shape is None or node.outputs[0].shape is None)


def _may_choose_all(node: ir.Node, index: int) -> bool:
    """Tell whether a choice by constants, input ``index``, of a value whose shape nobody states begins as all do."""
    held = node.inputs[index] if len(node.inputs) > index else None
    data = [each for each in node.inputs if each is not None and each.const_value is None]
    if held is None or held.const_value is None or not any(each.shape is None for each in (*data, *node.outputs)):
        return False
    values = held.const_value.numpy()
    if node.op_type == "Where":
        return bool((values == values.flat[0]).all())
    return values.ndim == 1 and not values[:1].any()


def _of_vectors(x: ir.Value) -> bool:
    """Tell whether a value may have two dimensions, by what made it; a wrong guess asks for shapes in vain."""
    while (maker := x.producer()) is not None and maker.op_type not in _OF_TWO:
        if maker.op_type in _OF_OTHER_RANK or maker.op_type.startswith("Reduce"):
            return True
        if maker.op_type == "Reshape":
            target = maker.inputs[1].const_value if len(maker.inputs) > 1 and maker.inputs[1] is not None else None
            return target is None or target.size == 2
        before = next((each for each in maker.inputs if each is not None and each.const_value is None
                       and not _of_constants(each)), None)
        if before is None:
            return False
        x = before
    return maker is not None or (x.shape is not None and len(x.shape) == 2)


def _of_volumes(weights: ir.Value | None) -> bool:
    maker = None if weights is None else weights.producer()
    held = maker.inputs[0] if maker is not None and maker.op_type == "DequantizeLinear" else weights
    return held is not None and held.const_value is not None and len(held.const_value.shape) == _VOLUMES


def _is_fixed(x: ir.Value | None) -> bool:
    return x is not None and (x.const_value is not None or _of_constants(x))


def _of_constants(x: ir.Value) -> bool:
    maker = x.producer()
    return maker is not None and maker.op_type == "DequantizeLinear" and maker.inputs[0] is not None \
        and maker.inputs[0].const_value is not None


def _type(node: ir.Node) -> ir.DataType | None:
    name = node.op_type
    if name == "Cast":
        return ir.DataType(node.attributes["to"].value) if "to" in node.attributes else None
    if name == "DequantizeLinear":
        return None if len(node.inputs) < 2 or node.inputs[1] is None else node.inputs[1].dtype
    if name == "QuantizeLinear":
        zero = node.inputs[2] if len(node.inputs) > 2 else None
        if "output_dtype" in node.attributes and node.attributes["output_dtype"].value:
            return ir.DataType(node.attributes["output_dtype"].value)
        return ir.DataType.UINT8 if zero is None else zero.dtype
    if name in _LEVELS:
        zero = node.inputs[_LEVELS[name]] if len(node.inputs) > _LEVELS[name] else None
        return None if zero is None else zero.dtype
    if name in _INT32:
        return ir.DataType.INT32
    if name in _INT64:
        return ir.DataType.INT64
    if name in _BOOL:
        return ir.DataType.BOOL
    if node.domain or name in _OTHER or not node.inputs or node.inputs[0] is None:
        return None
    return node.inputs[0].dtype
