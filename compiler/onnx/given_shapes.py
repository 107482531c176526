"""Choices of a user for a model's inputs: shapes by input, sizes by symbol, and values that are always the same."""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.errors import InputError, nearest

__all__ = ["fix_shapes", "fix_values", "open_shape", "proposed_values"]

_SAME_VALUE = frozenset({"Cast", "Gather", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators behind which a number is still that number."""

_COMPARES = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})

_RATE = re.compile(r"sr|fs|(sample|sampling)_?(rate|freq\w*|hz)", re.IGNORECASE)
_USUAL_RATE = 16000
"""Hz of speech."""


def proposed_values(proto: onnx.ModelProto) -> dict[str, int]:
    """Return for each input that is one whole number, and means a setting, the value that it may always have.

    That is the first constant with which the model compares it, or for a sampling rate the usual one of speech.
    """
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    constants |= {node.output[0]: node.attribute[0].t for node in proto.graph.node if node.op_type == "Constant"
                  and len(node.attribute) == 1 and node.attribute[0].HasField("t")}
    found = {}
    for value in proto.graph.input:
        kind = value.type.tensor_type
        whole = kind.elem_type in (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
        if value.name in constants or not whole or not kind.HasField("shape") or any(
                extent.dim_value != 1 for extent in kind.shape.dim):
            continue
        if (compared := _compared_with(value.name, proto.graph, constants)) is not None:
            found[value.name] = compared
        elif _RATE.fullmatch(value.name):
            found[value.name] = _USUAL_RATE
    return found


def _compared_with(name: str, graph: onnx.GraphProto, constants: Mapping[str, onnx.TensorProto]) -> int | None:
    """Return the first whole constant with which a tensor of one number is compared; None if there is none."""
    same = {name}
    for node in graph.node:
        if not same & set(node.input):
            continue
        if node.op_type in _SAME_VALUE and node.input[0] in same:
            same.update(node.output)
        others = [constants[each] for each in node.input if each in constants]
        if node.op_type in _COMPARES and others and math.prod(others[0].dims) == 1:
            value = numpy_helper.to_array(others[0]).item()
            if value == int(value):
                return int(value)
    return None


def fix_values(proto: onnx.ModelProto, given: Mapping[str, Sequence[float]]) -> None:
    """Make constants of inputs, in place: of the values in ``given``, one for all elements or one for each.

    Open dimensions of such an input are 1, or with several values the one that is open holds them all.

    Raises
    ------
    InputError
        If there is no such input, it has another number of elements, its type does not hold a value, or no input is
        left.
    """
    constants = {tensor.name for tensor in proto.graph.initializer}
    inputs = {value.name: value for value in proto.graph.input if value.name not in constants}
    for name, values in given.items():
        if name not in inputs:
            raise InputError(f"Option --input-value must name an input ({', '.join(inputs)}), not {name!r}"
                             f"{nearest(name, inputs)}")
        array = _filled(name, inputs[name].type.tensor_type, values)
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
        proto.graph.input.remove(inputs.pop(name))
    if given and not inputs:
        raise InputError(f"Option --input-value must leave the model an input, and {', '.join(given)} are all that it "
                         "has")


def _filled(name: str, kind: onnx.TypeProto.Tensor, values: Sequence[float]) -> np.ndarray:
    """Return the values of an input, in its type and shape."""
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    shape = [extent.dim_value if extent.dim_value > 0 else 0 for extent in kind.shape.dim]
    if len(values) > 1 and shape.count(0) == 1:
        shape[shape.index(0)] = len(values) // max(math.prod(extent for extent in shape if extent), 1)
    shape = [extent or 1 for extent in shape]
    if len(values) not in (1, math.prod(shape)):
        raise InputError(f"Option --input-value {name} must have one value, or {math.prod(shape)} for the shape "
                         f"{'x'.join(map(str, shape)) or 'of a scalar'}, not {len(values)}")
    array = np.asarray(values, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        cast = array.astype(dtype)
    if not np.array_equal(cast.astype(np.float64), array) and (dtype.kind != "f" or not np.isfinite(cast).all()):
        raise InputError(f"Option --input-value {name} must have values of the input's type, {dtype}, not "
                         f"{', '.join(f'{value:g}' for value in values)}")
    return np.ascontiguousarray(np.broadcast_to(cast if cast.size > 1 else cast[0], shape) if cast.size == 1 else
                                cast.reshape(shape))


def fix_shapes(proto: onnx.ModelProto, given: Mapping[str, Sequence[int]]) -> None:
    """Give inputs, in place, the shapes in ``given``.

    A key is the name of an input, or with one extent the symbol of a dimension, which is fixed wherever it stands.

    Raises
    ------
    InputError
        If there is no such input or symbol, or a shape contradicts the one that the model states.
    """
    constants = {tensor.name for tensor in proto.graph.initializer}
    inputs = {value.name: value.type.tensor_type for value in proto.graph.input if value.name not in constants}
    for name, shape in given.items():
        if name in inputs:
            _fix(name, inputs[name], shape)
        elif not _fix_symbol(inputs, name, shape):
            symbols = {extent.dim_param for kind in inputs.values() for extent in kind.shape.dim if extent.dim_param}
            raise InputError(f"Option --shape must name an input ({', '.join(inputs)}) or, with one extent, an open "
                             f"dimension ({', '.join(sorted(symbols)) or 'there is none'}), not {name!r}")
    # What was written for other shapes is inferred again.
    for value in proto.graph.output:
        for extent in value.type.tensor_type.shape.dim:
            extent.Clear()
    del proto.graph.value_info[:]


def _fix(name: str, kind: onnx.TypeProto.Tensor, shape: Sequence[int]) -> None:
    stated = [extent.dim_value for extent in kind.shape.dim]
    if kind.HasField("shape") and (len(stated) != len(shape) or any(
            old > 0 and old != new for old, new in zip(stated, shape, strict=True))):
        raise InputError(f"Option --shape must give input {name!r} a shape that suits {open_shape(kind)}, which the "
                         f"model states, not {','.join(map(str, shape))}")
    kind.ClearField("shape")
    for extent in shape:
        kind.shape.dim.add().dim_value = extent
    kind.shape.SetInParent()


def _fix_symbol(inputs: Mapping[str, onnx.TypeProto.Tensor], symbol: str, shape: Sequence[int]) -> bool:
    """Fix every dimension of that symbol; tell whether there was one."""
    found = [extent for kind in inputs.values() for extent in kind.shape.dim if extent.dim_param == symbol]
    if len(shape) != 1 or not symbol:
        return False
    for extent in found:
        extent.dim_value = shape[0]
    return bool(found)


def open_shape(kind: onnx.TypeProto.Tensor) -> str:
    """Return a shape as option --shape takes it, with symbols, 0 or ``?`` where dimensions are open."""
    return ",".join(str(extent.dim_value) if extent.dim_value > 0 else
                    extent.dim_param or ("0" if extent.HasField("dim_value") and extent.dim_value == 0 else "?")
                    for extent in kind.shape.dim)
