"""Prepare a float ONNX model for quantisation: fix shapes, fold normalisation, use only forms that integers have.

ONNX Runtime's own basic optimisation folds constants and joins batch normalisation, scaling and padding with the
convolution before them. What it leaves is brought into forms that its quantiser knows; none of the steps changes what
the model computes.
"""

import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import NodeProto, helper, numpy_helper
from onnxruntime.quantization.quant_utils import add_pre_process_metadata

from tilewright.compiler.errors import ModelTooLargeError
from tilewright.compiler.onnx.cleaning import clean_with_shapes
from tilewright.compiler.onnx.faults import check_domains
from tilewright.compiler.onnx.opset import converted
from tilewright.compiler.onnx.reader import MAX_TENSOR_BYTES
from tilewright.compiler.onnx.shapes import first_line, fix_batch, infer_shapes
from tilewright.errors import InputError
from tilewright.runtime.quantise.biased_products import with_biases
from tilewright.runtime.quantise.normalisations import (
    found_apart,
    give_up_variances,
    groups_apart,
    inside_groups,
    opset_of,
    put_together,
)
from tilewright.runtime.quantise.own_biases import own_biases
from tilewright.runtime.quantise.product_scales import factor_and_shift, fold_into_products, scale_behind_products
from tilewright.runtime.quantise.second_quantisation import (
    Levels,
    fold_weights,
    give_up_channel_scales,
    name_nodes,
)
from tilewright.runtime.quantise.softmax_levels import softmax_results
from tilewright.tools.files import reason

__all__ = ["OPSET", "Prepared", "Rules", "attention_weights", "behind_softmax", "prepare"]

OPSET = 17
"""To which older models are brought: quantisation per channel needs 13."""

_LEAST_OPSET = 13
_IR_VERSION = 8  # of OPSET; from 4 on constants need not be inputs
_NEWER_IR_VERSION = 11  # of opset 23
_OF_QUANTISATION = ["QDQPropagationTransformer", "DoubleQDQPairsRemover", "WeightBiasQuantization",
                    "EnsureUniqueDQForNodeUnit"]
"""Of a partly quantised model these would move, merge and add quantisation, of weights too."""

_SOFTMAX = {"Softmax", "LogSoftmax"}
_MOVEMENT = {"Flatten", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A float model as the quantiser takes it, and the given levels of those of its constants that were quantised.

    ``remarks`` are sentences on what was given up.
    """

    proto: onnx.ModelProto
    weights: Mapping[str, Levels]
    remarks: tuple[str, ...] = ()


def prepare(read: onnx.ModelProto) -> Prepared:
    """Return a float model, as it was read, as the quantiser takes it; tensors that remain keep their names.

    Of ``read`` the batch is fixed and scales per channel of activations are given up, in place.

    Raises
    ------
    CompileError
        If it has dynamic dimensions besides the batch, or contradicts itself.
    InputError
        If it cannot be brought to a newer opset, or ONNX Runtime refuses it.
    """
    check_domains(read.graph)
    remarks = give_up_channel_scales(read.graph)
    fix_batch(read)
    cleaned = clean_with_shapes(read)
    _check_sizes(cleaned)
    remarks += give_up_variances(cleaned)
    weights = fold_weights(cleaned.graph)
    shapes = _shapes_of(cleaned.graph)
    groups_apart(cleaned.graph, shapes)
    proto = _optimise(_with_normalisations(_upgrade(cleaned)))
    if fold_into_products(proto.graph) | scale_behind_products(proto.graph):
        proto = _optimise(proto)
    for rules in (_NORMALISATION, _SCALING):
        if _rewrite(proto, rules, shapes):
            proto = _optimise(proto)
    with_biases(proto.graph, lambda: {**_shapes_of(infer_shapes(proto).graph), **shapes})
    name_nodes(proto.graph)
    own_biases(proto.graph)
    add_pre_process_metadata(proto)
    return Prepared(proto, weights, remarks)


def _shapes_of(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    return {value.name: tuple(extent.dim_value for extent in value.type.tensor_type.shape.dim)
            for value in (*graph.input, *graph.value_info, *graph.output) if value.type.tensor_type.HasField("shape")}


def _check_sizes(proto: onnx.ModelProto) -> None:
    """Raise :exc:`ModelTooLargeError` for a tensor that ONNX Runtime would better not be asked to make."""
    for value in (*proto.graph.input, *proto.graph.value_info, *proto.graph.output):
        count = math.prod(extent.dim_value for extent in value.type.tensor_type.shape.dim)
        if count > MAX_TENSOR_BYTES:
            raise ModelTooLargeError(f"Tensor {value.name!r} must have at most {MAX_TENSOR_BYTES} elements, "
                                     f"not {count}")


def behind_softmax(proto: onnx.ModelProto) -> list[str]:
    """Return the names of nodes that only move the result of a Softmax.

    They stay in float with it. All nodes must have names.
    """
    names, moved = [], set()
    for node in proto.graph.node:
        if node.op_type in _MOVEMENT and node.input[0] in moved:
            names.append(node.name)
        elif node.op_type not in _SOFTMAX:
            continue
        moved |= set(node.output)
    return names


def attention_weights(proto: onnx.ModelProto) -> list[str]:
    """Return the inputs of products that are the result of a Softmax, moved or not."""
    return softmax_results(proto.graph, _MOVEMENT)


def _with_normalisations(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with normalisations put together that were taken apart, in an opset that has them."""
    found = found_apart(proto)
    if found:
        proto = _upgrade(proto, opset_of(found))
        put_together(proto.graph, found)
    return proto


def _upgrade(proto: onnx.ModelProto, least: int = _LEAST_OPSET) -> onnx.ModelProto:
    """Return the model in an opset of at least ``least``; that of quantisation per channel, if none is given."""
    opset = next((each.version for each in proto.opset_import if each.domain in ("", "ai.onnx")), OPSET)
    if opset >= least:
        return proto
    target = max(OPSET, least)
    proto.ir_version = max(proto.ir_version, _IR_VERSION if target == OPSET else _NEWER_IR_VERSION)
    try:
        return converted(proto, target)
    except (RuntimeError, ValueError, onnx.version_converter.ConvertError) as error:
        raise InputError(f"Model of opset {opset} cannot be converted to opset {target}, which quantisation needs: "
                         f"{first_line(error)}; export it again with that opset, or give --float") from error


def _optimise(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model after ONNX Runtime's basic optimisation, which writes standard operators only."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4  # what goes wrong is said once, below
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "optimised.onnx")
        options.optimized_model_filepath = str(path)
        try:
            onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"],
                                         disabled_optimizers=_OF_QUANTISATION)
        except Exception as error:
            raise InputError(f"Model cannot be quantised, because ONNX Runtime rejects it: {reason(error)}") from error
        return onnx.load(path)


