"""Convert float16 and bfloat16 models to float32, the only float type of the core and the quantiser."""

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.errors import BadModelError

__all__ = ["HALF_FLOATS", "has_half_floats", "widen"]

HALF_FLOATS = {TensorProto.FLOAT16: "float16", TensorProto.BFLOAT16: "bfloat16"}
"""ONNX's types that are widened, and their names."""

_FLOATING = {"AveragePool", "BatchNormalization", "Conv", "DequantizeLinear", "Gemm", "GlobalAveragePool", "Softmax"}
"""Operators whose result is a float always."""

_TYPES = ("to", "dtype", "output_dtype")
"""Attributes whose value is a type."""


def has_half_floats(proto: onnx.ModelProto) -> bool:
    """Tell whether an input, an output or a constant of the model is of a half float, or a node makes one."""
    return any(_halves(graph) for graph in _graphs(proto.graph))


def widen(proto: onnx.ModelProto) -> set[str]:
    """Make every half float of the model a float32, in place; return the names of the types that there were.

    Values stay the same, as float32 holds them all. A Cast that is then between float32 and float32 is an Identity.

    Raises
    ------
    BadModelError
        If a constant has not the values that its shape promises.
    """
    found: set[str] = set()
    for graph in _graphs(proto.graph):
        found |= _halves(graph)
        casts = [node for node in graph.node if node.op_type == "Cast" and _to(node) in HALF_FLOATS]
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.tensor_type.elem_type in HALF_FLOATS:
                value.type.tensor_type.elem_type = TensorProto.FLOAT
        for tensor in _tensors(graph):
            if tensor.data_type in HALF_FLOATS:
                tensor.CopyFrom(_widened(tensor))
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.name in _TYPES and attribute.i in HALF_FLOATS:
                    attribute.i = TensorProto.FLOAT
        _drop_casts(graph, {name for node in casts for name in node.output})
    return found


def _halves(graph: onnx.GraphProto) -> set[str]:
    """Return the names of the half floats that a graph has."""
    types = {value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    types |= {tensor.data_type for tensor in _tensors(graph)}
    types |= {attribute.i for node in graph.node for attribute in node.attribute if attribute.name in _TYPES}
    return {HALF_FLOATS[kind] for kind in types & HALF_FLOATS.keys()}


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield the graph and every graph in its nodes."""
    todo = [graph]
    while todo:
        yield (each := todo.pop())
        todo += [inner for node in each.node for attribute in node.attribute
                 for inner in (attribute.g, *attribute.graphs) if inner.node]


def _tensors(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    """Yield the constants of a graph, those in attributes among them."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def _widened(tensor: TensorProto) -> TensorProto:
    try:
        return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name)
    except (ValueError, TypeError) as error:
        raise BadModelError(f"Tensor {tensor.name!r} must have as many values as its shape "
                            f"{list(tensor.dims)!r} says") from error


def _to(node: onnx.NodeProto) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)


def _drop_casts(graph: onnx.GraphProto, rounded: set[str]) -> None:
    """Make each Cast from float32 to float32 an Identity: those whose input is known to be of that type."""
    floats = {value.name for value in (*graph.input, *graph.value_info)
              if value.type.tensor_type.elem_type == TensorProto.FLOAT} | rounded
    floats |= {tensor.name for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT}
    floats |= {name for node in graph.node if node.op_type in _FLOATING for name in node.output}
    for node in graph.node:
        if node.op_type == "Cast" and _to(node) == TensorProto.FLOAT and node.input[0] in floats:
            node.CopyFrom(helper.make_node("Identity", node.input, node.output, name=node.name))
