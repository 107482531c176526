"""Read an ONNX file into a Graph; with two helpers, the only place of the compiler that knows ONNX's format.

The file is untrusted. It is checked, measured against limits before anything is built from it, given static
shapes, cleaned up (functions inlined, constants folded, identities removed), and only operators that the datapath or
the host core computes get through.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import google.protobuf.message
import numpy as np
import onnx
import onnx.external_data_helper
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.errors import (
    BadModelError,
    ModelTooLargeError,
    UnsupportedModelError,
    UnsupportedNodeError,
    raise_all,
)
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_names import COMPUTED_IN_TABLES, RECOGNISED, onnx_operator
from tilewright.compiler.graph.onnx_operators import OnnxSlice
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.normal.constant_arrays import array_of
from tilewright.compiler.normal.rules.normal_form import normalise, without_integer_operators
from tilewright.compiler.onnx.border import border_of, detach_outputs, keep_state, keep_types, stated_outputs
from tilewright.compiler.onnx.cleaning import (
    clean,
    clean_with_shapes,
    expand_functions,
    inline_functions,
    name_results,
    rename_images,
)
from tilewright.compiler.onnx.dialects.qonnx import import_domains
from tilewright.compiler.onnx.dialects.refused import check_classical, check_dialects
from tilewright.compiler.onnx.faults import WAY_OUT, check_attributes, check_order, check_types, no_model, way_out_of
from tilewright.compiler.onnx.half_floats import widen
from tilewright.compiler.onnx.opset import raised, with_gelu, with_kernels, with_round
from tilewright.compiler.onnx.order import in_order
from tilewright.compiler.onnx.other_quantisers import expand_dialects
from tilewright.compiler.onnx.reading_notes import SORTED_NOTE, add_note, form_note
from tilewright.compiler.onnx.shapes import first_line, fix_batch, infer_shapes
from tilewright.compiler.onnx.unrolling import StillThere, unrolled
from tilewright.compiler.pulp.pulp_mark import is_pulp
from tilewright.compiler.pulp.pulp_reader import onnx_of_pulp
from tilewright.compiler.tflite.mark import EngineName, is_tflite

__all__ = ["DYNAMIC_NOTE", "MAX_MODEL_BYTES", "MAX_TENSOR_BYTES", "is_compiled", "load", "read_model",
           "self_contained"]

MAX_MODEL_BYTES = 2**31 - 1
"""Limit of a model, external data included; protobuf itself takes no more."""

MAX_TENSOR_BYTES = 2**30
"""Limit of one tensor."""

_MAX_EXTENT = 2**14
"""Limit of an image's height and width: tilings of larger ones are too many to compare."""

# onnx's checker does not know these operators: the inputs that must be there, and the attributes.
_INTS, _INT, _FLOAT, _STRING = (onnx.AttributeProto.INTS, onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT,
                                onnx.AttributeProto.STRING)
_CONTRIB: dict[str, tuple[tuple[int, ...], dict[str, int]]] = {
    "QGemm": ((0, 1, 2, 3, 4, 5), {"alpha": _FLOAT, "transA": _INT, "transB": _INT}),
    "QLinearAdd": ((0, 1, 3, 4, 6), {}),
    "QLinearMul": ((0, 1, 3, 4, 6), {}),
    "QLinearConcat": ((0, 2, 3), {"axis": _INT}),
    "QLinearSigmoid": ((0, 1, 3), {}),
    "QLinearLeakyRelu": ((0, 1, 3), {"alpha": _FLOAT}),
    "QLinearSoftmax": ((0, 1, 3), {"axis": _INT, "opset": _INT}),
    "QLinearGlobalAveragePool": ((0, 1, 2, 3, 4), {"channels_last": _INT}),
    "QLinearAveragePool": ((0, 1, 3), {
        "auto_pad": _STRING, "ceil_mode": _INT, "channels_last": _INT, "count_include_pad": _INT,
        "kernel_shape": _INTS, "pads": _INTS, "strides": _INTS}),
    "QuantizeLinear": ((0, 1), {"axis": _INT}),
    "DequantizeLinear": ((0, 1), {"axis": _INT}),
    "Gelu": ((0,), {}),
    "QuickGelu": ((0,), {"alpha": _FLOAT}),
}
_MOVES = {"Concat", "Slice", "Resize", "Upsample", "Pad"}
_OPERATORS = RECOGNISED | COMPUTED_IN_TABLES | _MOVES | KERNELS.keys()