_Constants = Mapping[str, np.ndarray]
_Rewritten = tuple[list[NodeProto], dict[str, np.ndarray]] | None
"""Nodes in place of one, and new constants by name; None where a rule does not apply."""


def _rewrite(proto: onnx.ModelProto, rules: "Rules", shapes: "_Shapes") -> bool:
    """Apply ``rules`` to every node, in place; tell whether one applied."""
    graph = proto.graph
    known = shapes.keys() | {tensor.name for tensor in graph.initializer}
    if any(node.op_type in rules and not set(node.input) - {""} <= known for node in graph.node):
        # Optimisation has made tensors of its own.
        shapes = {**_shapes_of(infer_shapes(proto).graph), **shapes}
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    grouped = {node.output[0] for node in inside_groups(proto)}
    nodes: list[NodeProto] = []
    changed = False
    for node in graph.node:
        rule = None if node.output[0] in grouped else rules.get(node.op_type)
        result = rule(node, shapes, constants) if rule else None
        if result is None:
            nodes.append(node)
            continue
        changed = True
        nodes += result[0]
        graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in result[1].items())
    if changed:
        copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)
    return changed


_Shapes = Mapping[str, tuple[int, ...]]


def _chain_sum(node: NodeProto, shapes: _Shapes, constants: _Constants) -> _Rewritten:
    """Sum(a, b, c) → Add(Add(a, b), c)."""
    first, *others = node.input
    if not others:
        return [helper.make_node("Identity", [first], node.output)], {}
    names = [f"{node.output[0]}_sum{index}" for index in range(1, len(others))] + [node.output[0]]
    return [helper.make_node("Add", [left, right], [name], name=f"{node.name or node.output[0]}_add{index}")
            for index, (left, right, name) in enumerate(zip([first, *names], others, names, strict=False))], {}


def _normalise(node: NodeProto, shapes: _Shapes, constants: _Constants) -> _Rewritten:
    """BatchNormalization behind no product → a depthwise convolution of one element."""
    found, rank = factor_and_shift(node, constants), len(shapes.get(node.input[0], ()))
    if found is None or rank not in (2, 3, 4):
        return None
    if rank > 2:
        return _depthwise(node, node.input[0], *found, rank=rank)
    # A vector is an image of one pixel; to look at it as such costs nothing.
    x, name = node.input[0], node.output[0]
    image, result, there, back = (f"{name}_{what}" for what in ("image", "result", "there", "back"))
    inner = NodeProto.FromString(node.SerializeToString())
    inner.output[0] = result
    nodes, made = _depthwise(inner, image, *found)
    return [helper.make_node("Reshape", [x, there], [image], name=f"{name}_to_image"), *nodes,
            helper.make_node("Reshape", [result, back], [name], name=f"{name}_to_vector")], {
                **made, there: np.array([0, -1, 1, 1], np.int64), back: np.array([0, -1], np.int64)}


