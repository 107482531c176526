"""The border of a model: its inputs and outputs as users see them, kept apart from the values that stand for them.

Cleaning renames and joins values, half floats are widened, and an output may be an input or a constant. None of this
changes what the model takes and gives: names, order and types of the file.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import onnx
from onnx import TensorProto, helper

from tilewright.compiler.graph.graph import Border

__all__ = ["border_of", "detach_outputs", "keep_types", "stated_outputs"]

_TYPES_KEY = "tilewright.types"
"""The key of an ONNX file's metadata under which types are kept that were changed on reading: JSON, by name."""

_KEPT = {TensorProto.FLOAT16: "float16"}
"""ONNX's types that inputs and outputs keep, though what stands for them has another, and their names."""

_DEFAULTS_IR_VERSION = 4
"""Before it every constant had to be an input too, so that this said nothing."""


def border_of(proto: onnx.ModelProto) -> Border:
    """Return names and types of the model's inputs and outputs as its file has them."""
    constants = {tensor.name for tensor in proto.graph.initializer}
    names = {value.name for value in (*proto.graph.input, *proto.graph.output)}
    defaults = tuple(value.name for value in proto.graph.input if value.name in constants)
    return Border(outputs=tuple(value.name for value in proto.graph.output),
                  types={name: kind for name, kind in _kept_types(proto).items() if name in names},
                  defaults=defaults if proto.ir_version >= _DEFAULTS_IR_VERSION else ())


def keep_types(proto: onnx.ModelProto) -> None:
    """Note in the model's metadata which inputs and outputs have a type that reading changes."""
    types = {value.name: value.type.tensor_type.elem_type for value in (*proto.graph.input, *proto.graph.output)}
    if kept := {name: _KEPT[kind] for name, kind in types.items() if kind in _KEPT}:
        proto.metadata_props.add(key=_TYPES_KEY, value=json.dumps(_kept_types(proto) | kept))


def _kept_types(proto: onnx.ModelProto) -> dict[str, str]:
    """Return the types that the metadata state; nothing if they are not ours."""
    text = next((each.value for each in reversed(proto.metadata_props) if each.key == _TYPES_KEY), "{}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    kinds = [*_KEPT.values()]
    return {str(name): kind for name, kind in found.items() if kind in kinds} if isinstance(found, dict) else {}


@contextmanager
def stated_outputs(proto: onnx.ModelProto) -> Iterator[None]:
    """State type and shape of every output for a while, in place: those of a number where the model states none.

    ONNX's checker wants them, and ONNX Runtime does not.
    """
    kept = []
    for value in proto.graph.output:
        if value.type.WhichOneof("value") in (None, "tensor_type") and not value.type.tensor_type.HasField("shape"):
            kept.append((value.type, onnx.TypeProto.FromString(value.type.SerializeToString())))
            value.type.tensor_type.elem_type = value.type.tensor_type.elem_type or TensorProto.FLOAT
            value.type.tensor_type.shape.SetInParent()
    try:
        yield
    finally:
        for kind, before in kept:
            kind.CopyFrom(before)


def detach_outputs(proto: onnx.ModelProto) -> None:
    """Make each output that is an input, or a dequantised constant, in place, a copy of it under a name of its own.

    A dequantised constant has other readers, to which it is levels; as a copy it becomes the floats that it is.
    """
    inputs = {value.name: value.type for value in proto.graph.input}
    constants = {tensor.name for tensor in proto.graph.initializer}
    floats = {node.output[0] for node in proto.graph.node if node.op_type == "DequantizeLinear"
              and constants.issuperset(name for name in node.input if name)}
    for value in proto.graph.output:
        if value.name in inputs.keys() | floats:
            copied = helper.make_node("Identity", [value.name], [f"{value.name}:output"])
            value.type.CopyFrom(inputs.get(value.name, value.type))
            value.name = copied.output[0]
            proto.graph.node.append(copied)
