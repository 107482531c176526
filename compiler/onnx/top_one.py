"""The largest or least element of each row, asked for by TopK: a ReduceMax and an ArgMax, which there are."""

import onnx
from onnx import helper, numpy_helper

__all__ = ["with_extremes"]

_AXES_ARE_AN_INPUT = 18
"""From which opset on reductions have them so."""


def with_extremes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Replace each TopK of one element by what makes those of its outputs that are used, in place.

    Both take the first of equal elements.
    """
    graph = proto.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    opset = next((each.version for each in proto.opset_import if each.domain in ("", "ai.onnx")), 1)
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        count = constants.get(node.input[1]) if node.op_type == "TopK" and len(node.input) == 2 else None
        if count is None or numpy_helper.to_array(count).ravel().tolist() != [1]:
            nodes.append(node)
            continue
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        axis, kind = attributes.get("axis", -1), "Max" if attributes.get("largest", 1) else "Min"
        values, places = node.output
        name = node.name or places or values
        if values in read:
            inputs, axes = [node.input[0]], {"axes": [axis]}
            if opset >= _AXES_ARE_AN_INPUT:
                inputs, axes = [*inputs, f"{values}:axes"], {}
                graph.initializer.append(helper.make_tensor(inputs[1], onnx.TensorProto.INT64, [1], [axis]))
            nodes.append(helper.make_node(f"Reduce{kind}", inputs, [values], f"{name}:values", keepdims=1, **axes))
        if places in read:
            nodes.append(helper.make_node(f"Arg{kind}", [node.input[0]], [places], f"{name}:places", axis=axis,
                                          keepdims=1))
    if len(nodes) != len(graph.node) or any(node.op_type == "TopK" for node in graph.node):
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)
    return proto