_CONSTANTS_IR_VERSION = 4

_OF_CONDITION = "its condition is computed, and only the branch of a constant one is compiled"


def load(model: str | Path | bytes) -> Graph:
    """Read an ONNX model.

    Parameters
    ----------
    model : path or bytes
        The file, or its contents. External data must lie in the model's own folder.

    Returns
    -------
    Graph
        With ONNX's own operators, each with one output, static shapes, and a batch of 1.

    Raises
    ------
    CompileError
        If it is no model, contradicts itself, is too large, has dynamic dimensions besides the batch, or has an
        operator that is not compiled.
    """
    proto = read_model(model)
    border = border_of(proto)
    _check_contribs(proto)
    detach_outputs(proto)
    fix_batch(proto)
    proto, refusals = unrolled(proto)
    proto = expand_functions(without_integer_operators(proto), _OPERATORS)
    cleaned, count = clean_with_shapes(proto), len(proto.graph.node)
    # What folding has made constant, as the shape of a Reshape, tells the shapes of what follows, which fold then.
    while any(node.op_type == "Shape" for node in cleaned.graph.node) and len(cleaned.graph.node) != count:
        cleaned, count = infer_shapes(clean(cleaned)), len(cleaned.graph.node)
    return _build(cleaned, refusals).with_(border=border)


DYNAMIC_NOTE = ("quantised dynamically: ranges are computed at run time, so the host core computes in float between "
                "the integer products of the datapath; to compute all there, fix the ranges with --calibrate FILE, of "
                "samples of the inputs")
"""Of a model in which nothing was changed."""


def read_model(model: str | Path | bytes, engine: EngineName = "litert") -> onnx.ModelProto:
    """Return a model checked and within the limits, its external data in it and its functions inlined.

    Half floats in it are float32, operators of QONNX and MCT ONNX's own, its opset one that ONNX Runtime computes, and
    its quantisation is in normal form; a .tflite file has the arithmetic of ``engine``.
    :func:`~tilewright.compiler.onnx.reading_notes.notes_of` tells what was changed.

    Raises
    ------
    CompileError
        If it is no model, contradicts itself, or is too large.
    """
    proto = inline_functions(_parse(model, engine))
    for old, new in rename_images(proto).items():
        add_note(proto, f"tensor {old!r} is called {new!r} here: its own name would be that of another's image")
    proto = expand_dialects(proto)
    keep_types(proto)
    if halves := widen(proto):
        add_note(proto, f"computed in float32, not {' and '.join(sorted(halves))} as in the file")
    proto = with_kernels(with_gelu(with_round(proto)))
    made = _normal(proto)
    if any(node.op_type == "DynamicQuantizeLinear" for node in made.graph.node):
        add_note(made, DYNAMIC_NOTE)
    return made


