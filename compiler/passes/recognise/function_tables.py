"""Functions of one integer tensor become tables: ``Q(HardSwish(DQ(x)))`` becomes ``QTable(x)``.

Any operators that compute each element by itself, with constants of one element, in any arrangement with one integer
tensor at its root: SiLU as ``Q(DQ(x) · DQ(Q(Sigmoid(DQ(x)))))`` is one table of x. A change of scale is a table too.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.compiler.errors import CompileError, UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.flat_views import viewed
from tilewright.compiler.graph.graph import Graph, Node, Tensor
from tilewright.compiler.graph.integer_ops import with_bounds
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.graph.value_tables import BINARY, UNARY, TableError, table_of

_CLAMPS = {"Relu", "Clip"}


class RecogniseTables(Pass):
    """Replace elementwise operators between one DequantizeLinear and a QuantizeLinear by a QTable.

    ReLU and clip that keep the quantisation stay: they are bounds, and cost nothing. Where ONNX Runtime does not
    compute the operators, they stay too.
    """

    def apply(self, graph: Graph) -> Graph:
        known: dict[str, _Function] = {}
        for quantize in [node for node in graph.nodes if node.op == "QuantizeLinear"]:
            found = _function(graph, quantize)
            found = found and _with_one_root(found, known)
            if found is None or not found.worth_a_table(graph):
                continue
            try:
                graph = _replaced(graph, quantize, found)
            except (TableError, CompileError):
                continue
            known[quantize.output] = found
        return _without_unread(graph)


@dataclass(frozen=True)
class _Function:
    """Operators, in order, that make an integer tensor of others, the leaves."""

    leaves: tuple[str, ...]
    nodes: tuple[Node, ...]

    def worth_a_table(self, graph: Graph) -> bool:
        """Tell whether this is more than bounds."""
        first, last = self.nodes[0], self.nodes[-1]
        if len(self.leaves) != 1 or first.op != "DequantizeLinear":
            return False
        if {node.op for node in self.nodes} <= _CLAMPS | {"DequantizeLinear", "QuantizeLinear"}:
            return not same_parameters(graph, first.inputs[1:], last.inputs[1:])
        return True


def _function(graph: Graph, quantize: Node) -> _Function | None:
    """Return what a QuantizeLinear writes as a function of integer tensors, or None."""
    inside: dict[str, Node] = {quantize.output: quantize}
    leaves: dict[str, None] = {}
    waiting = list(quantize.inputs[:1])
    while waiting:
        name = waiting.pop()
        if name in inside:
            continue
        node = graph.producer(name)
        if node is None or (name in graph.outputs and node.op != "DequantizeLinear"):
            return None
        inside[name] = node
        if node.op == "DequantizeLinear":
            if node.inputs[0] not in graph.constants:
                leaves[node.inputs[0]] = None
            elif graph.constants[node.inputs[0]].size != 1:
                return None
        elif node.op in UNARY or node.op in BINARY:
            data = node.inputs if node.op in BINARY else node.inputs[:1]
            constants = [each for each in node.inputs if each in graph.constants]
            if any(graph.constants[each].size != 1 for each in constants):
                return None
            waiting += [each for each in data if each not in graph.constants]
        else:
            return None
    for name, node in inside.items():
        readers = graph.readers(name)
        if node.op not in ("DequantizeLinear", "QuantizeLinear") and any(each.output not in inside for each in readers):
            return None
    return _Function(tuple(leaves), tuple(node for node in graph.nodes if node.output in inside))


def _with_one_root(found: _Function, known: dict[str, _Function]) -> _Function | None:
    """Follow leaves that are functions themselves to the nearest tensor that all of them are functions of."""
    chains = []
    for leaf in found.leaves:
        chain = [leaf]
        while chain[-1] in known:
            chain.append(known[chain[-1]].leaves[0])
        chains.append(chain)
    root = next((each for each in chains[0] if all(each in chain for chain in chains)), None) if chains else None
    if root is None:
        return None
    inner = [name for chain in chains for name in reversed(chain[:chain.index(root)])]
    nodes: dict[str, Node] = {}
    for each in (*(known[name] for name in inner), found):
        nodes |= {node.output: node for node in each.nodes if node.output not in nodes}
    return _Function((root,), tuple(nodes.values()))


def _replaced(graph: Graph, quantize: Node, found: _Function) -> Graph:
    (root,) = found.leaves
    x = _kind(graph, next(node for node in found.nodes
                          if node.op == "DequantizeLinear" and node.inputs[0] == root), root)
    y = _kind(graph, quantize, quantize.output)
    shape = graph.tensors[root].shape or ()
    if graph.tensors[quantize.output].shape != shape or not shape:
        raise UnsupportedNodeError(quantize.name, quantize.op, f"its input has the shape {list(shape)}", "")
    graph = quantisation.with_types(graph, x, y)
    node = table_node(graph, found.nodes, x, y)
    if any(_only_rescales(graph, found.nodes, each) for each in found.nodes):
        # ONNX Runtime makes one pair with a third quantisation of the two (double_qdq_pairs_remover.cc).
        node = node.with_attrs(exact=False)
    if len(shape) in (2, 4) and shape[0] == 1:
        return graph.replaced((quantize,), node)
    found_view = viewed(graph, graph.tensors[x.name], graph.tensors[y.name], node)
    if found_view is None:
        raise UnsupportedNodeError(quantize.name, quantize.op, f"its input has the shape {list(shape)}", "")
    graph, views = found_view
    return graph.with_(nodes=tuple(new for each in graph.nodes for new in (views if each is quantize else (each,))))


def _only_rescales(graph: Graph, nodes: tuple[Node, ...], quantize: Node) -> bool:
    """Tell whether a node quantises what another one has quantised, with nothing between but DequantizeLinear."""
    made = {node.output: node for node in nodes}
    dequantize = made.get(quantize.inputs[0])
    if quantize.op != "QuantizeLinear" or dequantize is None or dequantize.op != "DequantizeLinear":
        return False
    source = made.get(dequantize.inputs[0]) or graph.producer(dequantize.inputs[0])
    return source is not None and source.op in ("QuantizeLinear", "QTable")


def table_node(graph: Graph, nodes: tuple[Node, ...], x: Tensor, y: Tensor) -> Node:
    """Return the QTable for ``nodes`` that make ``y`` of ``x``; its table is of int8 also where a tensor is uint8.

    Raises
    ------
    TableError
        If ONNX Runtime does not compute them.
    """
    values = table_of(nodes, x.name, x.dtype, len(x.shape or ()), y.name, y.dtype, graph.constants, graph.opset)
    table = values.astype(np.int16) - (128 if y.dtype == "uint8" else 0)
    names = tuple(name for node in nodes for name in node.onnx_nodes
                  if node.op not in ("DequantizeLinear", "QuantizeLinear"))
    quantize = nodes[-1]
    node = quantize.with_(onnx_nodes=names or quantize.onnx_nodes)
    return with_bounds("QTable", node, (x.name,), y.dtype, table=table.astype(np.int8))


def _kind(graph: Graph, node: Node, tensor: str) -> Tensor:
    return quantisation.activation(graph, node, tensor, node.inputs[1], (*node.inputs, "")[2])


def same_parameters(graph: Graph, first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Tell whether two lists of scale and zero point have the same values."""
    pairs = [(graph.constants.get(a), graph.constants.get(b)) for a, b in zip(first, second, strict=False)]
    return len(first) == len(second) and all(
        a is not None and b is not None and a.dtype == b.dtype and np.array_equal(a.ravel(), b.ravel())
        for a, b in pairs)


def _without_unread(graph: Graph) -> Graph:
    """Drop what only the replaced operators read."""
    needed, nodes = set(graph.outputs), []
    tables = any(node.op == "QTable" for node in graph.nodes)
    for node in reversed(graph.nodes):
        if not tables or node.output in needed:
            nodes.append(node)
            needed |= set(node.inputs)
    return graph.with_(nodes=tuple(reversed(nodes)))
