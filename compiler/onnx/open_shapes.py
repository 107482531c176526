"""Open dimensions of a model's inputs: all of them named at once, with sizes that its layers take."""

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import TensorProto

from tilewright.compiler.errors import UnsupportedModelError
from tilewright.compiler.onnx.given_shapes import open_shape, proposed_values
from tilewright.compiler.onnx.sizes.fitting import constant_sizes, first_that_suits, skeleton, suits

__all__ = ["BATCH_NOTE", "OpenShapesError", "has_open_batch", "open_shapes"]

BATCH_NOTE = "a batch of 1 is computed, which the model leaves open; --batch N computes N images at a time"
"""Of a model whose first dimension is open."""

_SYMBOL = re.compile(r"[A-Za-z_]\w*")
_SIZE_KEY = re.compile(r"(img|image|input)?_?(imgsz|size|shape|resolution)")
_LENGTH_KEY = re.compile(r"(max|seq|sequence|chunk|window|context)_?(len|length|size)|n_?frames")

_CLASSIFIED, _DENSE = (224, 256, 384, 320, 299, 192, 128, 96), (320, 640, 416, 512, 224, 256, 960, 128)
_TOKENS, _WAVES, _FRAMES = (128, 64, 256, 512, 32), (512, 16000, 1024, 1536, 480), (128, 100, 96, 64, 256, 300, 1000)
"""Usual sizes of pictures that are classified, of those that are answered densely, and of what has a length."""

_LINE = (48, 32, 64, 96), (320, 192, 160, 128, 256)
"""Usual heights and widths of pictures of a line of text, whose strides are larger along the height."""

_LINE_HEIGHT = 64
"""Rows up to which a picture of a fixed height and any width is one of a line of text."""

_ENDS_STRIDES = ("Gemm", "MatMul", "GlobalAveragePool", "Reshape", "Flatten", "ReduceMean", "Transpose")
"""Operators behind which axes are no longer those of the input."""

_MOST, _WIDEST = 96, 160
"""Multiples of the strides that are tried where no usual size suits, and sizes where the first axis is no batch."""

_TO_CONSUMERS = 12
"""Nodes from an input within which the first convolution is looked for."""


class OpenShapesError(UnsupportedModelError):
    """Inputs have open dimensions besides the batch.

    Attributes
    ----------
    options : tuple of str
        The options with which the same command runs.
    """

    def __init__(self, message: str, way_out: str, options: Sequence[str]) -> None:
        super().__init__(message, way_out)
        self.options = tuple(options)


@dataclass(frozen=True, slots=True)
class _Open:
    """An open dimension: the input, its place, and the key that it shares with all dimensions of the same size.

    ``zero`` tells that the model states a size of 0, with which nothing can be computed.
    """

    input: str
    axis: int
    key: str
    zero: bool


def has_open_batch(proto: onnx.ModelProto) -> bool:
    """Tell whether the first dimension of an input is open."""
    return any(dims and dims[0].dim_value <= 0 for _, dims in _inputs(proto))


def open_shapes(proto: onnx.ModelProto) -> OpenShapesError | None:
    """Return the error for a model with open dimensions besides the batch, proposing sizes; None if it has none.

    The sizes are, in this order: what the file's metadata state, usual sizes of such inputs, and multiples of what the
    strides divide; the first for which ONNX's rules of shapes find no contradiction.
    """
    inputs = _inputs(proto)
    batches = {_named(dims[0]) for _, dims in inputs if dims} - {""}
    found = [_Open(value.name, axis, _named(extent) or f"{value.name}[{axis}]",
                   extent.HasField("dim_value") and extent.dim_value == 0) for value, dims in inputs
             for axis, extent in enumerate(dims)
             if extent.dim_value <= 0 and axis > 0 and _named(extent) not in batches]
    if not found:
        return None
    sizes, why = _proposal(proto, found)
    options = list(_options(inputs, found, sizes))
    settings = proposed_values(proto)
    always = f", and the value that {' and '.join(map(repr, settings))} always has" if settings else ""
    options += [word for name, value in settings.items() for word in ("--input-value", f"{name}={value}")]
    names = {each.input for each in found}
    shapes = ", ".join(f"{value.name!r} ({open_shape(value.type.tensor_type)})" for value, _ in inputs
                       if value.name in names)
    plural = "s" if len(names) > 1 else ""
    return OpenShapesError(f"Model must have inputs of fixed shapes, but for the batch, and input{plural} {shapes} "
                           f"{'have' if plural else 'has'} open dimensions"
                           + (", as a size of 0 is" if any(each.zero for each in found) else ""),
                           f"give sizes {why}{always}, "
                           f"with {' '.join(map(shlex.quote, options))}", options)


