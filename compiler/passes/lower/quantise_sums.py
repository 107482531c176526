"""DynamicQuantizeLinear of whole sums, with no floats but those of a few sums.

``f = Relu(Add(Mul(Cast(sums), s), b))`` grows with the sum, channel by channel, if s does not fall below 0; so it does
with a Clip or a LeakyRelu. The largest f is then that of one of the channels' largest sums, to the bit, the maximum of
a window is that of the window's largest sum, and levels follow from the sums
(`compiler.kernels.levels.levels_of_sums`). The floats go where nothing else reads them.
"""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.graph.core_operators import CoreLeast, CoreLevels
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import QConv
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxCast,
    OnnxClip,
    OnnxLeakyRelu,
    OnnxMaxPool,
    OnnxQuantizeLinear,
    OnnxReduction,
    OnnxRelu,
    OnnxView,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.passes.lower.build_core import is_core
from tilewright.compiler.passes.recognise.sums.nowhere_negative import clip_bounds, is_rectifier

__all__ = ["QuantiseSums"]

_AXES_ARE_AN_INPUT = 18
_EXTREMES = ("ReduceMax", "ReduceMin")
_BYTES = ("int8", "uint8")
_LEAKY, _HALF = 0.01, 0.5
"""ONNX's slope below 0 where a LeakyRelu states none, and what slopes are below that levels are made of at once."""

_Choice = OnnxMaxPool | OnnxView


@dataclass(frozen=True, slots=True)
class _Floats:
    """Nodes that make floats of the whole ``sums`` of a product, each from the one before it; ``bits`` bound these."""

    sums: Tensor
    nodes: tuple[Node, ...]
    bits: int

    @property
    def bends(self) -> bool:
        """Whether a HardSwish is the last, which falls before it grows."""
        return self.nodes[-1].op == "HardSwish"

    def function(self, graph: Graph) -> dict[str, float]:
        """Return what bounds or bends the floats, as attributes of `LevelsOfSums`."""
        operator = self.nodes[-1].operator
        if self.bends:
            return {"hard_swish": 1}
        if isinstance(operator, OnnxLeakyRelu):
            return {"alpha": _alpha(operator)}
        if isinstance(operator, OnnxClip):
            low, high = clip_bounds(graph, self.nodes[-1]) or (None, None)
            return {name: bound for name, bound in (("low", low), ("high", high)) if bound is not None}
        return {"low": 0.0} if isinstance(operator, OnnxRelu) else {}

    def other(self, op: str) -> str:
        """Return the other operand of the Mul or Add among the nodes, ``""`` if there is none."""
        for before, node in zip(self.nodes, self.nodes[1:], strict=False):
            if node.op == op:
                return next(name for name in node.inputs if name != before.output)
        return ""


class QuantiseSums(Pass):
    """Replace extremes and levels of floats that are made of whole sums by those that need the sums alone."""

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if node.op == "ReduceMin" and (less := _without_least(graph, node)) is not None:
                graph = less
                continue
            floats = _floats(graph, node.inputs[0]) if node.inputs and is_core(node) else None
            if floats is None:
                continue
            if isinstance(node.operator, OnnxMaxPool):
                graph = _pooled(graph, node, floats)
            elif isinstance(node.operator, OnnxQuantizeLinear):
                graph = _levels(graph, node, floats)
            elif isinstance(node.operator, OnnxReduction) and node.op in _EXTREMES:
                graph = _extreme(graph, node, floats)
        return graph