def _normal(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model in normal form, with a note of the rules that made it so."""
    form = normalise(raised(proto))
    if not form.counts:
        return proto
    made = raised(form.proto)
    for note in form.notes:
        add_note(made, note)
    add_note(made, form_note(form.counts))
    _keep_defaults(proto, made)
    return made


def _keep_defaults(proto: onnx.ModelProto, made: onnx.ModelProto) -> None:
    """Leave inputs that have defaults in a model whose rules have made constants of them: who feeds one is told."""
    known = {each.name for each in (*made.graph.initializer, *made.graph.input)}
    values = {each.name: each for each in proto.graph.initializer}
    for value in proto.graph.input:
        if value.name in values and value.name not in known:
            made.graph.input.append(value)
            made.graph.initializer.append(values[value.name])


def self_contained(model: str | Path) -> bytes:
    """Return the contents of a model's file, with its external data in it if it has any."""
    content = Path(model).read_bytes()
    proto = onnx.ModelProto.FromString(content)
    if all(tensor.data_location != TensorProto.EXTERNAL for tensor in proto.graph.initializer):
        return content
    return read_model(model).SerializeToString(deterministic=True)


def _parse(model: str | Path | bytes, engine: EngineName = "litert") -> onnx.ModelProto:
    """Return the checked model with its external data in it."""
    folder, subject, file = None, "Model", "net.onnx"
    if isinstance(model, (str, Path)):
        path = Path(model)
        subject, file = f"Model {path.name!r}", str(path)
        try:
            size, folder = path.stat().st_size, path.resolve().parent
            if size > MAX_MODEL_BYTES:
                raise ModelTooLargeError(f"Model must have at most {MAX_MODEL_BYTES} bytes, not {size}")
            model = path.read_bytes()
        except OSError as error:
            raise BadModelError(f"Model {str(path)!r} cannot be read: {error.strerror}", way_out="") from error
    if is_tflite(model):
        return _of_tflite(model, subject, Path(file).stem, engine)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(model)
    except google.protobuf.message.DecodeError as error:
        raise no_model(model, subject, file=file) from error
    if not proto.graph.node:
        raise no_model(model, subject, file=file, has_graph=proto.HasField("graph"))
    if is_pulp(proto):
        proto = _of_pulp(proto, folder, len(model), subject)
    check_classical(proto)
    check_dialects(proto)
    check_types(proto, subject)
    if in_order(proto.graph):
        add_note(proto, SORTED_NOTE)
    check_order(proto.graph)
    name_results(proto)
    _load_external(proto, folder, len(model))
    _check_tensor_sizes(proto)
    import_domains(proto)
    _allow_constants(proto)
    try:
        with stated_outputs(proto):
            onnx.checker.check_model(proto)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise BadModelError(f"{subject} must be valid ONNX; the checker says: {first_line(error)}") from error
    check_attributes(proto.graph)
    return proto


def _of_tflite(content: bytes, subject: str, name: str, engine: EngineName) -> onnx.ModelProto:
    """Return the ONNX model of a .tflite file, checked like a file's."""
    # Imported late: the schema's classes take a while, and few models need them.
    from tilewright.compiler.tflite.tflite_reader import onnx_of_tflite

    proto, notes, state = onnx_of_tflite(content, subject, name, engine)
    keep_state(proto, state)
    for note in notes:
        add_note(proto, note)
    _check_tensor_sizes(proto)
    try:
        onnx.checker.check_model(proto)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise BadModelError(f"{subject} must be a valid model; the checker says: {first_line(error)}") from error
    return proto


def _of_pulp(proto: onnx.ModelProto, folder: Path | None, size: int, subject: str) -> onnx.ModelProto:
    """Return the ONNX model of an integer network of PULP's tools."""
    in_order(proto.graph)
    check_order(proto.graph)
    name_results(proto)
    _load_external(proto, folder, size)
    _check_tensor_sizes(proto)
    try:
        made, notes = onnx_of_pulp(proto)
    except ValueError as error:     # of onnx, for names that are no text and attributes without a type
        raise BadModelError(f"{subject} must be valid ONNX; onnx says: {first_line(error)}") from error
    for note in notes:
        add_note(made, note)
    return made


def _allow_constants(proto: onnx.ModelProto) -> None:
    """Bring a model of an old format that has constants which are no inputs to the format that first allowed them.

    ONNX Runtime takes such models unless asked for more outputs, and its quantiser writes them.
    """
    if proto.ir_version < _CONSTANTS_IR_VERSION and \
            {tensor.name for tensor in proto.graph.initializer} - {value.name for value in proto.graph.input}:
        add_note(proto, f"read as of IR version {_CONSTANTS_IR_VERSION}, not {proto.ir_version}, in which constants "
                        "must be inputs too")
        proto.ir_version = _CONSTANTS_IR_VERSION


def _load_external(proto: onnx.ModelProto, folder: Path | None, size: int) -> None:
    for tensor in proto.graph.initializer:
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        if folder is None:
            raise BadModelError(f"Tensor {tensor.name!r} has external data; give the model as a file, not as bytes",
                                way_out="")
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        target = _within(folder, location)
        if target is None:
            raise BadModelError(f"External data of tensor {tensor.name!r} must be a file in the model's folder, "
                                f"not {location!r:.100}", way_out="put it there, and export the model with that name")
        for entry in tensor.external_data:
            if entry.key in ("offset", "length") and not entry.value.isdecimal():
                raise BadModelError(f"External data of tensor {tensor.name!r} must have a number as {entry.key}, "
                                    f"not {entry.value!r:.40}")
        size += min(target.stat().st_size, _tensor_bytes(tensor))
        if size > MAX_MODEL_BYTES:
            raise ModelTooLargeError(f"Model and external data must have at most {MAX_MODEL_BYTES} bytes together")
        try:
            onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        except (ValueError, OSError, onnx.checker.ValidationError) as error:
            raise BadModelError(f"External data of tensor {tensor.name!r} cannot be read: "
                                f"{first_line(error)}") from error
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]
        add_note(proto, f"read with the data in {location}")


