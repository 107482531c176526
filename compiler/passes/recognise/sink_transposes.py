"""Move transposes between NHWC and NCHW down until they meet their inverses: ``Relu(T(x))`` becomes ``T(Relu(x))``.

Exporters of frameworks that compute in NHWC put one before and one behind each convolution. What is left is moved to
the integer side of a DequantizeLinear.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewright.compiler.graph.graph import Graph, Node, Tensor
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.graph.value_tables import BINARY, UNARY
from tilewright.compiler.passes.recognise.function_tables import same_parameters
from tilewright.compiler.passes.recognise.remove_identity import rename

_Perm = tuple[int, ...]
_LAYOUTS: tuple[_Perm, ...] = ((0, 2, 3, 1), (0, 3, 1, 2))
_ELEMENTWISE = UNARY | {"Identity", "Dropout", "Cast", "Clip"}
_REDUCTIONS = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"}
_IDENTITY = (0, 1, 2, 3)


class SinkTransposes(Pass):
    """Replace ``op(T(x), …)`` by ``T(op(x, …))`` where op does not care, and ``T⁻¹(T(x))`` by x."""

    def apply(self, graph: Graph) -> Graph:
        if not any(node.op == "Transpose" and _perm(node) in _LAYOUTS for node in graph.nodes):
            return graph
        state = _Sinking(graph)
        for node in graph.nodes:
            state.add(node)
        return _without_pairs(_raised(_used(graph.with_(
            nodes=tuple(state.nodes), tensors=state.tensors, constants=state.constants))))


def _perm(node: Node) -> _Perm:
    return tuple(node.attrs.get("perm", ()))


class _Sinking:
    """The graph so far, and which values are transposes of which others."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.tensors: dict[str, Tensor] = dict(graph.tensors)
        self.constants: dict[str, np.ndarray] = dict(graph.constants)
        self.transposed: dict[str, tuple[str, _Perm]] = {}

    def add(self, node: Node) -> None:
        """Add a node, or what computes the same with its transposes behind it."""
        if node.op == "Transpose" and len(_perm(node)) == len(_IDENTITY):
            self.transpose(node, node.inputs[0], _perm(node))
            return
        perms = {self.transposed[name][1] for name in node.inputs if name in self.transposed}
        rewrite = _REWRITES.get(node.op, _elementwise if node.op in _ELEMENTWISE | BINARY else None)
        if len(perms) == 1 and rewrite is not None and self.shape(node.output) is not None:
            (perm,) = perms
            free = [name for name in node.inputs if name and name not in self.transposed and name not in self.constants]
            if not free and (new := rewrite(self, node, perm)) is not None:
                self.sunk(node, new, perm)
                return
        self.nodes.append(node)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a tensor."""
        return self.tensors[name].shape

    def transpose(self, node: Node, source: str, perm: _Perm) -> None:
        """Add a transpose, of a transpose as of one."""
        if source in self.transposed:
            source, first = self.transposed[source]
            perm = tuple(first[axis] for axis in perm)
        if perm == _IDENTITY and node.output not in self.graph.outputs:
            # An Identity is not for the core: RemoveIdentity comes later.
            self.nodes.append(Node("Identity", (source,), node.output, {}, node.onnx_nodes))
            return
        if perm in _LAYOUTS:
            self.transposed[node.output] = source, perm
        self.nodes.append(node.with_(inputs=(source,), attrs={"perm": perm}))

    def sunk(self, node: Node, new: Node, perm: _Perm) -> None:
        """Add ``new``, which computes ``node`` before its transposes, and the transpose behind it."""
        inner = f"{node.output}:untransposed"
        outer = self.tensors[node.output]
        shape = [0] * len(perm)
        for axis, extent in zip(perm, outer.shape or (), strict=True):
            shape[axis] = extent
        self.tensors[inner] = Tensor(inner, tuple(shape), outer.dtype)
        self.nodes.append(new.with_(output=inner))
        self.transpose(Node("Transpose", (inner,), node.output, {"perm": perm}), inner, perm)

    def sources(self, node: Node, perm: _Perm, broadcast: bool = True) -> tuple[str, ...]:
        """Return the inputs before their transposes; constants are transposed back where they are ``broadcast``."""
        return tuple(self.transposed[name][0] if name in self.transposed else
                     self.untransposed(name, perm) if broadcast and name in self.constants else name
                     for name in node.inputs)

    def untransposed(self, name: str, perm: _Perm) -> str:
        """Return a constant transposed back."""
        value = self.constants[name]
        if value.size == 1 or value.ndim > len(perm):
            return name
        full = value.reshape((1,) * (len(perm) - value.ndim) + value.shape)
        return self.constant(f"{name}:untransposed{perm[1]}", np.transpose(full, np.argsort(perm)))

    def constant(self, name: str, value: np.ndarray) -> str:
        """Add a constant and return its name."""
        self.constants[name] = np.ascontiguousarray(value)
        return name

    def integers(self, name: str) -> list[int] | None:
        """Return a constant list of integers."""
        value = self.constants.get(name)
        return None if value is None else [int(each) for each in value.ravel()]


_Rewrite = Callable[[_Sinking, Node, _Perm], Node | None]


def _elementwise(state: _Sinking, node: Node, perm: _Perm) -> Node | None:
    return node.with_(inputs=state.sources(node, perm))


def _quantisation(state: _Sinking, node: Node, perm: _Perm) -> Node | None:
    if any(state.constants[name].size != 1 for name in node.inputs[1:] if name in state.constants):
        return None
    return node.with_(inputs=state.sources(node, perm, broadcast=False))


def _along_axis(state: _Sinking, node: Node, perm: _Perm) -> Node | None:
    if node.op == "Softmax" and 0 < state.graph.opset < 13:
        return None
    axis = int(node.attrs.get("axis", -1)) % len(perm)
    if any(name in state.constants for name in node.inputs) and node.op == "Concat":
        return None
    return node.with_(inputs=state.sources(node, perm)).with_attrs(axis=perm[axis])


def _pad(state: _Sinking, node: Node, perm: _Perm) -> Node | None:
    pads = state.integers(node.inputs[1]) if len(node.inputs) > 1 else None
    if pads is None or len(pads) != 2 * len(perm) or (len(node.inputs) > 3 and node.inputs[3]):
        return None
    moved = [0] * len(pads)
    for axis, source in enumerate(perm):
        moved[source], moved[source + len(perm)] = pads[axis], pads[axis + len(perm)]
    name = state.constant(f"{node.output}:pads", np.array(moved, np.int64))
    return node.with_(inputs=(state.sources(node, perm, broadcast=False)[0], name, *node.inputs[2:]))


def _reduction(state: _Sinking, node: Node, perm: _Perm) -> Node | None:
    axes = node.attrs.get("axes")
    if len(node.inputs) > 1 and node.inputs[1]:
        axes = state.integers(node.inputs[1])
    if axes is None or not node.attrs.get("keepdims", 1):
        return None
    moved = [perm[int(axis) % len(perm)] for axis in axes]
    source = state.sources(node, perm, broadcast=False)[0]
    if len(node.inputs) == 1:
        return node.with_(inputs=(source,)).with_attrs(axes=tuple(moved))
    name = state.constant(f"{node.output}:axes", np.array(moved, np.int64))
    return node.with_(inputs=(source, name))


def _slice(state: _Sinking, node: Node, perm: _Perm) -> Node | None:
    axes = state.integers(node.inputs[3]) if len(node.inputs) > 3 else None
    if axes is None:
        return None
    moved = np.array([perm[axis % len(perm)] for axis in axes], np.int64)
    name = state.constant(f"{node.output}:axes", moved)
    return node.with_(inputs=(state.sources(node, perm, broadcast=False)[0], *node.inputs[1:3], name,
                              *node.inputs[4:]))


def _resize(state: _Sinking, node: Node, perm: _Perm) -> Node | None:
    sized = [index for index in (2, 3) if len(node.inputs) > index and node.inputs[index]]
    if len(node.inputs) < 3 or len(sized) != 1 or "axes" in node.attrs:
        return None
    value = state.constants.get(node.inputs[sized[0]])
    if value is None or value.size != len(perm):
        return None
    moved = np.empty_like(value)
    moved[list(perm)] = value
    name = state.constant(f"{node.output}:size", moved)
    inputs = [state.sources(node, perm, broadcast=False)[0], *node.inputs[1:]]
    inputs[sized[0]] = name
    return node.with_(inputs=tuple(inputs))


_REWRITES: Mapping[str, _Rewrite] = {
    "QuantizeLinear": _quantisation, "DequantizeLinear": _quantisation, "Concat": _along_axis, "Softmax": _along_axis,
    "Pad": _pad, "Slice": _slice, "Resize": _resize, **dict.fromkeys(_REDUCTIONS, _reduction)}


def _used(graph: Graph) -> Graph:
    """Drop nodes whose result nothing reads."""
    needed, nodes = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if node.output in needed:
            nodes.append(node)
            needed |= set(node.inputs)
    return graph.with_(nodes=tuple(reversed(nodes)))


def _raised(graph: Graph) -> Graph:
    """Replace ``T(DQ(x))`` by ``DQ(T(x))``: integers are a quarter of the bytes, and may not have to move at all."""
    nodes: list[Node] = []
    tensors = dict(graph.tensors)
    makers: dict[str, Node] = {node.output: node for node in graph.nodes}
    for node in graph.nodes:
        source = makers.get(node.inputs[0]) if node.op == "Transpose" else None
        scalar: Any = source is not None and source.op == "DequantizeLinear" and all(
            name in graph.constants and graph.constants[name].size == 1 for name in source.inputs[1:] if name)
        if source is None or not scalar or source.inputs[0] in graph.constants:
            nodes.append(node)
            continue
        inner = f"{node.output}:integer"
        tensors[inner] = Tensor(inner, tensors[node.output].shape, tensors[source.inputs[0]].dtype)
        nodes += [node.with_(inputs=source.inputs[:1], output=inner),
                  source.with_(inputs=(inner, *source.inputs[1:]), output=node.output)]
    return _used(graph.with_(nodes=tuple(nodes), tensors=tensors))


def _without_pairs(graph: Graph) -> Graph:
    """Replace ``Q(DQ(x))`` of one quantisation by x: between the two, there was a transpose."""
    for node in graph.nodes:
        source = graph.producer(node.inputs[0]) if node.op == "QuantizeLinear" else None
        if source is not None and source.op == "DequantizeLinear" and node.output not in graph.outputs \
                and same_parameters(graph, source.inputs[1:], node.inputs[1:]):
            quantize = graph.producer(node.output)
            assert quantize is not None
            graph = rename(graph, {node.output: source.inputs[0]}, without=quantize)
    return _used(graph)
