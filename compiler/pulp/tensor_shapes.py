"""Shapes of an integer network's tensors, by ONNX's rules; a requantisation of PULP's tools keeps that of its input."""

import onnx

__all__ = ["shapes_of"]


def shapes_of(proto: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Return the shapes that are known, by name; an extent that is open is 0."""
    known = onnx.ModelProto()
    known.CopyFrom(proto)
    for node in known.graph.node:
        if node.op_type == "RequantShift":
            node.op_type, node.domain = "Identity", ""
            del node.input[1:], node.attribute[:]
    try:
        known = onnx.shape_inference.infer_shapes(known)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError):
        return {}   # what contradicts itself is found by those who read it
    return {value.name: tuple(extent.dim_value for extent in value.type.tensor_type.shape.dim)
            for value in (*known.graph.input, *known.graph.value_info, *known.graph.output)
            if value.type.tensor_type.HasField("shape")}
