"""Faults of an ONNX file, in sentences that name file, node and tensor, unlike those of onnx's own checker.

Each function raises a :exc:`BadModelError` or :exc:`UnsupportedModelError`, or returns where nothing is wrong.
"""

import re
from collections.abc import Iterable, Mapping

import onnx
from onnx import helper

from tilewright.compiler.errors import BadModelError, UnsupportedModelError, UnsupportedNodeError, raise_all
from tilewright.compiler.onnx.foreign_formats import foreign_file
from tilewright.compiler.onnx.given_shapes import proposed_values
from tilewright.compiler.onnx.half_floats import HALF_FLOATS
from tilewright.isa.program import DTYPES

__all__ = ["WAY_OUT", "check_attributes", "check_domains", "check_order", "check_types", "contradiction", "no_model",
           "way_out_of", "window_too_large"]

_LEVELS = ("DequantizeLinear", "QuantizeLinear")
_PER_CHANNEL = 13
"""The opset with which QuantizeLinear and DequantizeLinear got an axis."""

_BRANCHING = ("If", "Loop")
WAY_OUT = "cut the model so that this node runs outside, or replace it"
"""The way out for a node whose operator is not compiled, as the end of a sentence."""

_DOMAINS = ("", "ai.onnx", "com.microsoft")
_POINTER = b"version https://git-lfs.github.com/spec/"
_FIRST_FIELD = b"\x08"
"""Begins nearly every ONNX file: ir_version comes first, and is a number."""

_PADDINGS = ("NOTSET", "SAME_LOWER", "SAME_UPPER", "VALID")
_WEIGHTS = {"Conv": 1, "ConvTranspose": 1, "QLinearConv": 3}
"""Operators whose kernel is that of their weights, and which input those are."""

_TYPE = re.compile(r"(\w+) typestr: \w+, has unsupported type: tensor\((\w+)\)")
_INFERENCE = re.compile(r"(?:\[\w+\] )?\(op_type:(\w+), node name: ([^)]*)\): (?:\[\w+\] )?(.*)")


def no_model(content: bytes, subject: str, *, file: str = "net.onnx", has_graph: bool = False) -> BadModelError:
    """Return the error for the ``content`` of a file that protobuf cannot read, or that has no nodes.

    ``subject`` begins the sentence: ``Model 'net.onnx'``. ``file`` is the path as given, which commands repeat.
    ``has_graph`` tells that there is at least a graph.
    """
    if has_graph:
        return BadModelError(f"{subject} must be an ONNX file with at least one node, and has none", "export it again")
    if not content:
        kind = "a .tflite file" if file.endswith(".tflite") else "an ONNX file"
        return BadModelError(f"{subject} must be {kind}, and is empty", "copy or export it again")
    if content.startswith(_POINTER):
        return BadModelError(f"{subject} must be an ONNX file, not a pointer to one in Git LFS",
                             "fetch the file itself with git lfs pull")
    if (known := foreign_file(content, file)) is not None:
        return BadModelError(f"{subject} must be an ONNX file, and this is {known[0]}", known[1])
    if content.startswith(_FIRST_FIELD):
        return BadModelError(f"{subject} must be an ONNX file, and this one of {len(content)} bytes is cut short "
                             "or damaged", "copy or export it again")
    kind, maker = (".tflite", "converter") if file.endswith(".tflite") else (".onnx", "exporter")
    return BadModelError(f"{subject} must be an ONNX or .tflite file, and this one of {len(content)} bytes is none, or "
                         "is damaged", f"give the {kind} file that the {maker} wrote")


def window_too_large(name: str) -> BadModelError:
    """Return the error for a window that is larger than what it reads."""
    return BadModelError(f"Window of node {name!r} must fit into its padded input, and is larger",
                         "give a larger input, with --shape where its size is open")


def check_order(graph: onnx.GraphProto) -> None:
    """Refuse nodes that read what nothing computes, or what only comes behind them."""
    if not graph.output:
        raise BadModelError("Model must have an output, and has none", "export it again, with the outputs named")
    makers = {name: node for node in graph.node for name in node.output if name}
    known = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    known |= {tensor.values.name for tensor in graph.sparse_initializer}
    for node in graph.node:
        for name in node.input:
            if not name or name in known:
                continue
            if name not in makers:
                raise BadModelError(f"{_node(node)} must read an input, a constant or a computed tensor, and tensor "
                                    f"{name!r} is none of them")
            if _needs(makers[name], node, makers):
                raise BadModelError(f"{_node(node)} must not depend on its own result, and does: it reads {name!r}, "
                                    "which "
                                    f"{_node(makers[name], start=False)} computes from it")
            raise BadModelError(f"{_node(node)} must come after {_node(makers[name], start=False)}, which computes "
                                f"its input {name!r}")
        known.update(node.output)


def check_domains(graph: onnx.GraphProto) -> None:
    """Refuse operators of anyone's own, every one of them."""
    raise_all([UnsupportedNodeError(
        node.name or node.output[0], node.op_type, f"it is an operator of {node.domain!r}, and only ONNX's operators "
                                                   "and some of "
                                                   "com.microsoft's are compiled", "replace it by ONNX operators, or "
                                                                                   "define it as a function in the "
                                                                                   "model")
        for node in graph.node if node.domain not in _DOMAINS and node.output])


