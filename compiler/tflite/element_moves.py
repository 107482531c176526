"""Operators of TensorFlow Lite that only move elements, on levels and floats alike, and the layouts around them."""

import math
from collections.abc import Sequence

import numpy as np

from tilewright.compiler.tflite.graph_builder import FIRST, LAST, GraphBuilder, constant_of
from tilewright.compiler.tflite.stored.tensors import TfliteOperator

__all__ = [
    "concatenate", "depth_to_space", "gather", "in_file_layout", "inner_axis", "mirror_pad", "pack", "pad",
    "put_in_file_layout", "reshape", "resize_nearest", "reverse", "space_to_depth", "split", "split_by_sizes",
    "strided_slice", "sub_slice", "tile", "transpose", "unpack",
]

_AGAIN = "convert the model again"
_SYMMETRIC = 1
_LARGEST = 1 << 31


def inner_axis(operator: TfliteOperator, axis: int, rank: int) -> int:
    """Return the place of an axis of the file in a tensor with channels first."""
    if not -rank <= axis < rank:
        raise operator.refusal(f"its axis {axis} is none of {rank}", _AGAIN)
    return FIRST.index(axis % rank) if rank == 4 else axis % rank


def _lies_alike(shape: Sequence[int]) -> bool:
    """Tell whether the elements of an image lie alike with channels first and last."""
    return len(shape) != 4 or shape[3] == 1 or shape[1] * shape[2] == 1


def in_file_layout(builder: GraphBuilder, index: int) -> str:
    """Return a tensor's content with its elements in the file's order, though maybe of another shape."""
    name, tensor = builder.stored(index), builder.tensor(index)
    return name if _lies_alike(tensor.shape) else builder.node("Transpose", [name], like=tensor.name, perm=LAST)


def put_in_file_layout(builder: GraphBuilder, index: int, name: str) -> None:
    """Write a tensor whose elements lie in ``name`` in the file's order, of any shape."""
    tensor = builder.tensor(index)
    if _lies_alike(tensor.shape):
        shape = [tensor.shape[axis] for axis in FIRST] if len(tensor.shape) == 4 else tensor.shape
        builder.put(index, "Reshape", [name, _shape(builder, shape, tensor.name)])
    else:
        turned = builder.node("Reshape", [name, _shape(builder, tensor.shape, tensor.name)], like=tensor.name)
        builder.put(index, "Transpose", [turned], perm=FIRST)


def _shape(builder: GraphBuilder, shape: Sequence[int], hint: str) -> str:
    return builder.constant(np.array(shape, np.int64), f"{hint}:shape")


