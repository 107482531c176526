"""PRelu with a slope per channel: what is above zero by a table, plus what is below it times the slope.

Of each element one of the two is zero, so that their sum, all of one quantisation, rounds nothing.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_nodes import standing_for
from tilewright.compiler.graph.integer_operators import QAdd, QClamp
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxDequantizeLinear, OnnxRelu
from tilewright.compiler.graph.value_tables import TableError
from tilewright.compiler.passes.recognise.function_tables import table_node
from tilewright.compiler.passes.recognise.leave_to_core import dequantised
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup
from tilewright.compiler.passes.recognise.qdq.weights import affine_node

__all__ = ["rectified"]


def rectified(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]]:
    """Return the integer operators of a PRelu; ONNX Runtime computes it in float, and may be one level off.

    Raises
    ------
    UnsupportedNodeError
        If its slope is not a constant for each channel, or it is not over images or vectors.
    """
    node = group.node
    x, shape = group.data_input(node.inputs[0]), group.graph.tensors[node.inputs[0]].shape
    slope = _slope(group, node.inputs[1])
    if x.dtype != group.kind.dtype:
        raise group.refusal("its tensors are int8 and uint8 mixed", "quantise all activations to one type")
    if shape is None or len(shape) not in (2, 4) or shape[0] != 1 or slope is None or group.clamps \
            or slope.size not in (1, shape[1]) or slope.shape[-len(shape) + 1:] not in (
                (), (1,), shape[1:2], (1,) * len(shape[1:]), (shape[1], *(1,) * len(shape[2:]))):
        raise group.refusal("its slope is not a constant for each channel of one image", "give it one")
    image = (*shape, 1, 1)[:4]
    graph = quantisation.with_types(group.graph, x, group.kind)
    name = group.kind.name
    source = replace(x, name=f"{x.name}:image of {name}", shape=image) if len(shape) == 2 else x
    above, low, below, result = (replace(kind, name=f"{name}:{what}", shape=image) for kind, what in (
        (group.kind, "above"), (x, "low"), (group.kind, "below"), (group.kind, "rectified")))
    if len(shape) != 2:
        result = group.kind
    graph = graph.with_tensors(source, above, low, below, result)
    dequantise = group.graph.producer(node.inputs[0])
    assert dequantise is not None
    real, positive = f"{name}:real", f"{name}:positive"
    chain = (dequantise.with_(inputs=(source.name, *dequantise.inputs[1:]), output=real, onnx_nodes=()),
             Node(OnnxRelu(), (real,), positive),
             group.quantize.with_(inputs=(positive, *group.quantize.inputs[1:]), output=above.name,
                                  onnx_nodes=node.onnx_nodes))
    try:
        table = table_node(graph, chain, source, above)
    except TableError as error:
        raise group.refusal("ONNX Runtime does not compute it", "replace it") from error
    clamp = QClamp().of_type(x.dtype or "int8")
    clamped = standing_for(node, replace(clamp, high=int(x.parameters[1])), source.name).with_(output=low.name)
    slopes = np.broadcast_to(slope.reshape(-1), shape[1]).astype(np.float64)
    graph, product = affine_node(group, graph, (low, below), (slopes, np.zeros(shape[1])))
    add = standing_for(node, QAdd(exact=False).of_type(group.kind.dtype or "int8"), below.name, above.name)
    nodes = [table, clamped, product, add.with_(output=result.name)]
    if len(shape) == 2:
        nodes = [Node(QAlias(), (x.name,), source.name), *nodes, Node(QAlias(), (result.name,), name)]
    return graph, tuple(nodes)


def _slope(group: QdqGroup, name: str) -> np.ndarray | None:
    """Return a constant, or one that is quantised; None for what is computed."""
    source = group.graph.producer(name)
    if source is not None and isinstance(source.operator, OnnxDequantizeLinear) \
            and group.graph.all_constant(source.inputs):
        return dequantised(source, source.operator, group.graph.constants)
    return group.graph.constants.get(name)