def check_attributes(graph: onnx.GraphProto) -> None:
    """Refuse attributes that no operator of ONNX takes, where a rule or onnx's inference would pass over them."""
    kernels = {tensor.name: list(tensor.dims[2:]) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input and node.input[0] in kernels:
            kernels[node.output[0]] = kernels[node.input[0]]
    for node in graph.node:
        given = {each.name: helper.get_attribute_value(each) for each in node.attribute
                 if each.name in ("auto_pad", "kernel_shape", "perm")}
        pad, turn = given.get("auto_pad", b"NOTSET"), given.get("perm", [])
        if node.op_type == "Transpose" and sorted(turn) != list(range(len(turn))):
            raise BadModelError(f"{_node(node)} must have a perm that names each axis once, not {turn}")
        if node.domain in _DOMAINS and isinstance(pad, bytes) and pad.decode(errors="replace") not in _PADDINGS:
            raise BadModelError(f"{_node(node)} must have an auto_pad of {', '.join(_PADDINGS)}, "
                                f"not {pad.decode(errors='replace')!r:.40}")
        weights = node.input[_WEIGHTS[node.op_type]:][:1] if node.op_type in _WEIGHTS else []
        held = kernels.get(weights[0]) if weights else None
        if node.domain in _DOMAINS and held and given.get("kernel_shape", held) != held \
                and not any(each.name == "channels_last" for each in node.attribute):
            raise BadModelError(f"{_node(node)} must have the kernel_shape {held} of its weights, "
                                f"not {given['kernel_shape']}")


def check_types(proto: onnx.ModelProto, subject: str) -> None:
    """Refuse operators newer than any that are known, and inputs of types that no machine here has."""
    newest = onnx.defs.onnx_opset_version()
    opset = next((each.version for each in proto.opset_import if each.domain in ("", "ai.onnx")), newest)
    if opset > newest:
        raise UnsupportedModelError(f"{subject} must be of an ONNX opset up to {newest}, not {opset}",
                                    "export it again with an older opset, 17 for one")
    if opset < _PER_CHANNEL and any(node.op_type in _LEVELS and node.domain in ("", "ai.onnx") and any(
            each.name == "axis" for each in node.attribute) for node in proto.graph.node):
        raise BadModelError(f"{subject} must be of opset {_PER_CHANNEL} or later to have a scale for each channel, not "
                            f"{opset}", f"export the float model with opset {_PER_CHANNEL}, and quantise it again")
    constants = {tensor.name for tensor in proto.graph.initializer}
    for value in proto.graph.input:
        kind = value.type.tensor_type.elem_type
        if value.name in constants or not kind or kind not in helper.get_all_tensor_dtypes():
            continue
        name = "string" if kind == onnx.TensorProto.STRING else onnx.TensorProto.DataType.Name(kind).lower()
        name = {"float": "float32", "double": "float64"}.get(name, name)
        if name not in DTYPES and kind not in HALF_FLOATS:
            raise UnsupportedModelError(f"Input {value.name!r} must be one of {', '.join(DTYPES)}, not {name}",
                                        "export the model with float32")


_FLOATS_OF_FEW_BITS = {"MatMulNBits", "MatMulBnb4", "GatherBlockQuantized"}
"""Operators of com.microsoft that multiply floats by weights of few bits, or pick such."""


def way_out_of(node: onnx.NodeProto, graph: onnx.GraphProto) -> str:
    """Return what to do about a node whose operator is not compiled, as the end of a sentence."""
    if node.op_type in _FLOATS_OF_FEW_BITS:
        return ("give the float model that it was made of, and let `tilewright quantise --weights int4` round its "
                "weights: a product of floats by weights of few bits is none of integers")
    if node.op_type not in _BRANCHING:
        return WAY_OUT
    makers = {name: each for each in graph.node for name in each.output}
    constants = {tensor.name for tensor in graph.initializer}
    small = [value.name for value in graph.input if value.name not in constants
             and all(extent.dim_value == 1 for extent in value.type.tensor_type.shape.dim)]
    deciding = [name for name in small if name in _sources(node.input[:1], makers)]
    if not deciding:
        return WAY_OUT if node.op_type != "If" else \
            "make the condition the constant that it is where the model is used"
    known = proposed_values(onnx.ModelProto(graph=graph))
    options = " ".join(f"--input-value {name}={known.get(name, 'N')}" for name in deciding)
    return f"fix what decides it with {options}, the value that it always has"


def _sources(names: Iterable[str], makers: Mapping[str, onnx.NodeProto]) -> set[str]:
    """Return all tensors that the ones named are computed from, themselves included."""
    seen: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += makers[name].input if name in makers else []
    return seen


def contradiction(message: str) -> BadModelError:
    """Return the error for onnx's message about contradicting types or shapes."""
    if (found := _INFERENCE.search(message)) is None:
        return BadModelError(f"Shapes of the model contradict each other: {message}")
    op, name, reason = found.groups()
    if (kind := _TYPE.fullmatch(reason)) is not None:
        reason = f"its input {kind[1]!r} has the type {kind[2]}, which the operator does not take"
    return BadModelError(f"Shapes and types of the model contradict each other at node {name!r} ({op}): {reason}")


def _needs(node: onnx.NodeProto, other: onnx.NodeProto, makers: Mapping[str, onnx.NodeProto]) -> bool:
    """Tell whether ``node`` needs a result of ``other``, directly or not."""
    seen: set[str] = set()
    names = [*node.input]
    while names:
        name = names.pop()
        if name in seen or name not in makers:
            continue
        seen.add(name)
        if name in other.output:
            return True
        names += makers[name].input
    return False


def _node(node: onnx.NodeProto, start: bool = True) -> str:
    name = node.name or (node.output[0] if node.output else node.op_type)
    return f"{'N' if start else 'n'}ode {name!r} ({node.op_type})"