def _floats(graph: Graph, name: str) -> _Floats | None:
    """Return how a tensor is made of whole sums: by a Cast, a Mul, perhaps an Add, and perhaps a function that grows.

    The sums may be those of a product or the largest of each window of these.
    """
    nodes: list[Node] = []
    wanted = ["function", "Add", "Mul", "Cast"]
    while (node := graph.producer(name)) is not None and is_core(node):
        found = "function" if _is_growing(graph, node) or node.op == "HardSwish" else node.op
        while wanted and wanted[0] != found:
            if wanted.pop(0) in ("Mul", "Cast"):
                return None
        if not wanted:
            break
        nodes.insert(0, node)
        wanted.pop(0)
        computed = [each for each in node.inputs if each not in graph.constants and _shape(graph, each)
                    == _shape(graph, node.output)]
        if len(computed) != 1:
            return None
        name = computed[0]
    sums = graph.tensors[name] if name in graph.tensors else None
    while node is not None and isinstance(node.operator, OnnxMaxPool):
        node = graph.producer(node.inputs[0])
    if wanted or node is None or sums is None or not isinstance(node.operator, QConv) or not node.operator.whole:
        return None
    known = sums.shape is not None and all(graph.tensors[each.output].dtype == "float32" for each in nodes)
    if not known or not isinstance(nodes[0].operator, OnnxCast):
        return None
    floats = _Floats(sums, tuple(nodes), _bits(graph, node))
    return floats if _grows(graph, floats.other("Mul")) else None


def _is_growing(graph: Graph, node: Node) -> bool:
    """Tell whether a node is a function that grows with its input, or stays, and that levels are made of at once."""
    operator = node.operator
    if isinstance(operator, OnnxClip):
        return clip_bounds(graph, node) is not None
    return isinstance(operator, OnnxRelu) or (isinstance(operator, OnnxLeakyRelu) and 0 <= _alpha(operator) < _HALF)


def _alpha(operator: OnnxLeakyRelu) -> float:
    return float(operator.attributes.get("alpha", _LEAKY))


def _pooled(graph: Graph, node: Node, floats: _Floats) -> Graph:
    """Take the largest sums of windows, and make floats of these alone, if nothing else reads the others."""
    shape = _shape(graph, node.output)
    last = floats.nodes[-1].output
    if shape is None or floats.bends or graph.only_reader(last) is None or last in graph.outputs:
        return graph
    sums = f"{node.output}:sums"
    return _remade(graph, node, floats, node.with_(inputs=(floats.sums.name,), output=sums), shape)


def _shape(graph: Graph, name: str) -> tuple[int, ...] | None:
    return graph.tensors[name].shape if name in graph.tensors else None


def _bits(graph: Graph, product: Node) -> int:
    """Return a number of bits that sums of levels of 8 bits do not leave: |sum| < 2^bits."""
    weights = graph.constants[product.inputs[1]].astype(np.int64)
    most = int(np.abs(weights).reshape(len(weights), -1).sum(axis=1).max(initial=0)) * 255
    return min(31, most.bit_length())


def _grows(graph: Graph, factor: str) -> bool:
    """Tell whether a factor is certainly not below 0: the scale of computed levels times constants above 0."""
    node = graph.producer(factor)
    if node is None or node.op != "Mul":
        return False
    constants = [graph.constants[name] for name in node.inputs if name in graph.constants]
    computed = [name for name in node.inputs if name not in graph.constants]
    return len(constants) == len(computed) == 1 and bool((constants[0] > 0).all()) and any(
        isinstance(each.operator, OnnxQuantizeLinear | CoreLevels) and computed[0] in each.inputs[-2:]
        for each in graph.readers(computed[0]))


def _levels(graph: Graph, node: Node, floats: _Floats) -> Graph:
    """Replace a QuantizeLinear by a scale of run time."""
    scale, zero = (*node.inputs, "", "")[1:3]
    tensor = graph.tensors[node.output]
    if scale in graph.constants or not zero or tensor.dtype not in _BYTES or any(
            np.prod(_dims(graph, name)) != 1 for name in (scale, zero)):
        return graph
    names = [name for name in (floats.other("Mul"), floats.other("Add")) if name]
    operator = CoreLevels(attributes={"bits": floats.bits, **floats.function(graph)})
    onnx_nodes = tuple(dict.fromkeys(name for each in (*floats.nodes, node) for name in each.onnx_nodes))
    new = Node(operator, (floats.sums.name, *names, scale, zero), node.output, onnx_nodes, node.reason)
    return _without_floats(graph.replaced((node,), new), floats)


