"""ONNX file → Graph: the only place of the compiler that knows ONNX's own format.

The file is untrusted. It is checked, measured against limits before anything is built from it, given static
shapes, cleaned up (constants folded, identities removed), and only operators of a fixed list get through.
"""

from pathlib import Path
from typing import Any

import google.protobuf.message
import numpy as np
import onnx  # noqa: TID251
import onnx.external_data_helper  # noqa: TID251
import onnx_ir as ir
import onnxscript.optimizer
from onnx import TensorProto, helper, numpy_helper  # noqa: TID251
from onnx_ir.passes.common import (
    IdentityEliminationPass,
    LiftConstantsToInitializersPass,
    RemoveInitializersFromInputsPass,
    RemoveUnusedNodesPass,
)

from tilewright.compiler.errors import (
    BadModelError,
    ModelTooLargeError,
    UnsupportedModelError,
    UnsupportedNodeError,
)
from tilewright.compiler.graph import Graph, Node, Tensor

MAX_MODEL_BYTES = 2**31 - 1
"""Limit of a model, external data included; protobuf itself takes no more."""

MAX_TENSOR_BYTES = 2**30
"""Limit of one tensor."""

_QUANTISED = {
    "QLinearConv", "QLinearMatMul", "QuantizeLinear", "DequantizeLinear",
    "Conv", "Gemm", "MatMul", "Add", "Relu", "Clip", "MaxPool", "AveragePool", "GlobalAveragePool",
    "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Dropout",
}
# What exporters compute shapes with; constant folding removes it. None can make a large tensor of small ones.
_FOLDED = {"Constant", "Shape", "Gather", "Concat", "Slice", "Cast", "Mul", "Div", "Sub"}
# onnx's checker does not know these operators: the inputs that must be there, and the attributes.
_INTS, _INT, _FLOAT, _STRING = (onnx.AttributeProto.INTS, onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT,
                                onnx.AttributeProto.STRING)
_CONTRIB: dict[str, tuple[tuple[int, ...], dict[str, int]]] = {
    "QGemm": ((0, 1, 2, 3, 4, 5), {"alpha": _FLOAT, "transA": _INT, "transB": _INT}),
    "QLinearAdd": ((0, 1, 3, 4, 6), {}),
    "QLinearGlobalAveragePool": ((0, 1, 2, 3, 4), {"channels_last": _INT}),
    "QLinearAveragePool": ((0, 1, 3), {
        "auto_pad": _STRING, "ceil_mode": _INT, "channels_last": _INT, "count_include_pad": _INT,
        "kernel_shape": _INTS, "pads": _INTS, "strides": _INTS}),
}
_OPERATORS = {"": _QUANTISED | _FOLDED, "com.microsoft": set(_CONTRIB)}

_WAY_OUT = "cut the model so that this node runs outside, or replace it"


def load(model: str | Path | bytes) -> Graph:
    """Read a quantised ONNX model.

    Parameters
    ----------
    model : path or bytes
        The file, or its contents. External data must lie in the model's own folder.

    Returns
    -------
    Graph
        With ONNX's own operators, static shapes (those behind com.microsoft's operators are not known yet), and a
        batch of 1.

    Raises
    ------
    CompileError
        If it is no model, contradicts itself, is too large, has dynamic dimensions besides the batch, or has an
        operator that is not compiled.
    """
    proto = _parse(model)
    _check_operators(proto)
    _fix_batch(proto)
    return _build(_clean(_infer_shapes(proto)))


