"""A Resize to the nearest pixel of levels as Gather along each axis, where it does not repeat all pixels equally."""

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.move_nodes import move_node
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxGather, OnnxResize
from tilewright.compiler.kernels.execute import run_call
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import CoreLayer, TensorInfo
from tilewright.compiler.passes.recognise.equivalents.replacement import Replacement, is_of_levels

__all__ = ["nearest_by_gathers"]

_IMAGE_RANK = 4


def nearest_by_gathers(graph: Graph, node: Node) -> Graph | None:
    """Return the graph with such a Resize as Gathers of rows and of columns; None where it is not such."""
    assert isinstance(node.operator, OnnxResize)
    x = node.inputs[0]
    shape, target = graph.tensors[x].shape, graph.tensors[node.output].shape
    if node.operator.mode != "nearest" or shape is None or target is None or len(shape) != _IMAGE_RANK \
            or len(target) != _IMAGE_RANK or shape[:2] != target[:2] or not is_of_levels(graph, x) \
            or not graph.all_constant(each for each in node.inputs[1:] if each) or _repeats(graph, node):
        return None
    parts, new = Replacement(graph, node), list(shape)
    for axis in (2, 3):
        indices = _indices(graph, node, shape, target, axis)
        if indices is None:
            return None
        if np.array_equal(indices, np.arange(shape[axis])):
            continue
        new[axis] = indices.size
        x = parts.add(OnnxGather({"axis": axis}), (x, parts.constant("indices", indices)), tuple(new),
                      graph.tensors[node.inputs[0]].dtype or "float32")
    return parts.finished() if parts.nodes else None


def _repeats(graph: Graph, node: Node) -> bool:
    """Tell whether the datapath's addresses express the Resize as it is."""
    try:
        move_node(graph, node, node.inputs[:1])
    except UnsupportedNodeError:
        return False
    return True


def _indices(graph: Graph, node: Node, shape: tuple[int, ...], target: tuple[int, ...], axis: int,
             ) -> np.ndarray | None:
    """Return which row or column becomes each of the result, as the host core computes it; None if it refuses."""
    assert isinstance(node.operator, OnnxResize)
    attributes = {**node.operator.attributes, **({"opset": graph.opset} if graph.opset else {})}
    layer = CoreLayer(name=node.name, onnx_nodes=(), op=node.op, inputs=node.inputs, output=node.output,
                      attrs=attributes, reason="")
    shapes = {node.inputs[0]: shape, node.output: target}
    infos = {name: TensorInfo(name=name, shape=(int(np.prod(dims)), 1, 1), scale=np.float32(1), zero_point=0,
                              dtype="int32", dims=dims) for name, dims in shapes.items()}
    call = core_call(layer, infos, graph.constants)
    if KERNELS[node.op].refusal(call) is not None:
        return None
    places = np.moveaxis(np.broadcast_to(np.arange(shape[axis], dtype=np.int32), (*shape[:axis], *shape[axis + 1:],
                                                                                  shape[axis])), -1, axis)
    given = [np.ascontiguousarray(places), *(None for _ in node.inputs[1:])]
    result = run_call(call, [each if operand.present else None
                             for each, operand in zip(given, call.inputs, strict=True)])
    return np.moveaxis(result, axis, -1)[0, 0, 0].astype(np.int64)
