"""Inputs of whole numbers, such as tokens or bytes: which values a quick look gives them, and what they choose from."""

import math
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

__all__ = ["MOST_UNBOUND", "table_ranges", "whole_bounds"]

MOST_UNBOUND = 128
"""Values that an input of whole numbers has where nothing in the model bounds them: letters of ASCII."""

_SAME_VALUE = frozenset({"Cast", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose",
                         "Unsqueeze"})
"""Operators behind which the numbers of a tensor are still those."""


def whole_bounds(proto: onnx.ModelProto) -> dict[str, int]:
    """Return for each input of whole numbers the value below which all of its numbers are to be.

    These are the rows of the smallest table that they choose from (Gather); 2 for a mask, which its name tells; else
    `MOST_UNBOUND`.
    """
    shapes: dict[str, list[int]] = {tensor.name: list(tensor.dims) for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        if node.op_type in ("DequantizeLinear", "Identity") and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]]
    return {value.name: 2 if "mask" in value.name.lower() else _bound(value.name, proto.graph, shapes)
            for value in proto.graph.input if value.name not in shapes
            and value.type.tensor_type.elem_type in (TensorProto.INT32, TensorProto.INT64)
            and math.prod(extent.dim_value for extent in value.type.tensor_type.shape.dim) > 1}


def _bound(name: str, graph: onnx.GraphProto, shapes: Mapping[str, list[int]]) -> int:
    """Return the rows of the smallest table that a tensor's numbers choose from."""
    same, least = {name}, MOST_UNBOUND
    found = []
    for node in graph.node:
        if node.op_type in _SAME_VALUE and node.input[0] in same:
            same.update(node.output)
        if node.op_type == "Gather" and node.input[1] in same and shapes.get(node.input[0]):
            axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
            found.append(shapes[node.input[0]][axis])
    return max(1, min(found, default=least))


def table_ranges(proto: onnx.ModelProto) -> dict[str, list[dict[str, object]]]:
    """Return the quantiser's override for each tensor of rows that computed numbers choose from a constant of floats.

    Its range is that of all rows, for samples hardly choose each of them.
    """
    tables = {tensor.name: tensor for tensor in proto.graph.initializer if tensor.data_type == TensorProto.FLOAT}
    constants = {tensor.name for tensor in proto.graph.initializer}
    found: dict[str, list[dict[str, object]]] = {}
    for node in proto.graph.node:
        if node.op_type == "Gather" and node.input[0] in tables and node.input[1] not in constants:
            rows = numpy_helper.to_array(tables[node.input[0]])
            found[node.output[0]] = [{"rmin": np.float32(min(rows.min(initial=0), 0)),
                                      "rmax": np.float32(max(rows.max(initial=0), 0))}]
    return found