def _within(folder: Path, location: str) -> Path | None:
    """Return the file ``location`` of ``folder``, or None if there is none such in it."""
    try:
        target = (folder / location).resolve()
        return target if location and target.is_relative_to(folder) and target.is_file() else None
    except (ValueError, OSError):
        return None     # no name that a file can have


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
    for tensor in [*proto.graph.initializer, *_inner_constants(proto)]:
        if (size := _tensor_bytes(tensor)) > MAX_TENSOR_BYTES:
            raise ModelTooLargeError(f"Tensor {tensor.name!r} must have at most {MAX_TENSOR_BYTES} bytes, not {size}")


def _inner_constants(proto: onnx.ModelProto) -> Iterator[TensorProto]:
    """Yield every constant in attributes, functions and graphs within the graph; all must be in the file itself."""
    nodes = [*proto.graph.node, *(node for function in proto.functions for node in function.node)]
    while nodes:
        for attribute in nodes.pop().attribute:
            inner = [attribute.g, *attribute.graphs]
            nodes += [node for graph in inner for node in graph.node]
            tensors = [attribute.t] if attribute.HasField("t") else []
            for tensor in [*tensors, *attribute.tensors, *(each for graph in inner for each in graph.initializer)]:
                if tensor.data_location == TensorProto.EXTERNAL:
                    raise BadModelError(f"Tensor {tensor.name!r} must have its data in the file, like every constant "
                                        "inside a node")
                yield tensor


def _check_contribs(proto: onnx.ModelProto) -> None:
    if proto.graph.sparse_initializer:
        raise UnsupportedModelError("Model must have dense constants; this one has sparse ones")
    for node in proto.graph.node:
        if node.domain == "com.microsoft" and node.op_type in _CONTRIB:
            _check_contrib(node)
        # ONNX's own inference ends the process if it is told a smaller number.
        told = next((attribute.i for attribute in node.attribute if attribute.name == "num_outputs"), None)
        if node.op_type == "Split" and told is not None and told != len(node.output):
            raise BadModelError(f"Node {_name(node)!r} (Split) must have as many outputs as it states, {told}, "
                                f"not {len(node.output)}")


def is_compiled(node: onnx.NodeProto) -> bool:
    """Tell whether the datapath or the host core computes an operator."""
    return node.op_type in {"com.microsoft": _CONTRIB.keys(), "": _OPERATORS, "ai.onnx": _OPERATORS}.get(
        node.domain, ())


def _check_operators(graph: onnx.GraphProto, unrolling: Mapping[str, StillThere]) -> None:
    """Refuse what neither the datapath nor the host core computes, every node of it.

    ``unrolling`` says of nodes of control flow why they are still there.
    """
    read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    refusals = []
    for node in graph.node:
        if not is_compiled(node):
            reason = _OF_CONDITION if node.op_type == "If" else "the operator is not compiled"
            why = unrolling.get(_name(node), StillThere("", ""))
            refusals.append(UnsupportedNodeError(_name(node), node.op_type, why.reason or reason,
                                                 why.way_out or way_out_of(node, graph)))
        elif node.op_type != "Split" and any(name in read for name in node.output[1:] if name):
            refusals.append(UnsupportedNodeError(_name(node), node.op_type, "its second output is used", WAY_OUT))
    raise_all(refusals)


def _check_contrib(node: onnx.NodeProto) -> None:
    required, attributes = _CONTRIB[node.op_type]
    lacks = any(i >= len(node.input) or not node.input[i] for i in required) or (
        node.op_type == "QLinearConcat" and len(node.input) % 3 != 2)   # scale and zero point; three of each tensor
    if lacks or not any(node.output):
        raise BadModelError(f"Node {_name(node)!r} ({node.op_type}) must have all its inputs and an output")
    for attribute in node.attribute:
        if attributes.get(attribute.name) != attribute.type:
            raise BadModelError(f"Node {_name(node)!r} ({node.op_type}) must have the attributes "
                                f"{', '.join(attributes) or 'none'}, each of its type, not {attribute.name!r}")