def _parse(model: str | Path | bytes) -> onnx.ModelProto:
    """Return the checked model with its external data in it."""
    folder = None
    if isinstance(model, (str, Path)):
        path = Path(model)
        try:
            size, folder = path.stat().st_size, path.resolve().parent
            if size > MAX_MODEL_BYTES:
                raise ModelTooLargeError(f"Model must have at most {MAX_MODEL_BYTES} bytes, not {size}")
            model = path.read_bytes()
        except OSError as error:
            raise BadModelError(f"Model {str(path)!r} cannot be read: {error.strerror}") from error
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(model)
    except google.protobuf.message.DecodeError as error:
        raise BadModelError("Model must be an ONNX file; this one is none, or is cut short") from error
    if not proto.graph.node:
        raise BadModelError("Model must be an ONNX file with at least one node; this one has none")
    _load_external(proto, folder, len(model))
    _check_tensor_sizes(proto)
    try:
        onnx.checker.check_model(proto)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise BadModelError(f"Model must be valid ONNX; the checker says: {_first_line(error)}") from error
    return proto


def _load_external(proto: onnx.ModelProto, folder: Path | None, size: int) -> None:
    for tensor in proto.graph.initializer:
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        if folder is None:
            raise BadModelError(f"Tensor {tensor.name!r} has external data; give the model as a file, not as bytes")
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        target = (folder / location).resolve()
        if not location or not target.is_relative_to(folder) or not target.is_file():
            raise BadModelError(f"External data of tensor {tensor.name!r} must be a file in the model's folder, "
                                f"not {location!r}")
        size += min(target.stat().st_size, _tensor_bytes(tensor))
        if size > MAX_MODEL_BYTES:
            raise ModelTooLargeError(f"Model and external data must have at most {MAX_MODEL_BYTES} bytes together")
        try:
            onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        except (ValueError, OSError, onnx.checker.ValidationError) as error:
            raise BadModelError(f"External data of tensor {tensor.name!r} cannot be read: "
                                f"{_first_line(error)}") from error
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def _tensor_bytes(tensor: TensorProto) -> int:
    """Return the size of a tensor as declared; checks it."""
    if any(extent < 0 for extent in tensor.dims):
        raise BadModelError(f"Tensor {tensor.name!r} must have a shape of numbers from 0, not {list(tensor.dims)!r}")
    if tensor.data_type not in helper.get_all_tensor_dtypes():
        raise BadModelError(f"Tensor {tensor.name!r} must have one of ONNX's data types, not {tensor.data_type!r}")
    if tensor.data_type == TensorProto.STRING:
        raise BadModelError(f"Tensor {tensor.name!r} must hold numbers, not strings")
    count = 1
    for extent in tensor.dims:
        count *= extent
    return count * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize


def _check_tensor_sizes(proto: onnx.ModelProto) -> None:
    constants = [attribute.t for node in proto.graph.node for attribute in node.attribute if attribute.HasField("t")]
    for tensor in [*proto.graph.initializer, *constants]:
        if (size := _tensor_bytes(tensor)) > MAX_TENSOR_BYTES:
            raise ModelTooLargeError(f"Tensor {tensor.name!r} must have at most {MAX_TENSOR_BYTES} bytes, not {size}")


def _check_operators(proto: onnx.ModelProto) -> None:
    if proto.functions:
        raise UnsupportedModelError(f"Model must have no functions of its own, not {proto.functions[0].name!r}; "
                                    "inline them with onnx.inliner")
    if proto.graph.sparse_initializer:
        raise UnsupportedModelError("Model must have dense constants; this one has sparse ones")
    for node in proto.graph.node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if node.op_type not in _OPERATORS.get(domain, ()):
            raise UnsupportedNodeError(_name(node), node.op_type, "the operator is not compiled", _WAY_OUT)
        if domain == "com.microsoft":
            _check_contrib(node)


def _check_contrib(node: onnx.NodeProto) -> None:
    required, attributes = _CONTRIB[node.op_type]
    if any(i >= len(node.input) or not node.input[i] for i in required) or not any(node.output):
        raise BadModelError(f"Node {_name(node)!r} ({node.op_type}) must have all its inputs and an output")
    for attribute in node.attribute:
        if attributes.get(attribute.name) != attribute.type:
            raise BadModelError(f"Node {_name(node)!r} ({node.op_type}) must have the attributes "
                                f"{', '.join(attributes) or 'none'}, each of its type, not {attribute.name!r}")