def _inputs(proto: onnx.ModelProto) -> list[tuple[onnx.ValueInfoProto, Sequence[onnx.TensorShapeProto.Dimension]]]:
    constants = {tensor.name for tensor in proto.graph.initializer}
    return [(value, value.type.tensor_type.shape.dim) for value in proto.graph.input if value.name not in constants]


def _named(extent: onnx.TensorShapeProto.Dimension) -> str:
    """Return the symbol of an open dimension; empty if it has none, or only a mark such as ``?``."""
    symbol: str = extent.dim_param
    return symbol if re.search(r"\w", symbol) else ""


def _options(inputs: Iterable[tuple[onnx.ValueInfoProto, Sequence[onnx.TensorShapeProto.Dimension]]],
             found: Sequence[_Open], sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield ``--shape`` and its value for each symbol, or for each input where a dimension has no proper symbol."""
    names = {value.name for value, _ in inputs}
    if all(_SYMBOL.fullmatch(key) and key not in names for key in sizes):
        for key in sizes:
            yield from ("--shape", f"{key}={sizes[key]}")
        return
    for value, dims in inputs:
        if any(each.input == value.name for each in found):
            extents = [extent.dim_value if extent.dim_value > 0 else
                       sizes.get(_named(extent) or f"{value.name}[{axis}]", 1) for axis, extent in enumerate(dims)]
            yield from ("--shape", f"{value.name}={','.join(map(str, extents))}")


def _proposal(proto: onnx.ModelProto, found: Sequence[_Open]) -> tuple[dict[str, int], str]:
    """Return a size for each key, and where they are from, as the end of a sentence."""
    model, strides = skeleton(proto), _total_strides(proto)
    first = {each.key: each for each in reversed(found)}
    keys = list(dict.fromkeys(each.key for each in found))
    places = {(each.input, each.axis): each.key for each in found}
    usual = {key: _usual(proto, first[key], strides) for key in keys}
    stated = {key: _from_metadata(proto, first[key]) for key in keys}
    constants = constant_sizes(proto)
    known = {key: tuple(dict.fromkeys((*constants, *sizes))) for key, sizes in usual.items()}
    multiples = {key: sizes if len(sizes) == 1 else tuple(max(strides) * factor for factor in range(1, _MOST + 1))
                 for key, sizes in usual.items()}
    tried = [({key: stated[key] or usual[key] for key in keys}, "that the file's metadata state")] if any(
        stated.values()) else []
    tried += [(usual, f"that are usual for such inputs{', and multiples of the strides' if max(strides) > 1 else ''}"),
              (multiples, "that are the smallest its layers take")]
    for candidates, why in tried:
        for place in range(max(map(len, candidates.values()))):
            sizes = {key: values[min(place, len(values) - 1)] for key, values in candidates.items()}
            if suits(model, places, sizes):
                return sizes, why
    if (sized := first_that_suits(model, places, known)) is not None:
        return sized, "that its constants have"
    first_axes = _first_axes(proto)
    if any(key not in first for key in first_axes.values()):
        wide = {key: tuple(dict.fromkeys((*sizes, *range(2, _WIDEST)))) for key, sizes in known.items()}
        sized = first_that_suits(model, first_axes | places, dict.fromkeys(first_axes.values(), _FRAMES[:2]) | wide)
        if sized is not None:
            return sized, "that its layers take, with more than one along the first axis"
    return {key: usual[key][0] for key in keys}, "of your own, since no usual one suits its layers"


def _first_axes(proto: onnx.ModelProto) -> dict[tuple[str, int], str]:
    """Return the keys of open first axes of inputs, which may be rows or frames instead of a batch."""
    return {(value.name, 0): _named(dims[0]) or f"{value.name}[0]" for value, dims in _inputs(proto)
            if dims and dims[0].dim_value <= 0}


def _from_metadata(proto: onnx.ModelProto, each: _Open) -> tuple[int, ...]:
    """Return the size that the metadata state for an open dimension, if they do."""
    image = _picture_axes(proto, each.input)
    for entry in proto.metadata_props:
        numbers = [int(text) for text in re.findall(r"\d{1,5}", entry.value)] if len(entry.value) < 100 else []
        key = entry.key.lower().rpartition(".")[2]
        if image and each.axis in image and _SIZE_KEY.fullmatch(key) and len(numbers) in (1, 2, 4):
            if len(numbers) == 4:
                return (numbers[each.axis],)
            return (numbers[-1] if each.axis == image[1] else numbers[0],)
        if not image and len(numbers) == 1 and _LENGTH_KEY.fullmatch(key):
            return (numbers[0],)
    return ()


def _picture_axes(proto: onnx.ModelProto, name: str) -> tuple[int, int] | None:
    """Return the axes of height and width of an input, if it is a picture."""
    dims = next(dims for value, dims in _inputs(proto) if value.name == name)
    if len(dims) != 4:
        return None
    return (1, 2) if dims[3].dim_value in (1, 3, 4) and dims[1].dim_value <= 0 else (2, 3)


def _usual(proto: onnx.ModelProto, each: _Open, strides: tuple[int, int]) -> tuple[int, ...]:
    """Return usual sizes of an open dimension, those that the strides divide first."""
    value, dims = next(pair for pair in _inputs(proto) if pair[0].name == each.input)
    image = _picture_axes(proto, each.input)
    stride = max(strides)
    if image is None:
        sizes = _usual_length(value, dims, each.axis)
    elif each.axis in image:
        upright = each.axis == image[0]
        stride = strides[0 if upright else 1]
        other = dims[image[0] + image[1] - each.axis].dim_value
        if strides[0] > strides[1] or 0 < other <= _LINE_HEIGHT:
            sizes = _LINE[0 if upright else 1]
        elif other > 0:
            sizes = (other,)
        else:
            dense = any(len(output.type.tensor_type.shape.dim) > 2 for output in proto.graph.output)
            sizes = _DENSE if dense else _CLASSIFIED
    else:
        sizes = (_channels(proto, each.input) or 3,)
    return tuple(sorted(dict.fromkeys(sizes), key=lambda size: size % stride != 0)) if len(sizes) > 1 else sizes


def _usual_length(value: onnx.ValueInfoProto, dims: Sequence[onnx.TensorShapeProto.Dimension],
                  axis: int) -> tuple[int, ...]:
    if len(dims) == 3 and axis == 1 and dims[0].dim_value > 0 and dims[2].dim_value > 0:
        return (1,)     # the state of a recurrence: (layers, batch, units)
    if value.type.tensor_type.elem_type in (TensorProto.INT32, TensorProto.INT64):
        return _TOKENS
    return _WAVES if len(dims) <= 2 or (len(dims) == 3 and dims[1].dim_value == 1) else _FRAMES


def _channels(proto: onnx.ModelProto, name: str) -> int:
    """Return the channels that the first convolution behind an input takes; 0 if there is none near."""
    shapes = {tensor.name: list(tensor.dims) for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]]
    reached = {name}
    for node in itertools.islice((node for node in proto.graph.node), 4 * _TO_CONSUMERS):
        if not reached & set(node.input):
            continue
        if node.op_type in ("Conv", "ConvInteger", "QLinearConv"):
            weights = node.input[3] if node.op_type == "QLinearConv" else node.input[1]
            group = next((a.i for a in node.attribute if a.name == "group"), 1)
            if len(shapes.get(weights, ())) > 1:
                return int(shapes[weights][1] * group)
        reached.update(node.output)
    return 0


def _total_strides(proto: onnx.ModelProto) -> tuple[int, int]:
    """Return the products of the strides along height and width on the way on which they are largest, at most 128.

    Of what has one axis, both are its.
    """
    strides: dict[str, tuple[float, float]] = {}
    largest = (1.0, 1.0)
    for node in proto.graph.node:
        before = [strides.get(name, (1.0, 1.0)) for name in node.input] or [(1.0, 1.0)]
        stride = max(each[0] for each in before), max(each[1] for each in before)
        steps = next((list(a.ints) for a in node.attribute if a.name == "strides" and a.ints), [1])
        if node.op_type in ("Resize", "Upsample", "DepthToSpace"):
            stride = max(1.0, stride[0] / 2), max(1.0, stride[1] / 2)
        elif node.op_type in _ENDS_STRIDES:
            stride = 1.0, 1.0
        elif node.op_type == "ConvTranspose":
            stride = stride[0] / steps[0], stride[1] / steps[-1]
        else:
            stride = stride[0] * steps[0], stride[1] * steps[-1]
        strides.update(dict.fromkeys(node.output, stride))
        largest = max(largest[0], stride[0]), max(largest[1], stride[1])
    return int(min(largest[0], 128)), int(min(largest[1], 128))