def _scale(node: NodeProto, shapes: _Shapes, constants: _Constants) -> _Rewritten:
    """Mul or Add by a constant for each channel → a depthwise 1×1 convolution."""
    for x, other in (node.input, reversed(node.input)):
        shape, constant = shapes.get(x, ()), constants.get(other)
        if len(shape) != 4 or shape[0] != 1 or constant is None or constant.size != shape[1] or constant.size == 1:
            continue
        if constant.shape in ((shape[1], 1, 1), (1, shape[1], 1, 1)):
            values = constant.ravel().astype(np.float64)
            if node.op_type == "Mul":
                return _depthwise(node, x, values, np.zeros_like(values))
            return _depthwise(node, x, np.ones_like(values), values)
    return None


def _depthwise(node: NodeProto, x: str, factor: np.ndarray, shift: np.ndarray, rank: int = 4,
               ) -> tuple[list[NodeProto], dict[str, np.ndarray]]:
    name = node.output[0]
    weights, bias = f"{name}_factor", f"{name}_shift"
    new = helper.make_node("Conv", [x, weights, bias], [name], name=node.name or name, group=len(factor),
                           kernel_shape=[1] * (rank - 2))
    return [new], {weights: factor.astype(np.float32).reshape(-1, *[1] * (rank - 1)), bias: shift.astype(np.float32)}


def _average(node: NodeProto, shapes: _Shapes, constants: _Constants) -> _Rewritten:
    """ReduceMean over rows and columns → GlobalAveragePool, and a Flatten where the axes are dropped."""
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    axes = constants[node.input[1]] if len(node.input) > 1 and node.input[1] in constants else attributes.get("axes")
    shape = shapes.get(node.input[0], ())
    if len(shape) != 4 or axes is None or sorted(int(axis) % 4 for axis in axes) != [2, 3]:
        return None
    name = node.name or node.output[0]
    if attributes.get("keepdims", 1):
        return [helper.make_node("GlobalAveragePool", node.input[:1], node.output, name=name)], {}
    pooled = f"{node.output[0]}_pooled"
    return [helper.make_node("GlobalAveragePool", node.input[:1], [pooled], name=name),
            helper.make_node("Flatten", [pooled], node.output, name=f"{name}_flatten")], {}


def _picked(node: NodeProto, shapes: _Shapes, constants: _Constants) -> _Rewritten:
    """Gather of one constant place, or of some in a row → a Slice, as a Split would be, and a Squeeze of one place.

    So what is picked keeps the levels of what it is picked from.
    """
    shape, places = shapes.get(node.input[0], ()), constants.get(node.input[1])
    axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
    if not shape or places is None or places.ndim > 1 or places.size < 1 or node.input[0] in constants:
        return None
    axis %= len(shape)
    first = int(places.reshape(-1)[0])
    first += shape[axis] if first < 0 else 0
    if not np.array_equal(places.reshape(-1) % shape[axis], first + np.arange(places.size)):
        return None
    name, picked = node.name or node.output[0], node.output[0] if places.ndim else f"{node.output[0]}_picked"
    values = {f"{node.output[0]}_{what}": np.array([value], np.int64) for what, value in (
        ("first", first), ("stop", first + places.size), ("axis", axis))}
    nodes = [helper.make_node("Slice", [node.input[0], *values], [picked], name=name)]
    if not places.ndim:
        nodes.append(helper.make_node("Squeeze", [picked, f"{node.output[0]}_axis"], node.output,
                                      name=f"{name}_squeeze"))
    return nodes, values


