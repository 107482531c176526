"""Stacks of matrices of several axes become stacks of one: windows of an attention, each with several heads.

What multiplies them, adds constants, exchanges rows and columns or takes a softmax along a row does the same to each
matrix. So everything between the first and the last such operator is written for (matrices, rows, columns), whose
rows lie one behind the other; only around it are reshapes, which are a matter of addresses.
"""

import math
from collections.abc import Iterator

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxBinary,
    OnnxDequantizeLinear,
    OnnxMatMul,
    OnnxOperator,
    OnnxQuantizeLinear,
    OnnxReshape,
    OnnxSoftmax,
    OnnxTranspose,
    OnnxUnary,
    OnnxView,
)
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["MergeBatches"]

_RANK = 3
_ROW_NORMS = ("LayerNormalization", "RMSNormalization")
_Levels = OnnxQuantizeLinear | OnnxDequantizeLinear


class MergeBatches(Pass):
    """Rewrite products of stacks of matrices with several axes, and what is between them, for one axis."""

    def apply(self, graph: Graph) -> Graph:
        fitting = {node.output: node for node in graph.nodes if _fits(graph, node)}
        wanted: set[str] = set()
        waiting = [name for name, node in fitting.items() if isinstance(node.operator, OnnxMatMul)]
        while waiting:
            name = waiting.pop()
            if name not in wanted:
                wanted.add(name)
                near = (*fitting[name].inputs, *(reader.output for reader in graph.readers(name)))
                waiting += [each for each in near if each in fitting]
        return _Merged(graph, wanted).graph if wanted else graph


def _shape(graph: Graph, name: str) -> tuple[int, ...]:
    return (graph.tensors[name].shape or ()) if name in graph.tensors else ()


def _stack(graph: Graph, name: str) -> tuple[int, ...] | None:
    """Return (matrices, rows, columns) of a tensor of several axes of matrices, more than one of each; else None."""
    shape = _shape(graph, name)
    if len(shape) <= _RANK or not math.prod(shape) or math.prod(shape[:-_RANK]) == 1:
        return None
    return math.prod(shape[:-2]), *shape[-2:]


def _fits(graph: Graph, node: Node) -> bool:
    """Tell whether a node does the same to each matrix of its stacks."""
    out, operator = _stack(graph, node.output), node.operator
    computed = list(_computed(graph, node))
    if not computed or out is None:
        return False
    stacks = [_stack(graph, name) for name in computed]
    match operator:
        case OnnxMatMul():
            leads = {_shape(graph, name)[:-2] for name in (*computed, node.output)}
            return len(computed) == 2 and None not in stacks and len(leads) == 1
        case OnnxSoftmax():
            return stacks == [out] and operator.axis % len(_shape(graph, node.output)) == len(
                _shape(graph, node.output)) - 1
        case OnnxTranspose():
            rank = len(_shape(graph, node.output))
            return stacks[0] is not None and operator.perm == (*range(rank - 2), rank - 1, rank - 2)
        case OnnxView():
            return stacks == [out]
        case OnnxQuantizeLinear() | OnnxDequantizeLinear():
            return stacks == [out] and all(graph.constants[name].size == 1 for name in node.inputs[1:]
                                           if name in graph.constants)
        case OnnxUnary() | OnnxBinary():
            shape = _shape(graph, node.output)
            others = [name for name in node.inputs if name not in computed]
            return all(_shape(graph, name) == shape for name in computed) and all(
                _values(graph, name) is not None and _broadcasts(graph, name, shape) for name in others if name)
        case OnnxOperator() if node.op in _ROW_NORMS:
            rank = len(_shape(graph, node.output))
            return stacks == [out] and operator.attributes.get("axis", -1) % rank == rank - 1
    return False


def _computed(graph: Graph, node: Node) -> Iterator[str]:
    """Yield the operands of a node that are no constants, quantised ones included, nor parameters."""
    for name in node.inputs[:1] if isinstance(node.operator, _Levels) else node.inputs:
        if name in graph.tensors and _values(graph, name) is None and not (
                isinstance(node.operator, OnnxView) and name != node.inputs[0]):
            yield name


def _values(graph: Graph, name: str) -> np.ndarray | None:
    """Return a constant, or the levels of one that is dequantised by a single scale; None for others."""
    if name in graph.constants:
        return graph.constants[name]
    source = graph.producer(name)
    if source is None or not isinstance(source.operator, OnnxDequantizeLinear) \
            or not graph.all_constant(source.inputs) \
            or any(graph.constants[each].size != 1 for each in source.inputs[1:] if each):
        return None
    return graph.constants[source.inputs[0]]


