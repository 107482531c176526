"""ONNX's own shape inference for a model with fixed inputs, seeing through com.microsoft's operators too."""

from collections.abc import Callable

import onnx
from onnx import TensorProto, helper

from tilewright.compiler.errors import BadModelError, UnsupportedModelError
from tilewright.compiler.onnx.faults import contradiction, window_too_large
from tilewright.compiler.onnx.open_shapes import open_shapes
from tilewright.compiler.onnx.sizes.fitting import parts_before_slices, too_large_window

__all__ = ["first_line", "fix_batch", "infer_shapes"]


def fix_batch(proto: onnx.ModelProto) -> None:
    """Set a dynamic batch to 1, wherever its symbol stands, and refuse every other dynamic dimension of an input."""
    constants = {tensor.name for tensor in proto.graph.initializer}
    inputs = [value for value in proto.graph.input if value.name not in constants]
    for value in inputs:
        if not value.type.HasField("tensor_type") and value.type.WhichOneof("value"):
            raise UnsupportedModelError(f"Input {value.name!r} must be a tensor, and is none",
                                        "export the model with tensors alone")
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            raise UnsupportedModelError(f"Input {value.name!r} must be a tensor with a shape",
                                        f"give one with option --shape {value.name}=1,…")
    if (error := open_shapes(proto)) is not None:
        raise error
    for value in inputs:
        for extent in value.type.tensor_type.shape.dim:
            if not extent.HasField("dim_value") or extent.dim_value <= 0:
                extent.Clear()
                extent.dim_value = 1
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    # Shapes written for another batch, or by other rules for ceil_mode, would contradict those inferred now.
    del proto.graph.value_info[:]


def infer_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the type of every value that ONNX's rules can tell.

    com.microsoft's operators and GroupNormalization have no rules there. Where there are some, the rules are asked
    about a model that has operators of the same shapes in their place.

    Raises
    ------
    BadModelError
        If types or shapes contradict each other.
    """
    while True:
        fault = None
        try:
            inferred = _inferred(proto)
        except BadModelError as error:
            # What contradicts the rest may be ONNX's idea of ceil_mode.
            fault, inferred = error, _inferred(proto, strict=False)
        pads = _without_empty_windows(inferred.graph)
        if not pads and fault is not None:
            raise fault
        if not pads:
            return inferred
        changed = onnx.ModelProto()
        changed.CopyFrom(proto)
        for index, values in pads.items():
            node = changed.graph.node[index]
            kept = [each for each in node.attribute if each.name not in ("ceil_mode", "pads")]
            del node.attribute[:]
            node.attribute.extend([*kept, helper.make_attribute("pads", values)])
        proto = changed


def _without_empty_windows(graph: onnx.GraphProto) -> dict[int, list[int]]:
    """Return the pads, by index, with which nodes that pool need no ceil_mode, where ONNX has another idea of it.

    By its rule the last window may begin behind the image. Those that compute it leave such windows out
    (pool_attributes.h of ONNX Runtime).
    """
    shapes = {value.name: value.type.tensor_type.shape.dim for value in (*graph.value_info, *graph.input)}
    found = {}
    for index, node in enumerate(graph.node):
        attrs = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        kernel, count = attrs.get("kernel_shape", []), len(attrs.get("kernel_shape", []))
        if attrs.get("ceil_mode", 0) != 1 or attrs.get("auto_pad", b"NOTSET") != b"NOTSET":
            continue
        sizes = [extent.dim_value for extent in shapes.get(node.input[0], ())][2:]
        strides, dilations = attrs.get("strides", [1] * count), attrs.get("dilations", [1] * count)
        pads = list(attrs.get("pads", [0] * 2 * count))
        if not count == len(sizes) == len(strides) == len(dilations) == len(pads) / 2 or min((*sizes, *strides)) < 1:
            continue
        empty = False
        for i, size in enumerate(sizes):
            extent = dilations[i] * (kernel[i] - 1) + 1
            steps = -(-(size + pads[i] + pads[i + count] - extent) // strides[i])
            if steps * strides[i] >= size + pads[i] and steps > 0:
                empty, steps = True, steps - 1
            pads[i + count] = max(pads[i + count], steps * strides[i] + extent - size - pads[i])
        # A mean that counts padding does not count what is added here.
        if empty and (pads == list(attrs.get("pads", pads)) or not attrs.get("count_include_pad")):
            found[index] = pads
    return found


def _inferred(proto: onnx.ModelProto, *, strict: bool = True) -> onnx.ModelProto:
    inferred = _infer(proto, check_type=strict, strict=strict)
    if any(map(_has_alike, proto.graph.node)):
        known = {value.name for value in inferred.graph.value_info}
        alike = _infer(_with_operators_alike(inferred), check_type=False, strict=strict)
        inferred.graph.value_info.extend(value for value in alike.graph.value_info if value.name not in known)
        shaped = {value.name: value for value in (*alike.graph.value_info, *alike.graph.output)}
        for value in (*inferred.graph.value_info, *inferred.graph.output):
            value.CopyFrom(_merged(value, shaped[value.name]))
    return inferred


def _infer(proto: onnx.ModelProto, *, check_type: bool, strict: bool) -> onnx.ModelProto:
    for part in parts_before_slices(proto):
        _require_windows(_by_rules(part, check_type=check_type, strict=strict))
    return _require_windows(_by_rules(proto, check_type=check_type, strict=strict))


def _require_windows(inferred: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose windows lie within their padded inputs."""
    node = too_large_window(inferred.graph)
    if node is not None:
        raise window_too_large(node.name or node.output[0])
    return inferred


