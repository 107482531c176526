"""Open dimensions of a model's inputs, fixed by the user: whole shapes by input, or sizes by symbol."""

from collections.abc import Mapping, Sequence

import onnx

from tilewright.errors import InputError

__all__ = ["fix_shapes", "open_shape"]


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
    """Return a shape as option --shape takes it, with symbols or ``?`` where dimensions are open."""
    return ",".join(str(extent.dim_value) if extent.dim_value > 0 else extent.dim_param or "?"
                    for extent in kind.shape.dim)
