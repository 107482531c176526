"""Whether a model takes sizes of its open dimensions, as far as rules of shapes and its constants tell."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import onnx
from onnx import helper, numpy_helper

__all__ = ["constant_sizes", "first_that_suits", "misfit", "parts_before_slices", "skeleton", "suits",
           "too_large_window"]

_LARGE = 64
"""Elements from which a constant is data, not a shape."""

_MOST_SIZES, _LARGEST = 48, 1 << 16
_MOST_NODES, _LEAST_TRIES = 60_000, 60
"""Nodes whose shapes are told in a search, and tries of a large model."""

_WINDOWED = ("Conv", "QLinearConv", "ConvInteger", "MaxPool", "AveragePool", "QLinearAveragePool")
_WEIGHTS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
_RECURRENT = ("GRU", "LSTM", "RNN")

Place = tuple[str, int]
"""An input and one of its axes."""


def constant_sizes(proto: onnx.ModelProto) -> tuple[int, ...]:
    """Return the extents of a model's constants, and the numbers of its lists of sizes, as its nodes come."""
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    constants |= {node.output[0]: node.attribute[0].t for node in proto.graph.node
                  if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].HasField("t")}
    found: dict[int, None] = {}
    for name in itertools.chain.from_iterable(node.input for node in proto.graph.node):
        tensor = constants.get(name)
        if tensor is None:
            continue
        found.update(dict.fromkeys(tensor.dims))
        if tensor.data_type == onnx.TensorProto.INT64 and math.prod(tensor.dims) <= _LARGE:
            found.update(dict.fromkeys(numpy_helper.to_array(tensor).ravel().tolist()))
    return tuple(size for size in found if 1 < size <= _LARGEST)[:_MOST_SIZES]


