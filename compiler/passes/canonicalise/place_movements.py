"""Turn movements of any kind and rank into places: the source of each byte decides which copies remain.

Transposes, reshapes, slices, concatenations, gathers by constants, tiles and their kin, in any arrangement, are one
list of where the bytes come from. If the list is the bytes in order, nothing moves; if it is an order of channels, it
is one of weights; else it is boxes, each of which addresses tell, and which are stored where they belong by whoever
computes them, or are copied by the datapath.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import QProduct
from tilewright.compiler.graph.move_operators import QAlias, QAssemble, QConcat, QPiece
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxConcat, OnnxMoving, OnnxOperator
from tilewright.compiler.graph.permute_channels import permuted
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.kernels.execute import run_call
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import ByteSteps, CoreLayer, TensorInfo
from tilewright.compiler.passes.canonicalise.moved_boxes import MovedBox, boxes_of

__all__ = ["PlaceMovements"]

_MAX_ELEMENTS = 2**22
_MAX_BOXES = 96
_IMAGE_RANK = 4
_SHORT_RUN = 8
"""Bytes below which a run of channels is better computed than copied."""


class PlaceMovements(Pass):
    """Replace movements of integers that are left to the host core by QAlias, QPiece, QAssemble, or ``permuted``."""

    def apply(self, graph: Graph) -> Graph:
        region = {node.output: node for node in graph.nodes if _is_movement(graph, node)}
        traced = dict(region)
        for name, node in region.items():
            outside = any(reader.output not in region for reader in graph.readers(name))
            if outside or name in graph.outputs:
                found = _origins(graph, traced, node)
                placed = graph if found is None else _placed(graph, node, found)
                if found is not None and any(graph.producer(source.name) is not None and placed.producer(source.name)
                                             is None for source in found.sources):
                    del traced[name]    # made at once, from no source: other movements find their bytes in it
                graph = placed
        return graph.without_unread(lambda node: node.output not in region)


def _is_movement(graph: Graph, node: Node) -> bool:
    if not isinstance(node.operator, OnnxMoving) or node.op not in KERNELS:
        return False
    data = _data(node)
    tensors = [graph.tensors.get(name) for name in (*data, node.output)]
    return graph.all_constant(name for name in node.inputs if name not in data) and all(
        tensor is not None and tensor.quantised and tensor.dtype == "int8" and tensor.shape is not None
        and 0 < math.prod(tensor.shape) <= _MAX_ELEMENTS for tensor in tensors)


def _data(node: Node) -> tuple[str, ...]:
    return node.inputs if isinstance(node.operator, OnnxConcat) else node.inputs[:1]


@dataclass(frozen=True, slots=True)
class _Origins:
    """Of each byte of a result, in memory, the byte that it is.

    Those of source number k are counted from ``bases[k]`` on, so that the last of one and the first of the next are no
    neighbours. ``names`` are those of ONNX's nodes.
    """

    sources: tuple[Tensor, ...]
    bases: tuple[int, ...]
    places: np.ndarray
    names: tuple[str, ...]


def _origins(graph: Graph, region: dict[str, Node], last: Node) -> _Origins | None:
    """Return where the bytes of what ``last`` writes come from."""
    path = _path(region, last)
    sources = list(dict.fromkeys(name for node in path for name in _data(node) if name not in region))
    if not all(_lies_as_known(graph.tensors[name]) for name in (*sources, last.output)):
        return None
    known: dict[str, np.ndarray] = {}
    bases, base = [], 0
    for name in sources:
        shape = graph.tensors[name].shape or ()
        known[name] = _as_onnx(np.arange(base, base + math.prod(shape), dtype=np.int32), shape)
        bases.append(base)
        base += math.prod(shape) + 1
    for node in path:
        result = _computed(graph, node, known)
        if result is None:
            return None
        known[node.output] = result
    places = _in_memory(known[last.output]).astype(np.int64)
    names = tuple(dict.fromkeys(name for node in path for name in node.onnx_nodes))
    return _Origins(tuple(graph.tensors[name] for name in sources), tuple(bases), places, names)


def _path(region: dict[str, Node], last: Node) -> list[Node]:
    """Return the movements that ``last`` is made by, in order."""
    needed: set[str] = set()
    waiting = [last.output]
    while waiting:
        name = waiting.pop()
        if name in region and name not in needed:
            needed.add(name)
            waiting += _data(region[name])
    return [node for name, node in region.items() if name in needed]


def _lies_as_known(tensor: Tensor) -> bool:
    """Tell whether a tensor lies row by row, or as NHWC; batches of images do neither."""
    shape = tensor.shape or ()
    return len(shape) != 4 or shape[0] == 1


def _as_onnx(elements: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return elements in the order in which they lie as an array of ONNX's ``shape``."""
    if len(shape) != 4:
        return elements.reshape(shape)
    return elements.reshape(shape[0], *shape[2:], shape[1]).transpose(0, 3, 1, 2)


