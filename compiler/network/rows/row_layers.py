"""Softmax and normalisation of levels as layers of the datapath, on machines with a row unit, where rows are runs.

The front end leaves them to the host core between quantisations (`SoftmaxOfLevels`, `NormalisationOfLevels`). Rows are
the channels of an image's pixels, or elements that lie one behind the other in a tensor of any rank; then a layer
passes the tensor through the datapath, and the row unit does the rest.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tilewright.compiler.kernels.language.c_loops import merged
from tilewright.compiler.kernels.language.rows import Rows
from tilewright.compiler.kernels.operators import softmax
from tilewright.compiler.kernels.operators.normalisation import RowNormalisation
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import (
    AnyLayer,
    CoreLayer,
    Layer,
    Network,
    Place,
    Requantisation,
    Shape,
    TensorInfo,
)
from tilewright.compiler.network.layout import layout_of
from tilewright.compiler.network.rows.channel_norms import channel_norm
from tilewright.compiler.network.rows.class_maps import class_map
from tilewright.isa.limits import MAX_BLOCK_CHANNELS, MAX_COLUMNS, MAX_ROW_LENGTH
from tilewright.isa.machine import Machine
from tilewright.isa.program import Call, Operand
from tilewright.isa.rows.row_norm import LEAST_NORM_ROW, MAX_NORM_LENGTH, NormRefused, RowNorm
from tilewright.isa.rows.row_softmax import RowSoftmax

__all__ = ["NO_UNIT", "longest_row", "with_row_layers"]

_LEAST = 4
"""Elements below which the layers of the datapath take about as long as the host core."""

NO_UNIT = "the machine has no row unit, which would take it"
"""Reason of rows on the host core of a machine without the unit."""

_SOFTMAX, _NORM, _ARGMAX = "SoftmaxOfLevels", "NormalisationOfLevels", "ArgMax"

_MOST_COPIES = 64
"""Of rows that do not lie in one run: each copy is a layer."""

_COLUMNS = 256
"""Pixels of a row, at most, where any number will do."""


def longest_row(machine: Machine) -> int:
    """Return the elements of a row that ``machine`` normalises at most: all channels of one act command."""
    most = min(MAX_ROW_LENGTH, MAX_BLOCK_CHANNELS, machine.parameter_channels, machine.result_bytes)
    return most // machine.lanes * machine.lanes


def _longest(length: int, machine: Machine, *, norm: bool) -> int:
    """Return the elements at most of rows whose length is a multiple of ``machine.lanes`` as ``length`` is, or not.

    Where it is one, all elements have the parameters of one lane group (``compiler.plan.algorithms``); gains and shifts
    lie in the parameter buffer, too.
    """
    most, alike = min(MAX_ROW_LENGTH, MAX_BLOCK_CHANNELS, machine.result_bytes), length % machine.lanes == 0
    if norm:
        rest = machine.parameter_channels - machine.lanes if alike else machine.parameter_channels // 2
        most = min(most, MAX_NORM_LENGTH, rest)
    elif not alike:
        most = min(most, machine.parameter_channels)
    return most // machine.lanes * machine.lanes


def _too_long(length: int, machine: Machine, *, norm: bool) -> str:
    """Return why rows of ``length`` elements are too long; empty if they are not."""
    any_machine = MAX_NORM_LENGTH if norm else min(MAX_ROW_LENGTH, MAX_BLOCK_CHANNELS)
    if length > any_machine:
        return f"a row unit takes rows of at most {any_machine} elements, and these have {length}"
    longest, even = _longest(length, machine, norm=norm), _longest(machine.lanes, machine, norm=norm)
    more = f", or {even} of a multiple of {machine.lanes}," if even > longest else ""
    return f"the row unit takes rows of up to {longest} elements{more} and these have {length}" \
        if length > longest else ""


def with_row_layers(network: Network, machine: Machine) -> Network:
    """Return ``network`` with the rows that the row unit of ``machine`` can compute as layers of the datapath.

    Without that unit they stay on the host core, with the unit as the reason where it would take them.
    """
    tensors, constants = dict(network.tensors), dict(network.constants)
    layers: list[AnyLayer] = []
    for layer in network.layers:
        found = _of_channels(layer, network, tensors, machine)
        layers += [layer] if found is None else found[0]
        constants |= {} if found is None else found[1]
    network = replace(network, layers=tuple(layers), tensors=dict(tensors), constants=constants)
    if not machine.normalises_rows:
        equipped = replace(machine, row_unit=True, value_tables=True, float_requantise=True)
        layers = [replace(layer, reason=NO_UNIT) if isinstance(layer, CoreLayer) and isinstance(
            _on_datapath(layer, network, dict(tensors), equipped)[0], Layer) else layer for layer in network.layers]
        return replace(network, layers=tuple(layers))
    layers = [each for layer in network.layers for each in _on_datapath(layer, network, tensors, machine)]
    return replace(network, layers=tuple(layers), tensors=tensors)


def _of_channels(layer: AnyLayer, network: Network, tensors: dict[str, TensorInfo],
                 machine: Machine) -> tuple[list[AnyLayer], dict[str, np.ndarray]] | None:
    """Return the layers of a normalisation of channels, and their constants; None for all others."""
    if not isinstance(layer, CoreLayer) or layer.op != _NORM or layer.inputs[0] not in tensors:
        return None
    return channel_norm(layer, _call_of(layer, network, tensors), network, tensors, machine)


def _call_of(layer: CoreLayer, network: Network, tensors: Mapping[str, TensorInfo]) -> Call:
    """Return the call of a layer for the first image."""
    return core_call(layer, {name: tensors[name].of_image for name in (layer.inputs[0], layer.output)},
                     network.constants)


def _on_datapath(layer: AnyLayer, network: Network, tensors: dict[str, TensorInfo], machine: Machine) -> list[AnyLayer]:
    """Return the layers that stand for operators along rows, and add their tensors; else ``layer``, with the reason."""
    if isinstance(layer, CoreLayer) and layer.op == _ARGMAX and layer.inputs[0] in tensors:
        found = class_map(layer, _call_of(layer, network, tensors), network, tensors, longest_row(machine))
        return [layer] if found is None else list(found)
    copies: tuple[list[Layer], list[Layer]] = [], []
    made = _row_layer(layer, network, tensors, machine, copies)
    return [*copies[0], made, *copies[1]]


def _row_layer(layer: AnyLayer, network: Network, tensors: dict[str, TensorInfo], machine: Machine,
               copies: tuple[list[Layer], list[Layer]]) -> AnyLayer:
    """Return the layer of rows, and add the ``copies`` before and behind it; else ``layer``, with the reason."""
    if not isinstance(layer, CoreLayer) or layer.op not in (_SOFTMAX, _NORM) or layer.inputs[0] not in tensors:
        return layer
    source, target = tensors[layer.inputs[0]], tensors[layer.output]
    call = _call_of(layer, network, tensors)
    rows = _rows_of(call)
    if reason := _too_long(rows.length, machine, norm=layer.op == _NORM):
        return replace(layer, reason=reason)
    function = _softmax(call) if layer.op == _SOFTMAX else _norm(call, rows)
    if isinstance(function, str):
        return replace(layer, reason=function)
    if rows.length * rows.count * source.images < _LEAST:
        return replace(layer, reason="so few elements cost the host core no more than layers of the datapath")
    names = _direct(rows, source, target) or _views((call, rows), layer, (source, target), network, tensors) \
        or _turned((call, rows), layer, (source, target), tensors, copies)
    if names is None:
        return replace(layer, reason="the row unit takes rows that lie in one run, and its axis is not the innermost")
    if isinstance(function, RowNorm) and function.length > rows.length:
        if tensors[names[0]].images > 1:
            return replace(layer, reason=f"the row unit normalises rows of {LEAST_NORM_ROW} elements and more, and "
                                         f"shorter ones of one image, and these have {rows.length}")
        names = _repeated(layer, names, function.length // rows.length, tensors, copies)
    return replace(_passing(layer, layer.name, names, tensors), exact=layer.exact, rows=function)


def _passing(layer: CoreLayer, name: str, names: tuple[str, str], tensors: Mapping[str, TensorInfo]) -> Layer:
    """Return the layer of a tensor that goes through the datapath as it is."""
    shape = tensors[names[0]].shape
    return Layer(name=name, kind="pass", onnx_nodes=layer.onnx_nodes, input=names[0], output=names[1],
                 in_shape=shape, conv_shape=shape, out_shape=shape, weights=None, bias=np.zeros(shape[0], np.int32),
                 groups=shape[0], requantisation=Requantisation(scale=np.ones(shape[0], np.float32), zero_point=0))


def _rows_of(call: Call) -> Rows:
    """Return the rows of a call, in the dims of its input."""
    if call.kernel == _SOFTMAX:
        return softmax.rows_of(call)
    return RowNormalisation(str(call.attrs["kind"])).rows_of(call)[0]


def _softmax(call: Call) -> RowSoftmax | str:
    """Return the numbers of a softmax from int8 to int8; a reason for others, or of too large levels."""
    reason = ("the row unit leaves levels of its input's type, each less than 1, and its result is float or of larger "
              "levels")
    if (call.inputs[0].dtype, call.output.dtype) != ("int8", "int8") or "y_scale" not in call.attrs:
        return reason
    try:
        return RowSoftmax.of(call.attrs["scale_value"], call.attrs["y_scale"], call.attrs["y_zero_point"])
    except ValueError:
        return reason


def _norm(call: Call, rows: Rows) -> RowNorm | str:
    """Return the numbers of a normalisation from int8 to int8 with a gain for each element of a row; else a reason."""
    attrs = call.attrs
    if (call.inputs[0].dtype, call.output.dtype) != ("int8", "int8"):
        return "the row unit leaves levels of its input's type"
    if attrs["kind"] not in ("LayerNormalization", "RMSNormalization") or "factors" in attrs:
        return "the row unit takes normalisations along the last axis whose variance is not quantised"
    if rows.length == 1:
        return f"the row unit normalises rows of {LEAST_NORM_ROW} elements and more, and these have {rows.length}"
    # A short row several times over has the same mean and deviation.
    gains, shifts = (np.tile(_as_they_lie(np.array(attrs[name], np.float64) / attrs["y_scale"], rows),
                             -(-LEAST_NORM_ROW // rows.length)) for name in ("gains", "shifts"))
    try:
        return RowNorm.of(gains.tolist(), shifts.tolist(), attrs.get("epsilon", 1e-5) / attrs["scale_value"]**2,
                          zero_point=attrs["y_zero_point"], low=max(-128, int(attrs.get("low", -128))),
                          about=attrs["zero_point_value"] if attrs["kind"] == "RMSNormalization" else None)
    except NormRefused as error:
        return f"the row unit needs {error}"


def _as_they_lie(values: np.ndarray, rows: Rows) -> np.ndarray:
    """Return numbers of a row's elements, given in ONNX's order, in that of memory: of an image, channels come last."""
    if len(rows.dims) != 4 or 1 not in rows.along:
        return values
    image = values.reshape([rows.dims[axis] for axis in rows.along])
    return np.moveaxis(image, rows.along.index(1), -1).ravel()


def _direct(rows: Rows, source: TensorInfo, target: TensorInfo) -> tuple[str, str] | None:
    """Return the tensors themselves where rows are the channels of their images."""
    along = tuple(axis for axis in rows.along if rows.dims[axis] != 1)
    if source.shape != target.shape or len(rows.dims) != 4 or along not in ((), (1,)) \
            or source.shape[0] != rows.length:
        return None
    return source.name, target.name


def _views(of: tuple[Call, Rows], layer: CoreLayer, ends: tuple[TensorInfo, TensorInfo], network: Network,
           tensors: dict[str, TensorInfo]) -> tuple[str, str] | None:
    """Return images over the same bytes whose pixels are the rows, which are added; None if there are none."""
    if any(info.images > 1 and not layout_of(info).whole for info in ends):
        return None
    (call, rows), images = of, ends[0].images
    operands = (call.inputs[0], call.output)
    length, along = merged(tuple(rows.dims[axis] for axis in rows.along), [_steps(each, rows.along)
                                                                           for each in operands])
    if length and (len(length) > 1 or along != ((1,), (1,))):
        return None
    counts, steps = merged(tuple(rows.dims[axis] for axis in rows.kept), [_steps(each, rows.kept)
                                                                          for each in operands])
    if images > 1:      # they lie one behind the other
        if len(counts) > 1:
            return None
        counts, steps = ((counts[0] if counts else 1) * images,), tuple(each or (rows.length,) for each in steps)
    if len(counts) == 1 and counts[0] > 1:
        width = next(size for size in range(min(_COLUMNS, counts[0]), 0, -1) if counts[0] % size == 0)
        counts, steps = (counts[0] // width, width), tuple((width * each[0], each[0]) for each in steps)
    if len(counts) > 2 or max(counts, default=1) > MAX_COLUMNS:
        return None
    height, width = counts if len(counts) == 2 else (1, 1)
    names = []
    for info, step, what in zip(ends, steps, ("levels", "results"), strict=True):
        row_step, pixel_step = step if len(step) == 2 else (rows.length, rows.length)
        names.append(network.unused_name(f"{layer.name}:{what}"))
        tensors[names[-1]] = _view(info, names[-1], (rows.length, height, width), (row_step, pixel_step))
    return names[0], names[1]


def _turned(of: tuple[Call, Rows], layer: CoreLayer, ends: tuple[TensorInfo, TensorInfo],
            tensors: dict[str, TensorInfo], copies: tuple[list[Layer], list[Layer]]) -> tuple[str, str] | None:
    """Return images of rows that copies of single bytes write and read, which are added; None where these are many."""
    call, rows = of
    if any(info.images > 1 for info in ends) or rows.count > MAX_COLUMNS:
        return None
    names = []
    for info, operand, made, what in zip(ends, (call.inputs[0], call.output), copies, ("levels", "results"),
                                         strict=True):
        along, (step,) = merged(tuple(rows.dims[axis] for axis in rows.along), [_steps(operand, rows.along)])
        kept = [(rows.dims[axis], operand.strides[axis]) for axis in rows.kept if rows.dims[axis] > 1]
        if len(along) > 1 or len(kept) > 2:
            return None
        # A copy has two axes, rows and pixels; each index of a third axis, the shorter one, has a copy of its own.
        (outer, outer_step), (inner, inner_step) = ([(1, 0)] * 2 + sorted(kept, key=lambda each: each[0]))[-2:]
        if outer > _MOST_COPIES or max(rows.length, inner) > MAX_COLUMNS:
            return None
        image = replace(info, name=f"{layer.name}:{what} in rows", shape=(rows.length, outer, inner), place=None,
                        dims=None, onnx_name=None, onnx_dtype=None, onnx_shape=None)
        tensors[image.name] = image
        names.append(image.name)
        shape = 1, inner, rows.length
        for index in range(outer):
            there = _view(info, f"{image.name}:{index} there", shape, (inner_step, step[0] if step else 1),
                          index * outer_step)
            here = _view(image, f"{image.name}:{index}", shape, (rows.length, 1), index * inner * rows.length)
            tensors.update({each.name: each for each in (there, here)})
            ends_of_copy = (there.name, here.name) if made is copies[0] else (here.name, there.name)
            made.append(_passing(layer, f"{layer.name}:{what}[{index}]", ends_of_copy, tensors))
    return names[0], names[1]


def _repeated(layer: CoreLayer, names: tuple[str, str], times: int, tensors: dict[str, TensorInfo],
              copies: tuple[list[Layer], list[Layer]]) -> tuple[str, str]:
    """Return images whose rows are those of ``names`` several times over, which are added, with their copies."""
    made = []
    for name, what in zip(names, ("levels", "results"), strict=True):
        length, height, width = tensors[name].shape
        size = times * length
        image = replace(tensors[name], name=f"{layer.name}:{what} repeated", shape=(size, height, width), place=None,
                        dims=None, onnx_name=None, onnx_dtype=None, onnx_shape=None)
        tensors[image.name] = image
        made.append(image.name)
        # Of the results one repetition is enough.
        for index in range(times if what == "levels" else 1):
            part = _view(image, f"{image.name}:{index}", (length, height, width), (width * size, size), index * length)
            tensors[part.name] = part
            if what == "levels":
                copies[0].append(_passing(layer, f"{layer.name}:{what}[{index}] repeated", (name, part.name), tensors))
            else:
                copies[1].insert(0, _passing(layer, f"{layer.name}:{what} once", (part.name, name), tensors))
    return made[0], made[1]


def _steps(operand: Operand, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(operand.strides[axis] for axis in axes)


def _view(info: TensorInfo, name: str, shape: Shape, steps: tuple[int, int], first: int = 0) -> TensorInfo:
    """Return an image of ``shape`` over the bytes of a tensor, from the ``first``; rows and pixels ``steps`` apart."""
    start = info.place
    place = Place(parent=info.name if start is None else start.parent,
                  offset=first + (0 if start is None else start.offset), row_step=steps[0], pixel_step=steps[1])
    return TensorInfo(name=name, shape=shape, scale=info.scale, zero_point=info.zero_point, unsigned=info.unsigned,
                      place=place)