def _response(node: NodeProto, shapes: _Shapes, constants: _Constants) -> _Rewritten:
    """LRN of an image → x · (bias + alpha / size · Σ x²) ** -beta, the sum a Conv of neighbouring channels."""
    given = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    shape, size = shapes.get(node.input[0], ()), given.get("size", 0)
    if len(shape) != 4 or size < 1:
        return None
    apart = np.arange(shape[1]) - np.arange(shape[1])[:, None]
    near = (apart >= -((size - 1) // 2)) & (apart <= size // 2)    # as ONNX counts them, LRN
    x, (y,) = node.input[0], node.output
    square, total, factor, weights, bias, power = (
        f"{y}_{what}" for what in ("square", "total", "factor", "weights", "bias", "power"))
    return [helper.make_node("Mul", [x, x], [square], name=square),
            helper.make_node("Conv", [square, weights, bias], [total], name=total, kernel_shape=[1, 1]),
            helper.make_node("Pow", [total, power], [factor], name=factor),
            helper.make_node("Mul", [x, factor], [y], name=node.name or y)], {
                weights: (near * given.get("alpha", 1e-4) / size).astype(np.float32)[:, :, None, None],
                bias: np.full(shape[1], given.get("bias", 1.0), np.float32),
                power: np.array(-given.get("beta", 0.75), np.float32)}


Rules = Mapping[str, Callable[[NodeProto, _Shapes, _Constants], _Rewritten]]

def _gemm(node: NodeProto, shapes: _Shapes, constants: _Constants) -> _Rewritten:
    """Gemm → one without factors, and with no bias or one that the quantiser knows."""
    found = _without_factors(node, constants)
    if found is None:
        return _bias(node, shapes, constants)
    (*before, gemm), values = found
    nodes, more = _bias(gemm, shapes, {**constants, **values}) or ([gemm], {})
    return [*before, *nodes], {**values, **more}


def _without_factors(node: NodeProto, constants: _Constants) -> _Rewritten:
    """Gemm with alpha or beta → one with these in its weights and its bias, the Gemm last.

    ONNX Runtime's quantiser loses them from the bias (`findings/onnxruntime-gemm-beta.sh`). The alpha of two computed
    tensors stays.
    """
    given = {each.name: each.f for each in node.attribute if each.name in ("alpha", "beta") and each.f != 1}
    new, before, values = NodeProto.FromString(node.SerializeToString()), list[NodeProto](), dict[str, np.ndarray]()
    for index, attribute in ((1, "alpha"), (2, "beta")):
        factor, name = given.get(attribute), f"{node.output[0]}_{attribute}"
        if factor is None or len(node.input) <= index or (attribute == "alpha" and node.input[1] not in constants):
            continue
        for place, each in enumerate(new.attribute):
            if each.name == attribute:
                del new.attribute[place]
                break
        if not factor and attribute == "beta":
            del new.input[2]
        elif node.input[index] in constants:
            values[name] = constants[node.input[index]] * np.float32(factor)
            new.input[index] = name
        else:
            values[name] = np.array(factor, np.float32)
            before.append(helper.make_node("Mul", [node.input[index], name], [f"{name}_times"], name=f"{name}_times"))
            new.input[index] = f"{name}_times"
    return ([*before, new], values) if len(new.attribute) < len(node.attribute) else None


def _bias(node: NodeProto, shapes: _Shapes, constants: _Constants) -> _Rewritten:
    """Gemm whose bias is computed, as optimisation makes of MatMul and Add → Gemm and Add.

    A bias of one dimension is no such result: it may be levels of constants, dequantised.
    """
    if len(node.input) < 3 or not node.input[2] or node.input[2] in constants or len(
            shapes.get(node.input[2], ())) == 1 or any(each.name == "beta" and each.f != 1 for each in node.attribute):
        return _flat_bias(node, shapes, constants)
    name, product = node.output[0], f"{node.output[0]}_product"
    new = NodeProto.FromString(node.SerializeToString())
    del new.input[2]
    new.output[0], new.name = product, f"{node.name or name}_product"
    return [new, helper.make_node("Add", [product, node.input[2]], [name], name=node.name or name)], {}


def _flat_bias(node: NodeProto, shapes: _Shapes, constants: _Constants) -> _Rewritten:
    """Gemm with a bias that is one row, of two dimensions or one number → with one of a single dimension.

    ONNX Runtime's quantiser knows no other.
    """
    bias, weights = constants.get(node.input[2] if len(node.input) > 2 else ""), constants.get(node.input[1])
    if bias is None or weights is None or weights.ndim != 2:
        return None
    transposed = any(each.name == "transB" and each.i for each in node.attribute)
    columns = (weights.shape[0 if transposed else 1],)
    if bias.shape == columns or bias.size != math.prod(bias.shape[-1:]) or bias.size not in (1, *columns):
        return None
    name = f"{node.output[0]}_bias"
    new = NodeProto.FromString(node.SerializeToString())
    new.input[2] = name
    return [new], {name: np.ascontiguousarray(np.broadcast_to(bias.ravel(), columns))}


_NORMALISATION: Rules = {"Sum": _chain_sum, "BatchNormalization": _normalise, "ReduceMean": _average,
                         "Gemm": _gemm, "LRN": _response, "Gather": _picked}
# Afterwards: most scaling stands behind a normalisation, and the optimisation in between joins it with that.
_SCALING: Rules = {"Mul": _scale, "Add": _scale}