def _by_rules(proto: onnx.ModelProto, *, check_type: bool, strict: bool) -> onnx.ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(proto, check_type=check_type, strict_mode=strict, data_prop=True)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError) as error:
        raise contradiction(first_line(error)) from error


def _merged(value: onnx.ValueInfoProto, other: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    """Return ``value`` with the other's shape, or some of its extents, where those are the ones that are known."""
    merged = onnx.ValueInfoProto()
    merged.CopyFrom(value)
    mine, others = merged.type.tensor_type.shape, other.type.tensor_type.shape
    if not value.type.tensor_type.HasField("shape") and other.type.tensor_type.HasField("shape"):
        mine.CopyFrom(others)
    elif len(mine.dim) == len(others.dim):
        for extent, known in zip(mine.dim, others.dim, strict=True):
            if not extent.HasField("dim_value") and known.HasField("dim_value"):
                extent.dim_value = known.dim_value
    return merged


def _same(node: onnx.NodeProto, _: str) -> onnx.NodeProto:
    return helper.make_node("Identity", [node.input[0]], [node.output[0]])


def _broadcast(node: onnx.NodeProto, condition: str) -> onnx.NodeProto:
    # Where takes every type, at every opset, and broadcasts.
    return helper.make_node("Where", [condition, node.input[0], node.input[3]], [node.output[0]])


def _concat(node: onnx.NodeProto, _: str) -> onnx.NodeProto:
    return helper.make_node("Concat", node.input[2::3], [node.output[0]],
                            axis=next((a.i for a in node.attribute if a.name == "axis"), 1))


def _pool(node: onnx.NodeProto, _: str) -> onnx.NodeProto:
    new = helper.make_node(node.op_type.removeprefix("QLinear"), [node.input[0]], [node.output[0]])
    new.attribute.extend(a for a in node.attribute if a.name != "channels_last")
    return new


def _gemm(node: onnx.NodeProto, _: str) -> onnx.NodeProto:
    new = helper.make_node("Gemm", [node.input[0], node.input[3]], [node.output[0]])
    new.attribute.extend(node.attribute)
    return new


_ALIKE: dict[str, Callable[[onnx.NodeProto, str], onnx.NodeProto]] = {
    "QLinearAdd": _broadcast, "QLinearMul": _broadcast, "QLinearConcat": _concat, "QLinearSigmoid": _same,
    "QLinearLeakyRelu": _same, "QLinearSoftmax": _same, "QLinearGlobalAveragePool": _pool,
    "QLinearAveragePool": _pool, "QGemm": _gemm, "Gelu": _same, "QuickGelu": _same, "GroupNormalization": _same,
}

# Operators of ONNX's own that its inference does not know.
_WITHOUT_RULES = {"GroupNormalization"}


def _has_alike(node: onnx.NodeProto) -> bool:
    return node.op_type in _ALIKE and (node.domain == "com.microsoft" or node.op_type in _WITHOUT_RULES)


def _with_operators_alike(proto: onnx.ModelProto) -> onnx.ModelProto:
    alike = onnx.ModelProto()
    alike.CopyFrom(proto)
    condition = "tilewright:condition"
    alike.graph.initializer.append(helper.make_tensor(condition, TensorProto.BOOL, (), [True]))
    for node in alike.graph.node:
        if _has_alike(node):
            node.CopyFrom(_ALIKE[node.op_type](node, condition))
    return alike


def first_line(error: Exception) -> str:
    """Return the first informative line of an error's message."""
    return next((line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), type(error).__name__)