def _in_memory(array: np.ndarray) -> np.ndarray:
    return array.transpose(0, 2, 3, 1).ravel() if array.ndim == 4 else array.ravel()


def _computed(graph: Graph, node: Node, known: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return what ``node`` makes of arrays of places; None if the host core would not compute it either."""
    operator = node.operator
    assert isinstance(operator, OnnxOperator)
    attributes = {**operator.attributes, **({"opset": graph.opset} if graph.opset else {})}
    layer = CoreLayer(name=node.name, onnx_nodes=(), op=node.op, inputs=node.inputs, output=node.output,
                      attrs=attributes, reason="")
    shapes = {name: known[name].shape for name in _data(node)} | {node.output: graph.tensors[node.output].shape or ()}
    infos = {name: TensorInfo(name=name, shape=(math.prod(shape), 1, 1), scale=np.float32(1), zero_point=0,
                              dtype="int32", dims=shape) for name, shape in shapes.items()}
    call = core_call(layer, infos, {name: graph.constants[name] for name in node.inputs
                                    if name in graph.constants and name not in known})
    if KERNELS[node.op].refusal(call) is not None:
        return None
    return run_call(call, [known[name] if operand.present else None
                           for name, operand in zip(node.inputs, call.inputs, strict=True)])


def _placed(graph: Graph, node: Node, origins: _Origins) -> Graph:
    """Return the graph with the bytes of what ``node`` writes in their places, if that is better than moving them."""
    places, sources = origins.places, origins.sources
    if len(sources) == 1 and places.size == math.prod(sources[0].shape or ()) \
            and np.array_equal(places, np.arange(places.size)):
        return graph.replaced((node,), Node(QAlias(), (sources[0].name,), node.output, origins.names))
    order = _channel_order(graph.tensors[node.output], origins)
    if order is not None and (places.size > _SHORT_RUN * np.count_nonzero(np.diff(places) != 1)
                              or (np.diff(order) == 1).all()):
        order = None
    if order is not None:
        return _with_order(graph, node, origins, order)
    if (stored := _stored_by_product(graph, node, origins)) is not None:
        return stored
    boxes = boxes_of(places, origins.bases, _MAX_BOXES)
    if boxes is None:
        return graph
    if len(boxes) == len(sources) == 1 and boxes[0].shape == (graph.tensors[node.output].shape or ())[1:] \
            and node.output not in graph.outputs \
            and all(isinstance(reader.operator, QProduct) for reader in graph.readers(node.output)):
        # Operands of products are read where they are.
        return graph.replaced((node,), Node(QPiece(boxes[0].source), (sources[0].name,), node.output, origins.names))
    return _assembled(graph, node, origins, boxes)


def _stored_by_product(graph: Graph, node: Node, origins: _Origins) -> Graph | None:
    """Return the graph with the one source stored where it belongs by the products that make it, if they can.

    So the heads of an attention lie side by side. A product may be turned for that, as both of its operands are rows.
    """
    source, *others = origins.sources
    product, shape = graph.producer(source.name), source.shape or ()
    if others or product is None or not isinstance(product.operator, QProduct) or len(shape) != _IMAGE_RANK \
            or not _leads_only_to(graph, source.name, node) or origins.places.size != math.prod(shape) \
            or np.unique(origins.places).size != origins.places.size:
        return None
    home = np.argsort(origins.places).reshape(shape[2], shape[3], shape[1])
    if (steps := _steps_of(home)) is not None:
        return graph.replaced((node,), Node(QAssemble((steps,)), (source.name,), node.output, origins.names))
    if (steps := _steps_of(home.transpose(0, 2, 1))) is None:
        return None
    turned = replace(source, name=f"{source.name}:turned", shape=(1, shape[3], shape[2], shape[1]))
    operator = replace(product.operator, pairs=tuple((second, first) for first, second in product.operator.pairs))
    new = product.with_(operator=operator, inputs=(*product.inputs[1::-1], *product.inputs[2:]), output=turned.name)
    return graph.with_tensors(turned).replaced(
        (product, node), new, Node(QAssemble((steps,)), (turned.name,), node.output, origins.names))


def _leads_only_to(graph: Graph, value: str, node: Node) -> bool:
    """Tell whether nothing reads a value, nor what is made of it, on the way to what ``node`` writes."""
    while value != node.output:
        reader = graph.only_reader(value)
        if reader is None:
            return False
        value = reader.output
    return True


def _steps_of(home: np.ndarray) -> ByteSteps | None:
    """Return the steps at which pixels belong, of whose bytes (rows, pixels, channels) ``home`` tells the places."""
    height, width, count = home.shape
    offset = int(home[0, 0, 0])
    row_step = int(home[-1, 0, 0] - offset) // (height - 1) if height > 1 else home.size
    pixel_step = int(home[0, -1, 0] - offset) // (width - 1) if width > 1 else count
    rows, pixels, channels = np.ogrid[:height, :width, :count]
    alike = home == offset + rows * row_step + pixels * pixel_step + channels
    return ByteSteps(offset, row_step, pixel_step) if row_step > 0 and pixel_step > 0 and alike.all() else None


def _channel_order(target: Tensor, origins: _Origins) -> np.ndarray | None:
    """Return the channels, counted over all sources, that those of ``target`` are at each pixel; or None."""
    shape = target.shape or ()
    if len(shape) != 4 or any(len(each.shape or ()) != 4 or (each.shape or ())[2:] != shape[2:]
                              for each in origins.sources):
        return None
    pixels = shape[2] * shape[3]
    table = origins.places.reshape(pixels, shape[1]).copy()
    order = np.empty(shape[1], np.int64)
    before = 0
    for base, source in zip(origins.bases, origins.sources, strict=True):
        channels = (source.shape or ())[1]
        mine = (table[0] >= base) & (table[0] < base + channels)
        expected = table[0, mine] + np.arange(pixels)[:, None] * channels
        if not np.array_equal(table[:, mine], expected):
            return None
        order[mine] = table[0, mine] - base + before
        table[:, mine] = -1
        before += channels
    return order if (table == -1).all() else None


def _with_order(graph: Graph, node: Node, origins: _Origins, order: np.ndarray) -> Graph:
    """Return the graph with channels in another order, of one tensor or of several behind one another."""
    first = origins.sources[0]
    if len(origins.sources) == 1:
        return permuted(graph, [node.with_(inputs=(first.name,))], first.name, node.output, order, origins.names)
    shape = graph.tensors[node.output].shape or ()
    joined = replace(first, name=f"{node.output}:joined",
                     shape=(1, sum((each.shape or ())[1] for each in origins.sources), *shape[2:]))
    concat = Node(QConcat(0), tuple(each.name for each in origins.sources), joined.name, origins.names)
    last = node.with_(inputs=(joined.name,))
    graph = graph.with_tensors(joined).replaced((node,), concat, last)
    return permuted(graph, [last], joined.name, node.output, order, origins.names)


def _assembled(graph: Graph, node: Node, origins: _Origins, boxes: Sequence[MovedBox]) -> Graph:
    """Return the graph with ``node`` replaced by images of its sources, at their places."""
    new: list[Node] = []
    tensors: list[Tensor] = []
    for index, box in enumerate(boxes):
        number = int(np.searchsorted(origins.bases, box.source.offset, "right")) - 1
        source = origins.sources[number]
        steps = replace(box.source, offset=box.source.offset - origins.bases[number])
        part = replace(graph.tensors[node.output], name=f"{node.output}:piece {index}", shape=(1, *box.shape))
        channels, height, width = box.shape
        all_of_it = steps == ByteSteps(0, width * channels, channels) \
            and channels * height * width == math.prod(source.shape or ())
        name = source.name
        if name in graph.constants:
            graph, name = _stored(graph, source)
        new.append(Node(QAlias() if all_of_it else QPiece(steps), (name,), part.name, origins.names))
        tensors.append(part)
    new.append(Node(QAssemble(tuple(box.target for box in boxes)), tuple(part.name for part in tensors), node.output,
                    origins.names))
    return graph.with_tensors(*tensors).replaced((node,), *new)


def _stored(graph: Graph, levels: Tensor) -> tuple[Graph, str]:
    """Return the graph with constant levels as they lie in memory, and the name of that tensor."""
    stored = replace(levels, name=f"{levels.name}:stored")
    content = _in_memory(graph.constants[levels.name])
    return graph.with_tensors(stored).with_constants({stored.name: content}), stored.name
