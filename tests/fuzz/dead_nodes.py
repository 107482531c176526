"""Models without what computes nothing that is asked for."""

import onnx
from onnx import helper

from tests.support.onnx_models import OPSETS


def without_dead_nodes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop nodes that no output needs, and constants that no node reads."""
    needed = {value.name for value in model.graph.output}
    kept = []
    for node in reversed(model.graph.node):
        if needed & set(node.output):
            needed |= set(node.input)
            kept.append(node)
    constants = [tensor for tensor in model.graph.initializer if tensor.name in needed]
    inputs = [value for value in model.graph.input if value.name in needed]
    graph = helper.make_graph(kept[::-1], model.graph.name, inputs, list(model.graph.output), constants)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=8)