def _build(proto: onnx.ModelProto, unrolling: Mapping[str, StillThere]) -> Graph:
    graph = proto.graph
    _copy_constant_outputs(graph)
    _check_operators(graph, unrolling)
    constants = {tensor.name: array_of(tensor) for tensor in graph.initializer}
    tensors = {value.name: _tensor(value) for value in (*graph.value_info, *graph.output, *graph.input)}
    nodes: list[Node] = []
    for node in graph.node:
        attrs = {attribute.name: _plain(helper.get_attribute_value(attribute)) for attribute in node.attribute}
        for name in node.output:
            tensors.setdefault(name, Tensor(name, None, ""))
        if node.op_type == "Split":
            nodes += _slices(node, attrs, tensors, constants)
        else:
            operator = onnx_operator(node.op_type, attrs)
            nodes.append(Node(operator, tuple(node.input), node.output[0], (_name(node),)))
    for tensor in tensors.values():
        _check_activation(tensor)
    opset = next((each.version for each in proto.opset_import if each.domain in ("", "ai.onnx")), 1)
    return Graph(graph.name, tuple(nodes), tensors, constants,
                 tuple(value.name for value in graph.input), tuple(value.name for value in graph.output), opset)


def _copy_constant_outputs(graph: onnx.GraphProto) -> None:
    """Make constants that are outputs of the model copies of constants that are none."""
    outputs = {value.name: value for value in graph.output}
    for node in [node for node in graph.node if node.op_type == "Constant" and node.domain in ("", "ai.onnx")]:
        if (tensor := _constant_value(node)) is not None:
            graph.initializer.append(tensor)
            graph.node.remove(node)
    for tensor in [tensor for tensor in graph.initializer if tensor.name in outputs]:
        outputs[tensor.name].type.CopyFrom(helper.make_tensor_type_proto(tensor.data_type, tensor.dims))
        copied = helper.make_node("Identity", [f"{tensor.name}:constant"], [tensor.name])
        for node in graph.node:
            node.input[:] = [copied.input[0] if name == tensor.name else name for name in node.input]
        tensor.name = copied.input[0]
        graph.node.insert(0, copied)


def _constant_value(node: onnx.NodeProto) -> TensorProto | None:
    """Return the value of a Constant of numbers."""
    attribute = node.attribute[0]
    value = helper.get_attribute_value(attribute)
    tensor = TensorProto()
    if attribute.name == "value":
        tensor.CopyFrom(value)
    elif attribute.name in ("value_float", "value_floats", "value_int", "value_ints"):
        dtype = np.float32 if "float" in attribute.name else np.int64
        tensor.CopyFrom(numpy_helper.from_array(np.array(value, dtype)))
    else:
        return None
    tensor.name = node.output[0]
    return tensor


def _slices(node: onnx.NodeProto, attrs: dict[str, Any], tensors: dict[str, Tensor],
            constants: dict[str, np.ndarray]) -> Iterator[Node]:
    """Yield one Slice for each output of a Split, and add their bounds to ``constants``."""
    axis, start = int(attrs.get("axis", 0)), 0
    for index, name in enumerate(node.output):
        shape = tensors[name].shape if name else None
        if shape is None or not -len(shape) <= axis < len(shape):
            raise UnsupportedNodeError(_name(node), "Split", f"the shape of its output {name!r} is not known", WAY_OUT)
        bounds = {f"{name}:starts": start, f"{name}:ends": start + shape[axis], f"{name}:axes": axis}
        constants |= {key: np.array([value], np.int64) for key, value in bounds.items()}
        start += shape[axis]
        label = _name(node) if index == 0 else f"{_name(node)}:{index}"
        yield Node(OnnxSlice(), (node.input[0], *bounds), name, (label,))


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
    if len(tensor.shape or ()) == 4 and max((tensor.shape or ())[2:]) > _MAX_EXTENT:
        raise ModelTooLargeError(f"Tensor {tensor.name!r} must have at most {_MAX_EXTENT} rows and columns, "
                                 f"not the shape {list(tensor.shape or ())!r}")


def _plain(value: Any) -> Any:
    """Return an attribute's value as Python has it."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return tuple(value) if isinstance(value, list) else value


def _name(node: onnx.NodeProto) -> str:
    return node.name or (node.output[0] if node.output else node.op_type)
