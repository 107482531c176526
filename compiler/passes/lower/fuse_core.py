"""Functions of one quantised tensor on the host core become a table: ``Sigmoid(DequantizeLinear(x))`` is a look-up.

What has a QuantizeLinear behind it is the datapath's table already (`function_tables.py`); here are those whose result
stays float, and those that the datapath cannot hold. The tables are filled by the core's own kernels, so that a fused
operator gives the bits that the operators gave one by one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.graph.core_operators import CoreLookUp
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxBinary,
    OnnxDequantizeLinear,
    OnnxQuantizeLinear,
    OnnxUnary,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.kernels.execute import run_call
from tilewright.compiler.kernels.refusal import refusal_of
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import CoreLayer, TensorInfo
from tilewright.compiler.passes.lower.build_core import core_layer, is_core

__all__ = ["FuseCore"]

_BYTES = ("int8", "uint8")


class FuseCore(Pass):
    """Replace operators that compute each element by itself, behind one DequantizeLinear, by a CoreLookUp."""

    def apply(self, graph: Graph) -> Graph:
        functions = _Functions(graph)
        made = [(node, operator, table) for node in graph.nodes
                if functions.ends(node) and (found := functions.of(node)) is not None
                for operator, table in (found,)]
        for node, operator, table in made:
            name = f"{node.output}:table"
            source = functions.roots[node.output]
            fused = Node(operator, (source, name), node.output, functions.onnx_nodes(node), node.reason)
            graph = graph.with_constants({name: table}).replaced((node,), fused)
        return graph.without_unread(lambda node: not is_core(node)) if made else graph


@dataclass(frozen=True)
class _Values:
    """Values of a tensor for each of 256 levels, and whether ONNX Runtime says the same."""

    values: np.ndarray
    exact: bool
    nodes: tuple[str, ...]


class _Functions:
    """Which tensors of a graph are functions of one tensor of 8 bits: its name, by theirs."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.roots: dict[str, str] = {}
        self._known: dict[str, _Values | None] = {}
        for node in graph.nodes:
            if (root := self._root(node)) is not None:
                self.roots[node.output] = root

    def ends(self, node: Node) -> bool:
        """Tell whether ``node`` computes a function that something else than a function reads."""
        if node.output not in self.roots or isinstance(node.operator, OnnxDequantizeLinear):
            return False
        readers = self.graph.readers(node.output)
        return node.output in self.graph.outputs or any(
            self.roots.get(each.output) != self.roots[node.output] for each in readers)

    def of(self, node: Node) -> tuple[CoreLookUp, np.ndarray] | None:
        """Return the operator and the table that stand for ``node`` and those before it; None if there are none."""
        found = self._values(node)
        return None if found is None else (CoreLookUp(exact=found.exact), found.values)

    def onnx_nodes(self, node: Node) -> tuple[str, ...]:
        """Return the names of the model's nodes that a table stands for."""
        found = self._known[node.output]
        return tuple(dict.fromkeys(found.nodes if found is not None else ())) or node.onnx_nodes

    def _root(self, node: Node) -> str | None:
        """Return the tensor that ``node`` computes a function of."""
        graph, operator = self.graph, node.operator
        if not isinstance(operator, OnnxDequantizeLinear | OnnxQuantizeLinear | OnnxUnary | OnnxBinary):
            return None
        if isinstance(operator, OnnxQuantizeLinear) and not self._is_byte(node.output):
            return None     # a table is of bytes or floats
        data = node.inputs if isinstance(operator, OnnxBinary) else node.inputs[:1]
        if any(name not in graph.constants or graph.constants[name].size != 1 for name in node.inputs
               if name and name not in data):
            return None
        if isinstance(operator, OnnxDequantizeLinear):
            root = data[0] if self._is_byte(data[0]) else None
        else:
            moving = [name for name in data if name and name not in graph.constants]
            if any(graph.constants[name].size != 1 for name in data if name in graph.constants):
                return None
            found = {self.roots.get(name) for name in moving}
            root = found.pop() if len(found) == 1 else None
        shapes = {_shape(graph.tensors.get(name)) for name in (root, node.output)} if root else {None}
        return root if len(shapes) == 1 and None not in shapes else None

    def _is_byte(self, name: str) -> bool:
        tensor = self.graph.tensors.get(name)
        return tensor is not None and tensor.dtype in _BYTES and name not in self.graph.constants

    def _values(self, node: Node) -> _Values | None:
        """Return the values of the tensor that ``node`` writes, and of all those before it first."""
        for each in self._unknown(node):
            self._known[each.output] = self._computed(each)
        return self._known[node.output]

    def _unknown(self, node: Node) -> list[Node]:
        """Return the functions that ``node`` needs and that are not computed yet, itself last."""
        found: dict[str, Node] = {}
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if each.output in found or each.output in self._known:
                continue
            found[each.output] = each
            waiting += [producer for name in self._functions_before(each)
                        if (producer := self.graph.producer(name)) is not None]
        return list(self.graph.in_order(found))

    def _functions_before(self, node: Node) -> tuple[str, ...]:
        """Return the inputs of ``node`` that are functions of its root: none of what dequantises the root itself.

        The root may be a function too, of another tensor.
        """
        if isinstance(node.operator, OnnxDequantizeLinear):
            return ()
        return tuple(name for name in node.inputs if name in self.roots)

    def _computed(self, node: Node) -> _Values | None:
        root = self.roots[node.output]
        before = {name: self._known[name] for name in self._functions_before(node)}
        arrays: dict[str, np.ndarray] = {}
        if isinstance(node.operator, OnnxDequantizeLinear):
            bounds = np.iinfo(self.graph.tensors[root].dtype)
            arrays[root] = np.arange(bounds.min, bounds.max + 1).astype(bounds.dtype)
        for name, values in before.items():
            if values is None:
                return None
            arrays[name] = values.values
        constants = {name: self.graph.constants[name].reshape(()) for name in node.inputs
                     if name in self.graph.constants}
        layer = core_layer(self.graph, node, node.output)
        result = _run(layer, arrays, constants, self.graph.tensors[node.output].dtype)
        if result is None:
            return None
        nodes = tuple(name for values in before.values() if values is not None for name in values.nodes)
        exact = layer.exact and all(values is not None and values.exact for values in before.values())
        own = () if isinstance(node.operator, OnnxDequantizeLinear | OnnxQuantizeLinear) else node.onnx_nodes
        return _Values(result, exact, (*nodes, *own))


def _run(layer: CoreLayer, arrays: Mapping[str, np.ndarray], constants: Mapping[str, np.ndarray],
         dtype: str) -> np.ndarray | None:
    """Return what the kernel of ``layer`` makes of 256 values; None if it refuses them."""
    infos = {name: _vector(name, str(values.dtype)) for name, values in arrays.items()}
    infos[layer.output] = _vector(layer.output, dtype)
    call = core_call(layer, infos, constants)
    if refusal_of(call) is not None:
        return None
    return run_call(call, [(constants[name] if name in constants else arrays[name]) if operand.present else None
                           for name, operand in zip(layer.inputs, call.inputs, strict=True)])


def _vector(name: str, dtype: str) -> TensorInfo:
    return TensorInfo(name=name, shape=(256, 1, 1), scale=np.float32(1), zero_point=0, dtype=dtype, dims=(256,))


def _shape(tensor: Tensor | None) -> tuple[int, ...] | None:
    return None if tensor is None else tensor.shape