def _broadcasts(graph: Graph, name: str, shape: tuple[int, ...]) -> bool:
    values = _values(graph, name)
    assert values is not None
    return values.ndim <= len(shape) and all(mine in (1, whole) for mine, whole in zip(
        reversed(values.shape), reversed(shape), strict=False))


class _Merged:
    """The graph with the nodes that make ``wanted`` tensors rewritten; what others read is called as before."""

    def __init__(self, graph: Graph, wanted: set[str]) -> None:
        self.graph, self.wanted = graph, wanted
        self.stacks: dict[str, str] = {}
        self.nodes: list[Node] = []
        self.tensors: list[Tensor] = []
        self.constants: dict[str, np.ndarray] = {}
        for node in graph.nodes:
            if node.output in wanted:
                self._rewrite(node)
            else:
                self.nodes.append(node)
        self.graph = graph.with_tensors(*self.tensors).with_constants(self.constants).with_(
            nodes=tuple(self.nodes)).without_unread(lambda node: node.output not in self.stacks.values() and (
                node.output in graph.tensors))

    def _rewrite(self, node: Node) -> None:
        graph, operator = self.graph, node.operator
        computed = set(_computed(graph, node))
        shape = _shape(graph, node.output)
        name = f"{node.output}:stack"
        self._typed(name, node.output, _stack(graph, node.output) or ())
        self.stacks[node.output] = name
        inputs = tuple(self._stacked(each, node) if each in computed else each if isinstance(operator, _Levels)
                       else self._constant(each, shape, node) for each in node.inputs)
        if isinstance(operator, OnnxView):
            self.nodes.append(Node(OnnxReshape(), (inputs[0], self._shape_of(name, _stack(graph, node.output) or ())),
                                   name, node.onnx_nodes))
        else:
            assert isinstance(operator, OnnxOperator)
            if isinstance(operator, OnnxTranspose):
                operator = OnnxTranspose({"perm": (0, 2, 1)})
            elif isinstance(operator, OnnxSoftmax) or node.op in _ROW_NORMS:
                operator = operator.with_attributes(axis=-1)
            self.nodes.append(node.with_(operator=operator, inputs=inputs, output=name))
        if node.output in graph.outputs or any(each.output not in self.wanted for each in graph.readers(node.output)):
            self.nodes.append(Node(OnnxReshape(), (name, self._shape_of(node.output, shape)), node.output,
                                   node.onnx_nodes))

    def _stacked(self, name: str, node: Node) -> str:
        """Return a tensor as a stack of matrices, reshaped if it is none yet."""
        if name not in self.stacks:
            made, shape = f"{name}:stack", _stack(self.graph, name) or ()
            self._typed(made, name, shape)
            self.nodes.append(Node(OnnxReshape(), (name, self._shape_of(made, shape)), made, node.onnx_nodes))
            self.stacks[name] = made
        return self.stacks[name]

    def _constant(self, name: str, shape: tuple[int, ...], node: Node) -> str:
        """Return a constant operand as one of a stack: the same for all matrices, or repeated."""
        values = _values(self.graph, name) if name else None
        if values is None or isinstance(node.operator, OnnxView) or values.size == 1:
            return name
        if math.prod(values.shape[:-2]) == 1:
            new = values.reshape(values.shape[-2:])
        else:
            leading = np.broadcast_to(values, (*shape[:-2], *((1, *values.shape)[-2:])))
            new = np.ascontiguousarray(leading.reshape(-1, *leading.shape[-2:]))
        made = f"{name}:stack for {node.output}"
        if name in self.graph.constants:
            self.constants[made] = new
            return made
        source = self.graph.producer(name)
        assert source is not None
        self.constants[f"{made}:levels"] = new
        self._typed(made, name, new.shape)
        self.nodes.append(source.with_(inputs=(f"{made}:levels", *source.inputs[1:]), output=made))
        return made

    def _shape_of(self, name: str, shape: tuple[int, ...]) -> str:
        self.constants[f"{name}:stacked shape"] = np.array(shape, np.int64)
        return f"{name}:stacked shape"

    def _typed(self, name: str, like: str, shape: tuple[int, ...]) -> None:
        self.tensors.append(Tensor(name, shape, self.graph.tensors[like].dtype))