def _fix_batch(proto: onnx.ModelProto) -> None:
    """Set a dynamic batch to 1 and refuse every other dynamic dimension of an input."""
    constants = {tensor.name for tensor in proto.graph.initializer}
    for value in proto.graph.input:
        if value.name in constants:
            continue
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            raise UnsupportedModelError(f"Input {value.name!r} must be a tensor with a shape")
        for axis, extent in enumerate(value.type.tensor_type.shape.dim):
            if extent.HasField("dim_value") and extent.dim_value > 0:
                continue
            if axis > 0:
                raise UnsupportedModelError(
                    f"Input {value.name!r} must have a fixed shape, the batch excepted; its dimension {axis} is "
                    f"{extent.dim_param or 'unknown'!r}; fix it with onnxruntime.tools.make_dynamic_shape_fixed")
            extent.Clear()
            extent.dim_value = 1
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    # Shapes written for another batch, or by other rules for ceil_mode, would contradict those inferred now.
    del proto.graph.value_info[:]


def _infer_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError) as error:
        raise BadModelError(f"Shapes of the model contradict each other: {_first_line(error)}") from error


def _clean(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Fold what is constant, except quantisation itself, and drop what computes nothing."""
    try:
        return ir.to_proto(_cleaned(ir.from_proto(proto)))
    except (ir.serde.SerdeError, ir.passes.PassError) as error:
        raise BadModelError(f"Model must be valid ONNX; the reader says: {_first_line(error)}") from error


def _cleaned(model: ir.Model) -> ir.Model:
    lift = LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)
    RemoveInitializersFromInputsPass()(model)
    lift(model)
    onnxscript.optimizer.fold_constants(model, onnx_shape_inference=False)
    for cleanup in (lift, IdentityEliminationPass(), RemoveUnusedNodesPass()):
        cleanup(model)
    return model


def _build(proto: onnx.ModelProto) -> Graph:
    graph = proto.graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    tensors = {value.name: _tensor(value) for value in (*graph.value_info, *graph.input, *graph.output)}
    nodes = []
    for node in graph.node:
        used = {name for reader in graph.node for name in reader.input} | {value.name for value in graph.output} \
            if len(node.output) > 1 else set()
        if any(name in used for name in node.output[1:]):
            raise UnsupportedNodeError(_name(node), node.op_type, "its second output is used", _WAY_OUT)
        attrs = {attribute.name: _plain(helper.get_attribute_value(attribute)) for attribute in node.attribute}
        nodes.append(Node(node.op_type, tuple(node.input), node.output[0], attrs, (_name(node),)))
        tensors.setdefault(node.output[0], Tensor(node.output[0], None, ""))
    for tensor in tensors.values():
        _check_activation(tensor)
    return Graph(graph.name, tuple(nodes), tensors, constants,
                 tuple(value.name for value in graph.input), tuple(value.name for value in graph.output))


def _tensor(value: onnx.ValueInfoProto) -> Tensor:
    kind = value.type.tensor_type
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type)).name if kind.elem_type else ""
    if not kind.HasField("shape") or not all(extent.HasField("dim_value") for extent in kind.shape.dim):
        return Tensor(value.name, None, dtype)
    return Tensor(value.name, tuple(extent.dim_value for extent in kind.shape.dim), dtype)


def _check_activation(tensor: Tensor) -> None:
    count = 1
    for extent in tensor.shape or ():
        count *= extent
    if count > MAX_TENSOR_BYTES:
        raise ModelTooLargeError(f"Tensor {tensor.name!r} must have at most {MAX_TENSOR_BYTES} elements, not {count}")


def _plain(value: Any) -> Any:
    """Return an attribute's value as Python has it."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return tuple(value) if isinstance(value, list) else value


def _name(node: onnx.NodeProto) -> str:
    return node.name or (node.output[0] if node.output else node.op_type)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