def first_that_suits(model: onnx.ModelProto, keys: Mapping[Place, str],
                     candidates: Mapping[str, Sequence[int]]) -> dict[str, int] | None:
    """Return the first sizes by key that a skeleton takes, of all combinations, the last key's sizes first.

    None is returned if none suits of as many as are tried in a few seconds.
    """
    tries = max(_MOST_NODES // max(len(model.graph.node), 1), _LEAST_TRIES)
    for sizes in itertools.islice(_combinations(candidates), tries):
        if suits(model, keys, sizes):
            return sizes
    return None


def _combinations(candidates: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    for values in itertools.product(*candidates.values()):
        yield dict(zip(candidates, values, strict=True))


def skeleton(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with large constants as inputs of their types and shapes."""
    graph = proto.graph
    made = onnx.ModelProto(ir_version=max(proto.ir_version, 4))
    made.opset_import.extend(proto.opset_import)
    made.graph.node.extend(graph.node)
    large = {tensor.name for tensor in graph.initializer if math.prod(tensor.dims) > _LARGE}
    made.graph.initializer.extend(tensor for tensor in graph.initializer if tensor.name not in large)
    constants = {tensor.name for tensor in graph.initializer}
    made.graph.input.extend(value for value in graph.input if value.name not in constants)
    made.graph.input.extend(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
                            for tensor in graph.initializer if tensor.name in large)
    for value in graph.output:
        output = made.graph.output.add()
        output.name = value.name
        output.type.tensor_type.elem_type = value.type.tensor_type.elem_type
    return made


def suits(proto: onnx.ModelProto, keys: Mapping[Place, str], sizes: Mapping[str, int]) -> bool:
    """Tell whether shapes of a skeleton contradict each other nowhere with these sizes, as far as is told."""
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    at = {place: sizes[key] for place, key in keys.items()}
    for value in model.graph.input:
        for axis, extent in enumerate(value.type.tensor_type.shape.dim):
            if extent.dim_value <= 0:
                extent.dim_value = at.get((value.name, axis), 1)
    return misfit(model) is None


def misfit(proto: onnx.ModelProto) -> str | None:
    """Return the first node whose shapes do not go together, by its operator and name; None if none is found.

    ONNX's own inference ends the process where a Slice reads an extent below 0, as it gives a window that is larger
    than its input. So nodes up to such a Slice are looked at first.
    """
    for part in (*parts_before_slices(proto), proto):
        try:
            inferred = onnx.shape_inference.infer_shapes(part, strict_mode=True, data_prop=True)
        except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError) as error:
            return str(error)
        shapes = _shapes(inferred.graph)
        for node in part.graph.node:
            if not _agrees(node, shapes):
                return f"{node.op_type} {node.name!r}"
    return None


def parts_before_slices(proto: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """Yield the model up to each Slice that ONNX's own inference may end the process at; see `misfit`."""
    for end in _cuts(proto):
        part = onnx.ModelProto()
        part.CopyFrom(proto)
        del part.graph.node[end:]
        del part.graph.output[:]
        yield part


def too_large_window(graph: onnx.GraphProto) -> onnx.NodeProto | None:
    """Return the first window of an inferred graph that does not lie within its padded input."""
    windows = [node for node in graph.node if node.op_type in _WINDOWED]
    shapes = _shapes(graph) if windows else {}
    return next((node for node in windows if not _fits(node, shapes)), None)


def _shapes(graph: onnx.GraphProto) -> dict[str, list[int | None]]:
    """Return every shape that is known, None for open extents."""
    shapes: dict[str, list[int | None]] = {
        value.name: [extent.dim_value if extent.HasField("dim_value") else None
                     for extent in value.type.tensor_type.shape.dim]
        for value in (*graph.value_info, *graph.input, *graph.output) if value.type.tensor_type.HasField("shape")}
    return shapes | {tensor.name: list(tensor.dims) for tensor in graph.initializer}


def _cuts(proto: onnx.ModelProto) -> Iterator[int]:
    """Yield the places of Slices behind windows that make images smaller."""
    constants = {tensor.name: list(tensor.dims) for tensor in proto.graph.initializer}
    constants |= {value.name: [extent.dim_value for extent in value.type.tensor_type.shape.dim]
                  for value in proto.graph.input}
    smaller = False
    for index, node in enumerate(proto.graph.node):
        if node.op_type == "Slice" and smaller:
            smaller = False
            yield index
        elif node.op_type in _WINDOWED:
            kernel, pads, dilations = _window(node, constants)
            smaller |= any(dilations[axis] * (extent - 1) > pads[axis] + pads[axis + len(kernel)]
                           for axis, extent in enumerate(kernel))


def _window(node: onnx.NodeProto, shapes: Mapping[str, Sequence[int | None]],
            ) -> tuple[list[int], list[int], list[int]]:
    """Return kernel, pads and dilations of a window, by its weights if it does not state its kernel; or none."""
    stated = {each.name: list(each.ints) for each in node.attribute if each.ints}
    weights = shapes.get(node.input[_WEIGHTS[node.op_type]], ()) if node.op_type in _WEIGHTS else ()
    kernel = stated.get("kernel_shape") or [extent or 1 for extent in weights[2:]]
    if any(each.name == "auto_pad" and each.s not in (b"NOTSET", b"VALID") for each in node.attribute):
        kernel = []
    return kernel, stated.get("pads", [0] * 2 * len(kernel)), stated.get("dilations", [1] * len(kernel))


def _agrees(node: onnx.NodeProto, shapes: Mapping[str, Sequence[int | None]]) -> bool:
    """Tell whether a node's shapes agree where ONNX's rules do not look: elements, and inner extents of products."""
    read, made = shapes.get(node.input[0]) if node.input else None, shapes.get(node.output[0])
    if node.op_type in _WINDOWED and (not _fits(node, shapes) or any(
            extent is not None and extent < 1 for extent in made or ())):
        return False
    if node.op_type in ("Reshape", "Flatten") and read and made:
        counts = [math.prod(extent for extent in shape if extent is not None) for shape in (read, made)
                  if None not in shape]
        return len(set(counts)) <= 1
    if node.op_type in _RECURRENT and read and (weights := shapes.get(node.input[1])):
        return None in (read[-1], weights[-1]) or read[-1] == weights[-1]
    if node.op_type == "Gemm" and read and (weights := shapes.get(node.input[1])):
        flags = {a.name: a.i for a in node.attribute}
        inner = read[0 if flags.get("transA") else -1], weights[-1 if flags.get("transB") else 0]
        return None in inner or inner[0] == inner[1]
    return True


def _fits(node: onnx.NodeProto, shapes: Mapping[str, Sequence[int | None]]) -> bool:
    """Tell whether a window lies within its padded input, as far as its extents are known."""
    kernel, pads, dilations = _window(node, shapes)
    read = shapes.get(node.input[0])
    if any(each.name == "ceil_mode" and each.i for each in node.attribute):
        return True     # The last window may lie partly outside.
    if read is None or len(read) != len(kernel) + 2 or len(pads) != 2 * len(kernel) or len(dilations) != len(kernel):
        return True
    return all(size is None or size + pads[axis] + pads[axis + len(kernel)] > dilations[axis] * (kernel[axis] - 1)
               for axis, size in enumerate(read[2:]))
