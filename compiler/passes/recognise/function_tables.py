"""Functions of one integer tensor become tables: ``Q(HardSwish(DQ(x)))`` becomes ``QTable(x)``.

Any operators that compute each element by itself, with constants of one element, in any arrangement with one integer
tensor at its root: SiLU as ``Q(DQ(x) · DQ(Q(Sigmoid(DQ(x)))))`` is one table of x. A change of scale is a table too.
Words between two tensors of bytes, as in ``Q8(Sigmoid(DQ16(Q16(DQ8(x)))))``, are inside of one.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.errors import CompileError, UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import QTable
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_names import CHOICES
from tilewright.compiler.graph.onnx_operators import (
    OnnxBinary,
    OnnxClip,
    OnnxDequantizeLinear,
    OnnxGather,
    OnnxQuantizeLinear,
    OnnxRelu,
    OnnxUnary,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.graph.value_tables import TableError, table_of
from tilewright.compiler.passes.recognise.element_images import image_of_elements

__all__ = ["RecogniseTables", "same_parameters", "table_node"]

_Quantisation = OnnxDequantizeLinear | OnnxQuantizeLinear
_MAX_CHANNELS = 256
"""Of an image: few enough that some rows of it fit the buffers of every machine."""

_WORDS = ("int16", "uint16")

_AS_IT_IS = np.arange(-128, 128)


class RecogniseTables(Pass):
    """Replace elementwise operators between one DequantizeLinear and a QuantizeLinear by a QTable.

    ReLU and clip that keep the quantisation stay: they are bounds, and cost nothing. Where ONNX Runtime does not
    compute the operators, they stay too.
    """

    def apply(self, graph: Graph) -> Graph:
        known: dict[str, _Function] = {}
        words: set[str] = set()
        for quantise in graph.nodes:
            found = _function(graph, quantise) if isinstance(quantise.operator, OnnxQuantizeLinear) else None
            found = found and _with_one_root(found, known, words)
            if found is None or not found.of_one_tensor:
                continue
            if found.worth_a_table(graph):
                try:
                    graph = _replaced(graph, quantise, found)
                except (TableError, CompileError):
                    if graph.tensors[quantise.output].dtype not in _WORDS:
                        continue
                    words.add(quantise.output)
            # Bounds are no table, and yet part of one: x · Clip(x + 3) / 6.
            known[quantise.output] = found
        return _without_unread(graph)


@dataclass(frozen=True)
class _Function:
    """Operators, in order, that make an integer tensor of others, the leaves."""

    leaves: tuple[str, ...]
    nodes: tuple[Node, ...]

    @property
    def of_one_tensor(self) -> bool:
        """Whether there is one leaf, whose numbers come first."""
        return len(self.leaves) == 1 and isinstance(self.nodes[0].operator, OnnxDequantizeLinear)

    def worth_a_table(self, graph: Graph) -> bool:
        """Tell whether this, of one tensor, is more than bounds."""
        first, last = self.nodes[0], self.nodes[-1]
        if all(isinstance(node.operator, OnnxRelu | OnnxClip | _Quantisation) for node in self.nodes):
            return not same_parameters(graph, first.inputs[1:], last.inputs[1:])
        return True


def _function(graph: Graph, quantise: Node) -> _Function | None:
    """Return what a QuantizeLinear writes as a function of integer tensors, or None."""
    inside: dict[str, Node] = {quantise.output: quantise}
    leaves: dict[str, None] = {}
    waiting = list(quantise.inputs[:1])
    while waiting:
        name = waiting.pop()
        if name in inside:
            continue
        node = graph.producer(name)
        if node is None or (name in graph.outputs and not isinstance(node.operator, OnnxDequantizeLinear)):
            return None
        inside[name] = node
        if isinstance(node.operator, OnnxDequantizeLinear):
            if node.inputs[0] not in graph.constants:
                leaves[node.inputs[0]] = None
            elif graph.constants[node.inputs[0]].size != 1:
                return None
        elif (place := _place(graph, node)) is not None:
            waiting.append(place)
        elif (data := _operands(node)) is not None:
            constants = [each for each in node.inputs if each in graph.constants]
            if any(graph.constants[each].size != 1 for each in constants):
                return None
            waiting += [each for each in data if each not in graph.constants]
        else:
            return None
    for name, node in inside.items():
        readers = graph.readers(name)
        if not isinstance(node.operator, _Quantisation) and any(each.output not in inside for each in readers):
            return None
    return _Function(tuple(leaves), graph.in_order(inside))


def _operands(node: Node) -> tuple[str, ...] | None:
    """Return the tensors of which a node computes each element by itself; None if it computes otherwise."""
    operator = node.operator
    if isinstance(operator, OnnxBinary) and not operator.rounded:
        return node.inputs
    if isinstance(operator, OnnxUnary) and not operator.rounded:
        return node.inputs[:1]
    return node.inputs if node.op in CHOICES else None


def _place(graph: Graph, node: Node) -> str | None:
    """Return the computed places at which a Gather reads a constant list, element by element; None for another node."""
    if not isinstance(node.operator, OnnxGather) or node.inputs[0] not in graph.constants \
            or graph.constants[node.inputs[0]].ndim != 1 or node.inputs[1] in graph.constants:
        return None
    return node.inputs[1]


def _with_one_root(found: _Function, known: dict[str, _Function], words: set[str]) -> _Function | None:
    """Follow leaves that are functions themselves to the nearest tensor that all of them are functions of, no word."""
    if len(found.leaves) == 1 and found.leaves[0] not in words:
        return found
    chains = []
    for leaf in found.leaves:
        chain = [leaf]
        while chain[-1] in known:
            chain.append(known[chain[-1]].leaves[0])
        chains.append(chain)
    root = next((each for each in chains[0] if each not in words and all(each in chain for chain in chains)),
                None) if chains else None
    if root is None:
        return None
    inner = [name for chain in chains for name in reversed(chain[:chain.index(root)])]
    nodes: dict[str, Node] = {}
    for each in (*(known[name] for name in inner), found):
        nodes |= {node.output: node for node in each.nodes if node.output not in nodes}
    return _Function((root,), tuple(nodes.values()))


def _replaced(graph: Graph, quantise: Node, found: _Function) -> Graph:
    (root,) = found.leaves
    x = _kind(graph, next(node for node in found.nodes
                          if isinstance(node.operator, OnnxDequantizeLinear) and node.inputs[0] == root), root)
    y = _kind(graph, quantise, quantise.output)
    shape = graph.tensors[root].shape or ()
    if graph.tensors[quantise.output].shape != shape or not shape:
        raise UnsupportedNodeError(quantise.name, quantise.op, f"its input has the shape {list(shape)}", "")
    graph = quantisation.with_types(graph, x, y)
    node = table_node(graph, found.nodes, x, y)
    if len(shape) in (2, 4) and shape[0] == 1:
        return graph.replaced((quantise,), node)
    found_view = _viewed(graph, graph.tensors[x.name], graph.tensors[y.name], node)
    if found_view is None:
        raise UnsupportedNodeError(quantise.name, quantise.op, f"its input has the shape {list(shape)}", "")
    graph, views = found_view
    return graph.replaced((quantise,), *views)


def table_node(graph: Graph, nodes: tuple[Node, ...], x: Tensor, y: Tensor) -> Node:
    """Return the QTable for ``nodes`` that make ``y`` of ``x``, or the QAlias of levels that stay as they are.

    The table is of int8 also where a tensor is uint8.

    Raises
    ------
    TableError
        If ONNX Runtime does not compute them.
    """
    values = table_of(nodes, x.name, x.dtype, len(x.shape or ()), y.name, y.dtype, graph.constants, graph.opset)
    table = values.astype(np.int16) - (128 if y.dtype == "uint8" else 0)
    names = tuple(name for node in nodes for name in node.onnx_nodes
                  if not isinstance(node.operator, _Quantisation))
    quantise = nodes[-1]
    if x.dtype != y.dtype and quantise.output not in graph.outputs and np.array_equal(table, _AS_IT_IS):
        # Of the other type of bytes, which becomes int8 (an input as a session takes it): nothing is computed.
        return Node(QAlias(), (x.name,), quantise.output, names or quantise.onnx_nodes)
    return Node(QTable(table=table.astype(np.int8)).of_type(y.dtype), (x.name,), quantise.output,
                names or quantise.onnx_nodes)


def _kind(graph: Graph, node: Node, tensor: str) -> Tensor:
    return quantisation.activation(graph, node, tensor, node.inputs[1], (*node.inputs, "")[2])


def same_parameters(graph: Graph, first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Tell whether two lists of scale and zero point have the same values."""
    pairs = [(graph.constants.get(a), graph.constants.get(b)) for a, b in zip(first, second, strict=False)]
    return len(first) == len(second) and all(
        a is not None and b is not None and a.dtype == b.dtype and np.array_equal(a.ravel(), b.ravel())
        for a, b in pairs)


def _viewed(graph: Graph, x: Tensor, y: Tensor, node: Node) -> tuple[Graph, tuple[Node, ...]] | None:
    """Return ``node``, which makes y of x element by element, between two images; None if there is no such image.

    Tensors of other than two or four dimensions lie row by row, without gaps, and so does NHWC: the same bytes are an
    image of any height, width and channels that have the product.
    """
    shape = image_of_elements(math.prod(x.shape or ()), wide=_MAX_CHANNELS)
    if shape is None or len(x.shape or ()) == 4:
        return None
    before, behind = (replace(each, name=f"{each.name}:image of {node.output}", shape=shape) for each in (x, y))
    nodes = (Node(QAlias(), (x.name,), before.name), node.with_(inputs=(before.name,), output=behind.name),
             Node(QAlias(), (behind.name,), y.name))
    return graph.with_tensors(before, behind), nodes


def _without_unread(graph: Graph) -> Graph:
    """Drop what only the replaced operators read."""
    tables = any(isinstance(node.operator, QTable) for node in graph.nodes)
    return graph.without_unread() if tables else graph