def _dims(graph: Graph, name: str) -> tuple[int, ...]:
    if name in graph.constants:
        return graph.constants[name].shape
    return _shape(graph, name) or ()


def _extreme(graph: Graph, node: Node, floats: _Floats) -> Graph:
    """Replace the largest or least of all floats by that of the channels' largest or least sums."""
    operator, shape = node.operator, floats.sums.shape
    assert isinstance(operator, OnnxReduction)
    assert shape is not None
    if operator.axes is not None or len(node.inputs) > 1:
        return graph
    channel = 1 if len(shape) == 4 else len(shape) - 1
    axes = tuple(axis for axis in range(len(shape)) if axis != channel and shape[axis] > 1)
    if floats.bends:
        reader = graph.only_reader(node.output)
        if reader is None or reader.op != node.op.removeprefix("Reduce") or not _with_zero(graph, reader):
            return graph
        if node.op == "ReduceMin":
            given = [name for name in (floats.other("Mul"), floats.other("Add")) if name]
            least = Node(CoreLeast(), (floats.sums.name, *given), node.output, node.onnx_nodes, node.reason)
            return _without_floats(graph.replaced((node,), least), floats)
    if not axes:
        return graph
    few = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    constants = {f"{node.output}:axes": np.array(axes, np.int64)} if graph.opset >= _AXES_ARE_AN_INPUT else {}
    attributes = {} if constants else {"axes": axes}
    each = Node(operator.with_attributes(keepdims=1, **attributes), (floats.sums.name, *constants),
                f"{node.output}:sums", node.onnx_nodes, node.reason)
    return _remade(graph.with_constants(constants), node, floats, each, few)


def _remade(graph: Graph, node: Node, floats: _Floats, chosen: Node, shape: tuple[int, ...]) -> Graph:
    """Make floats of the sums of ``shape`` that the node ``chosen`` makes of all; ``node`` is what is wanted of these.

    A node that ``chosen`` stands for goes: its output is the last of the floats.
    """
    names = {floats.sums.name: chosen.output}
    stays = node.op != chosen.op or isinstance(node.operator, OnnxReduction)
    made, tensors = [chosen], [replace(floats.sums, name=chosen.output, shape=shape)]
    for each in floats.nodes:
        last = each is floats.nodes[-1] and not stays
        names[each.output] = node.output if last else f"{node.output}:{each.output}"
        made.append(each.with_(inputs=tuple(names.get(name, name) for name in each.inputs), output=names[each.output]))
        tensors.append(graph.tensors[node.output] if last else Tensor(names[each.output], shape, "float32"))
    if stays:
        made.append(node.with_(inputs=(made[-1].output,)))
    return _without_floats(graph.with_tensors(*tensors).replaced((node,), *made), floats)


def _without_least(graph: Graph, node: Node) -> Graph | None:
    """Return the graph without the least of what is nowhere below 0, if only its smaller one with 0 is asked for."""
    reader, source = graph.only_reader(node.output), graph.producer(node.inputs[0])
    while source is not None and isinstance(source.operator, _Choice):
        source = graph.producer(source.inputs[0])
    if source is None or not is_rectifier(graph, source) or reader is None or reader.op != "Min" \
            or not _with_zero(graph, reader):
        return None
    zero = np.zeros(_dims(graph, reader.output), np.float32)
    return graph.removed(node).removed(reader).with_constants({reader.output: zero})


def _with_zero(graph: Graph, node: Node) -> bool:
    constants = [graph.constants[name] for name in node.inputs if name in graph.constants]
    return len(constants) == 1 and not constants[0].any()


def _without_floats(graph: Graph, floats: _Floats) -> Graph:
    """Return the graph without the floats that nothing reads any more."""
    for node in reversed(floats.nodes):
        held = graph.producer(node.output)
        if held is not None and not graph.readers(node.output) and node.output not in graph.outputs:
            graph = graph.removed(held)
    return graph