def reshape(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a RESHAPE, SQUEEZE or EXPAND_DIMS, whose result has the shape that the file states."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if math.prod(x.shape) != math.prod(y.shape):
        raise operator.refusal(f"its input has the shape {list(x.shape)} and its output {list(y.shape)}", _AGAIN)
    put_in_file_layout(builder, operator.outputs[0], in_file_layout(builder, operator.inputs[0]))


def transpose(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a TRANSPOSE by a constant permutation."""
    order = [int(each) for each in constant_of(builder, operator, 1, "permutation").reshape(-1)]
    rank = len(builder.tensor(operator.inputs[0]).shape)
    if sorted(order) != list(range(rank)):
        raise operator.refusal(f"its permutation is {order} for {rank} axes", _AGAIN)
    if rank == 4:
        order = [FIRST.index(order[axis]) for axis in FIRST]
    builder.put(operator.outputs[0], "Transpose", [builder.stored(operator.inputs[0])], perm=order)


def concatenate(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a CONCATENATION: a move where all have one quantisation, which LiteRT demands of int8."""
    y = builder.tensor(operator.outputs[0])
    axis = inner_axis(operator, int(operator.options["Axis"]), len(y.shape))
    if operator.options["FusedActivationFunction"]:
        raise operator.refusal("it ends with an activation", "convert the model with the activation before it")
    inputs = [builder.tensor(index) for index in operator.inputs]
    if any(each.is_levels != y.is_levels or (y.is_levels and (each.scale, each.zero, each.dtype) != (
            y.scale, y.zero, y.dtype)) for each in inputs):
        raise operator.refusal("its inputs and its output have different scales or zero points",
                               "convert the model with the converter's default, int8, which gives them one")
    builder.put(operator.outputs[0], "Concat", [builder.stored(index) for index in operator.inputs], axis=axis)


def _paddings(builder: GraphBuilder, operator: TfliteOperator) -> np.ndarray:
    """Return how many elements come before and behind, for each axis of the model's own layout."""
    shape = builder.tensor(operator.inputs[0]).shape
    values = constant_of(builder, operator, 1, "padding")
    if values.shape != (len(shape), 2) or values.min(initial=0) < 0 or values.max(initial=0) >= _LARGEST:
        raise operator.refusal(f"its padding has the shape {list(values.shape)} for {len(shape)} axes", _AGAIN)
    return values[list(FIRST)] if len(shape) == 4 else values


def pad(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a PAD by the level of 0, or a PADV2 by a constant."""
    x = builder.tensor(operator.inputs[0])
    value = np.array(x.zero if x.is_levels else 0, x.dtype)
    if operator.has(2):
        value = constant_of(builder, operator, 2, "value").astype(x.dtype).reshape(-1)
        if value.size != 1:
            raise operator.refusal(f"it pads with {value.size} values", _AGAIN)
    paddings = _paddings(builder, operator).T.reshape(-1).astype(np.int64)
    builder.put(operator.outputs[0], "Pad", [builder.stored(operator.inputs[0]),
                                             builder.constant(paddings, f"{x.name}:pads"),
                                             builder.constant(value.reshape(()), f"{x.name}:value")])


def mirror_pad(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a MIRROR_PAD, which repeats the edge itself if it is symmetric."""
    index, paddings = operator.inputs[0], _paddings(builder, operator)
    x = builder.tensor(index)
    symmetric = operator.options["Mode"] == _SYMMETRIC
    shape = [x.shape[axis] for axis in FIRST] if len(x.shape) == 4 else x.shape
    if any(max(pair) > extent - (not symmetric) for pair, extent in zip(paddings.tolist(), shape, strict=True)):
        raise operator.refusal(f"its padding {paddings.tolist()} is larger than its input {list(x.shape)}", _AGAIN)
    if not symmetric or paddings.max() <= 1:
        pads = builder.constant(paddings.T.reshape(-1).astype(np.int64), f"{x.name}:pads")
        builder.put(operator.outputs[0], "Pad", [builder.stored(index), pads],
                    mode="edge" if symmetric else "reflect")
        return
    rows = {axis: np.pad(np.arange(shape[axis]), pair, "symmetric") for axis, pair in enumerate(paddings.tolist())
            if any(pair)}
    _gather_along(builder, operator, rows)


def _gather_along(builder: GraphBuilder, operator: TfliteOperator, rows: dict[int, np.ndarray]) -> None:
    """Write an operator's output as elements of its input, by their indices along some axes of the model's layout."""
    name, last = builder.stored(operator.inputs[0]), max(rows)
    for axis, indices in sorted(rows.items()):
        inputs = [name, builder.constant(indices.astype(np.int64), f"{name}:indices")]
        if axis == last:
            builder.put(operator.outputs[0], "Gather", inputs, axis=axis)
        else:
            name = builder.node("Gather", inputs, like=name, axis=axis)


def resize_nearest(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a RESIZE_NEAREST_NEIGHBOR, by the pixel that TensorFlow Lite takes for each.

    Source: ``GetNearestNeighbor`` in TensorFlow Lite's ``kernels/internal/reference/resize_nearest_neighbor.h``.
    """
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if len(x.shape) != 4 or len(y.shape) != 4 or 0 in (*x.shape, *y.shape):
        raise operator.refusal(f"its input and output have the shapes {list(x.shape)} and {list(y.shape)}", _AGAIN)
    rows = [_nearest(operator, x.shape[axis], y.shape[axis]) for axis in (1, 2)]
    factors = [y.shape[axis] // x.shape[axis] for axis in (1, 2)]
    if all(np.array_equal(found, np.arange(found.size) // max(factor, 1))
           for found, factor in zip(rows, factors, strict=True)):
        scales = builder.constant(np.array([1, 1, *factors], np.float32), f"{y.name}:scales")
        builder.put(operator.outputs[0], "Resize", [builder.stored(operator.inputs[0]), "", scales], mode="nearest",
                    coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    else:
        _gather_along(builder, operator, {2: rows[0], 3: rows[1]})


def _nearest(operator: TfliteOperator, before: int, behind: int) -> np.ndarray:
    aligned, centred = bool(operator.options["AlignCorners"]), bool(operator.options["HalfPixelCenters"])
    scale = np.float32(before - 1) / np.float32(behind - 1) if aligned and behind > 1 else \
        np.float32(before) / np.float32(behind)
    places = (np.arange(behind, dtype=np.float32) + np.float32(0.5 if centred else 0)) * scale
    found = np.floor(places + np.float32(0.5)) if aligned else np.floor(places)
    return np.clip(found, 0, before - 1).astype(np.int64)


def strided_slice(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a STRIDED_SLICE with constant bounds; axes that it shrinks are gone from the file's shape."""
    x, options = builder.tensor(operator.inputs[0]), operator.options
    if options["EllipsisMask"] or options["NewAxisMask"] or options["Offset"]:
        raise operator.refusal("it has an ellipsis, new axes or offsets", "convert the model with plain slices")
    begins, ends, strides = (constant_of(builder, operator, position, what).reshape(-1).tolist()
                             for position, what in ((1, "begin"), (2, "end"), (3, "stride")))
    if not len(begins) == len(ends) == len(strides) <= len(x.shape) or 0 in strides:
        raise operator.refusal(f"its bounds are {begins}, {ends} and {strides}", _AGAIN)
    bounds = []
    for axis, (begin, end, stride) in enumerate(zip(begins, ends, strides, strict=True)):
        extent = x.shape[axis]
        if options["ShrinkAxisMask"] >> axis & 1:
            begin = begin % extent if -extent <= begin < extent else begin
            bounds.append((axis, begin, begin + 1, 1))
            continue
        taken = range(extent)[slice(None if options["BeginMask"] >> axis & 1 else begin,
                                    None if options["EndMask"] >> axis & 1 else end, stride)]
        bounds.append((axis, taken.start, taken.stop if taken.stop >= 0 else -_LARGEST, stride))
    _sliced(builder, operator, bounds)


def reverse(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a REVERSE_V2 along constant axes."""
    rank = len(builder.tensor(operator.inputs[0]).shape)
    axes = constant_of(builder, operator, 1, "axis").reshape(-1).tolist()
    for axis in axes:
        inner_axis(operator, axis, rank)
    _sliced(builder, operator, [(axis, -1, -_LARGEST, -1) for axis in sorted({axis % rank for axis in axes})])


def tile(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a TILE by constant counts."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    counts = constant_of(builder, operator, 1, "count").reshape(-1)
    if counts.size != len(x.shape) or [extent * int(count) for extent, count in zip(x.shape, counts, strict=True)] \
            != list(y.shape):
        raise operator.refusal(f"its counts are {counts.tolist()} for {list(x.shape)}", _AGAIN)
    inner = counts[list(FIRST)] if len(x.shape) == 4 else counts
    builder.put(operator.outputs[0], "Tile", [builder.stored(operator.inputs[0]),
                                              builder.constant(inner.astype(np.int64), f"{y.name}:counts")])


def sub_slice(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a SLICE with constant bounds; a size of -1 reaches the end."""
    x = builder.tensor(operator.inputs[0])
    begins, sizes = (constant_of(builder, operator, position, what).reshape(-1).tolist()
                     for position, what in ((1, "begin"), (2, "size")))
    if not len(begins) == len(sizes) == len(x.shape):
        raise operator.refusal(f"its bounds are {begins} and {sizes}", _AGAIN)
    _sliced(builder, operator, [(axis, begin, x.shape[axis] if size < 0 else begin + size, 1)
                                for axis, (begin, size) in enumerate(zip(begins, sizes, strict=True))])


def _sliced(builder: GraphBuilder, operator: TfliteOperator, bounds: list[tuple[int, int, int, int]]) -> None:
    """Write the elements within (axis, start, stop, step) of the file's axes; a whole axis is none."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    rank = len(x.shape)
    bounds = [each for each in bounds if each[1:] != (0, x.shape[each[0]], 1)]
    if len(y.shape) != rank:
        name = builder.stored(operator.inputs[0])
        sliced = _slice(builder, operator, name, bounds, "") if bounds else name
        turned = builder.node("Transpose", [sliced], like=y.name, perm=LAST) if rank == 4 else sliced
        put_in_file_layout(builder, operator.outputs[0], turned)
    elif bounds:
        output = builder.target(operator.outputs[0])
        builder.write(operator.outputs[0],
                      _slice(builder, operator, builder.stored(operator.inputs[0]), bounds, output))
    else:
        builder.put(operator.outputs[0], "Identity", [builder.stored(operator.inputs[0])])


def _slice(builder: GraphBuilder, operator: TfliteOperator, name: str, bounds: list[tuple[int, int, int, int]],
           output: str) -> str:
    y, rank = builder.tensor(operator.outputs[0]), len(builder.tensor(operator.inputs[0]).shape)
    inner = [(inner_axis(operator, axis, rank), start, stop, step) for axis, start, stop, step in bounds]
    lists = [np.array(each, np.int64) for each in zip(*inner, strict=True)]
    axes, starts, stops, steps = (builder.constant(each, f"{y.name}:bounds") for each in lists)
    return builder.node("Slice", [name, starts, stops, axes, steps], like=y.name, output=output)


def split(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a SPLIT into equal parts, the axis of which comes first."""
    axis = int(constant_of(builder, operator, 0, "axis").reshape(-1)[0])
    _split(builder, operator, 1, axis)


def split_by_sizes(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a SPLIT_V: its input, its sizes, its axis."""
    axis = int(constant_of(builder, operator, 2, "axis").reshape(-1)[0])
    _split(builder, operator, 0, axis)


def _split(builder: GraphBuilder, operator: TfliteOperator, data: int, axis: int) -> None:
    x = builder.tensor(operator.inputs[data])
    inner_axis(operator, axis, len(x.shape))
    sizes = [builder.tensor(index).shape[axis % len(x.shape)] if len(builder.tensor(index).shape) == len(x.shape)
             else -1 for index in operator.outputs]
    if sum(sizes) != x.shape[axis % len(x.shape)] or min(sizes) < 0:
        raise operator.refusal(f"its parts have {sizes} of {x.shape[axis % len(x.shape)]} elements", _AGAIN)
    targets = [builder.target(index) for index in operator.outputs]
    builder.split(builder.stored(operator.inputs[data]), inner_axis(operator, axis, len(x.shape)), sizes, targets)
    for index, target in zip(operator.outputs, targets, strict=True):
        builder.write(index, target)


def pack(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a PACK: tensors along a new axis."""
    y, axis = builder.tensor(operator.outputs[0]), int(operator.options["Axis"])
    inner_axis(operator, axis, len(y.shape))
    axis %= len(y.shape)
    shape = [1 if each == axis else extent for each, extent in enumerate(y.shape)]
    if any(math.prod(builder.tensor(index).shape) != math.prod(shape) for index in operator.inputs):
        raise operator.refusal(f"its inputs do not make up {list(y.shape)}", _AGAIN)
    parts = [builder.node("Reshape", [in_file_layout(builder, index), _shape(builder, shape, y.name)], like=y.name)
             for index in operator.inputs]
    put_in_file_layout(builder, operator.outputs[0], builder.node("Concat", parts, like=y.name, axis=axis))


def unpack(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add an UNPACK: the slices along an axis, which is gone then."""
    x, axis = builder.tensor(operator.inputs[0]), int(operator.options["Axis"])
    inner_axis(operator, axis, len(x.shape))
    axis %= len(x.shape)
    if x.shape[axis] != len(operator.outputs):
        raise operator.refusal(f"it makes {len(operator.outputs)} tensors of {list(x.shape)}", _AGAIN)
    name = builder.node("Reshape", [in_file_layout(builder, operator.inputs[0]), _shape(builder, x.shape, x.name)],
                        like=x.name)
    parts = [builder.fresh(f"{x.name}:part") for _ in operator.outputs]
    builder.split(name, axis, [1] * len(parts), parts)
    for index, part in zip(operator.outputs, parts, strict=True):
        put_in_file_layout(builder, index, part)


def gather(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a GATHER by constant indices of one axis."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    indices = constant_of(builder, operator, 1, "index")
    axis = inner_axis(operator, int(operator.options["Axis"]), len(x.shape))
    if operator.options["BatchDims"] or indices.ndim != 1 or len(x.shape) != len(y.shape):
        raise operator.refusal(f"its indices have the shape {list(indices.shape)}", "replace it by slices")
    builder.put(operator.outputs[0], "Gather", [
        builder.stored(operator.inputs[0]), builder.constant(indices.astype(np.int64), f"{y.name}:indices")], axis=axis)


def depth_to_space(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a DEPTH_TO_SPACE, whose channels are blocks of pixels."""
    builder.put(operator.outputs[0], "DepthToSpace", [builder.stored(operator.inputs[0])],
                blocksize=_block(builder, operator), mode="DCR")


def space_to_depth(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a SPACE_TO_DEPTH."""
    builder.put(operator.outputs[0], "SpaceToDepth", [builder.stored(operator.inputs[0])],
                blocksize=_block(builder, operator))


def _block(builder: GraphBuilder, operator: TfliteOperator) -> int:
    block = int(operator.options["BlockSize"])
    if block < 1 or len(builder.tensor(operator.inputs[0]).shape) != 4:
        raise operator.refusal(f"its block is {block} of {list(builder.tensor(operator.inputs[0]).shape)}", _AGAIN)
    return block
