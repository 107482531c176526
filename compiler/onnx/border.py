"""The border of a model: its inputs and outputs as users see them, kept apart from the values that stand for them.

Cleaning renames and joins values, half floats are widened, and an output may be an input or a constant. None of this
changes what the model takes and gives: names, order and types of the file, and what is its state.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import onnx
from onnx import TensorProto, helper

from tilewright.compiler.graph.graph import Border

__all__ = ["border_of", "detach_outputs", "keep_state", "keep_types", "state_of", "stated_outputs"]

_TYPES_KEY = "tilewright.types"
"""The key of an ONNX file's metadata under which types are kept that were changed on reading: JSON, by name."""

_STATE_KEY = "tilewright.state"
"""The key of what is state: JSON, outputs by the inputs that they are in the next call."""

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
                  defaults=defaults if proto.ir_version >= _DEFAULTS_IR_VERSION else (), state=state_of(proto))


def keep_types(proto: onnx.ModelProto) -> None:
    """Note in the model's metadata which inputs and outputs have a type that reading changes."""
    types = {value.name: value.type.tensor_type.elem_type for value in (*proto.graph.input, *proto.graph.output)}
    if kept := {name: _KEPT[kind] for name, kind in types.items() if kind in _KEPT}:
        proto.metadata_props.add(key=_TYPES_KEY, value=json.dumps(_kept_types(proto) | kept))


def keep_state(proto: onnx.ModelProto, state: Mapping[str, str]) -> None:
    """State in the model's metadata which outputs inputs are in the next call, by input."""
    if state:
        proto.metadata_props.add(key=_STATE_KEY, value=json.dumps(dict(state)))


def state_of(proto: onnx.ModelProto) -> dict[str, str]:
    """Return the outputs that inputs are in the next call, by input; none if its metadata are not ours."""
    inputs, outputs = ({value.name for value in values} for values in (proto.graph.input, proto.graph.output))
    return {name: output for name, output in _by_name(proto, _STATE_KEY).items()
            if name in inputs and isinstance(output, str) and output in outputs}


def _kept_types(proto: onnx.ModelProto) -> dict[str, str]:
    """Return the types that the metadata state; nothing if they are not ours."""
    kinds = [*_KEPT.values()]
    return {name: str(kind) for name, kind in _by_name(proto, _TYPES_KEY).items() if kind in kinds}


def _by_name(proto: onnx.ModelProto, key: str) -> dict[str, object]:
    """Return what the metadata have last under a key; nothing if that is no JSON object, as in a file of others."""
    text = next((each.value for each in reversed(proto.metadata_props) if each.key == key), "{}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


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
