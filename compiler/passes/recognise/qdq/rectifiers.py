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
from tilewright.compiler.graph.onnx_operators import OnnxRelu
from tilewright.compiler.graph.value_tables import TableError
from tilewright.compiler.passes.recognise.element_images import image_of_elements, in_memory, period
from tilewright.compiler.passes.recognise.function_tables import table_node
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup
from tilewright.compiler.passes.recognise.qdq.weights import affine_node

__all__ = ["rectified"]


def rectified(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]]:
    """Return the integer operators of a PRelu; ONNX Runtime computes it in float, and may be one level off.

    Raises
    ------
    UnsupportedNodeError
        If its slope is not a constant, or it is over several images.
    """
    node = group.node
    x, shape = group.data_input(node.inputs[0]), group.graph.tensors[node.inputs[0]].shape
    slope = quantisation.fixed_numbers(group.graph, node.inputs[1])
    group.require_one_type(x)
    found = _image(shape, slope) if shape is not None and slope is not None and not group.clamps else None
    if found is None:
        raise group.refusal("its slope is no constant that suits one image", "give it one")
    image, slopes = found
    graph = quantisation.with_types(group.graph, x, group.kind)
    name = group.kind.name
    source = replace(x, name=f"{x.name}:image of {name}", shape=image) if shape != image else x
    above, low, below, result = (replace(kind, name=f"{name}:{what}", shape=image) for kind, what in (
        (group.kind, "above"), (x, "low"), (group.kind, "below"), (group.kind, "rectified")))
    if shape == image:
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
    graph, product = affine_node(group, graph, (low, below), (slopes, np.zeros(slopes.size)))
    add = standing_for(node, QAdd(exact=False).of_type(group.kind.dtype or "int8"), below.name, above.name)
    nodes = [table, clamped, product, add.with_(output=result.name)]
    if shape != image:
        nodes = [Node(QAlias(), (x.name,), source.name), *nodes, Node(QAlias(), (result.name,), name)]
    return graph, tuple(nodes)


def _image(shape: tuple[int, ...], slope: np.ndarray) -> tuple[tuple[int, ...], np.ndarray] | None:
    """Return the shape of an image over the same bytes, and a slope for each of its channels; None if there is none."""
    try:
        full = in_memory(slope, shape)
    except ValueError:
        return None
    if len(shape) == 4 and shape[0] == 1 and np.array_equal(full, np.resize(full[:shape[1]], full.shape)):
        return shape, full[:shape[1]].astype(np.float64)
    image = image_of_elements(full.size, period(full)) if full.size and (len(shape) != 4 or shape[0] == 1) else None
    return image and (image, full[:image[1]].astype(np.float64))
