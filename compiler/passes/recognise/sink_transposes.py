"""Move transposes between NHWC and NCHW down until they meet their inverses: ``Relu(T(x))`` becomes ``T(Relu(x))``.

Exporters of frameworks that compute in NHWC put one before and one behind each convolution.
"""

from collections.abc import Callable, Sequence
from types import UnionType

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxBinary,
    OnnxCast,
    OnnxConcat,
    OnnxDequantizeLinear,
    OnnxDropout,
    OnnxGather,
    OnnxIdentity,
    OnnxOperator,
    OnnxPad,
    OnnxQuantizeLinear,
    OnnxReduction,
    OnnxResize,
    OnnxSlice,
    OnnxSoftmax,
    OnnxTranspose,
    OnnxUnary,
)
from tilewright.compiler.graph.rewrite import Pass

__all__ = ["SinkTransposes"]

_Perm = tuple[int, ...]
_LAYOUTS: tuple[_Perm, ...] = ((0, 2, 3, 1), (0, 3, 1, 2))
_Elementwise = OnnxUnary | OnnxBinary | OnnxIdentity | OnnxDropout | OnnxCast
_IDENTITY = (0, 1, 2, 3)


class SinkTransposes(Pass):
    """Replace ``op(T(x), …)`` by ``T(op(x, …))`` where op does not care, and ``T⁻¹(T(x))`` by x."""

    def apply(self, graph: Graph) -> Graph:
        if not any(isinstance(node.operator, OnnxTranspose) and _perm(node.operator) in _LAYOUTS
                   for node in graph.nodes):
            return graph
        state = _Sinking(graph)
        for node in graph.nodes:
            state.add(node)
        return graph.with_(nodes=state.nodes, tensors=state.tensors, constants=state.constants).without_unread()


def _perm(transpose: OnnxTranspose) -> _Perm:
    return transpose.perm or ()


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
        if isinstance(node.operator, OnnxTranspose) and len(_perm(node.operator)) == len(_IDENTITY):
            self.transpose(node, node.inputs[0], _perm(node.operator))
            return
        perms = {self.transposed[name][1] for name in node.inputs if name in self.transposed}
        rewrite = next((rewrite for kinds, rewrite in _REWRITES if isinstance(node.operator, kinds)), None)
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
            self.nodes.append(Node(OnnxIdentity(), (source,), node.output, node.onnx_nodes))
            return
        if perm in _LAYOUTS:
            self.transposed[node.output] = source, perm
        self.nodes.append(node.with_(operator=OnnxTranspose({"perm": perm}), inputs=(source,)))

    def sunk(self, node: Node, new: Node, perm: _Perm) -> None:
        """Add ``new``, which computes ``node`` before its transposes, and the transpose behind it."""
        inner = f"{node.output}:untransposed"
        outer = self.tensors[node.output]
        shape = [0] * len(perm)
        for axis, extent in zip(perm, outer.shape or (), strict=True):
            shape[axis] = extent
        self.tensors[inner] = Tensor(inner, tuple(shape), outer.dtype)
        self.nodes.append(new.with_(output=inner))
        self.transpose(Node(OnnxTranspose({"perm": perm}), (inner,), node.output), inner, perm)

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
        """Add a constant and return its name, another one where a constant of the file has this one."""
        while name in self.constants and not np.array_equal(self.constants[name], value):
            name += ":untransposed"
        self.constants[name] = np.ascontiguousarray(value)
        return name

    def integers(self, name: str) -> list[int] | None:
        """Return a constant list of integers."""
        value = self.constants.get(name)
        return None if value is None else [int(each) for each in value.ravel()]


_Kinds = type[OnnxOperator] | UnionType
_Rewrite = Callable[[_Sinking, Node, _Perm], Node | None]


def _elementwise(state: _Sinking, node: Node, perm: _Perm) -> Node | None:
    return node.with_(inputs=state.sources(node, perm))


def _quantisation(state: _Sinking, node: Node, perm: _Perm) -> Node | None:
    if any(state.constants[name].size != 1 for name in node.inputs[1:] if name in state.constants):
        return None
    return node.with_(inputs=state.sources(node, perm, broadcast=False))


def _along_axis(state: _Sinking, node: Node, perm: _Perm) -> Node | None:
    operator = node.operator
    assert isinstance(operator, OnnxSoftmax | OnnxConcat)
    if isinstance(operator, OnnxSoftmax) and (0 < state.graph.opset < 13 or node.output in state.graph.outputs):
        return None     # What leaves the model is float: a Transpose behind it would be the host core's.
    if any(name in state.constants for name in node.inputs) and isinstance(operator, OnnxConcat):
        return None
    axis = int(operator.axis) % len(perm)
    return node.with_(operator=operator.with_attributes(axis=perm[axis]), inputs=state.sources(node, perm))


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
    operator = node.operator
    assert isinstance(operator, OnnxReduction)
    axes: Sequence[int] | None = operator.axes
    if len(node.inputs) > 1 and node.inputs[1]:
        axes = state.integers(node.inputs[1])
    if axes is None or not operator.keepdims:
        return None
    moved = [perm[int(axis) % len(perm)] for axis in axes]
    source = state.sources(node, perm, broadcast=False)[0]
    if len(node.inputs) == 1:
        return node.with_(operator=operator.with_attributes(axes=tuple(moved)), inputs=(source,))
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


def _looked_up(state: _Sinking, node: Node, perm: _Perm) -> Node | None:
    """Take a Gather that reads a constant list at computed places, each element by itself."""
    table = state.constants.get(node.inputs[0])
    if table is None or table.ndim != 1:
        return None
    return node.with_(inputs=state.sources(node, perm, broadcast=False))


def _resize(state: _Sinking, node: Node, perm: _Perm) -> Node | None:
    sized = [index for index in (2, 3) if len(node.inputs) > index and node.inputs[index]]
    operator = node.operator
    if len(node.inputs) < 3 or len(sized) != 1 or not isinstance(operator, OnnxResize) or operator.axes is not None:
        return None
    value, shape = state.constants.get(node.inputs[sized[0]]), state.shape(node.inputs[0])
    if value is None or value.size != len(perm):
        return None
    same = value == (1 if sized[0] == 2 else np.array(shape or (0,) * len(perm)))
    if operator.mode != "nearest" and same[1] and not same[list(perm).index(1)]:
        return None     # rows and columns of an image, which the datapath resizes where they are
    moved = np.empty_like(value)
    moved[list(perm)] = value
    name = state.constant(f"{node.output}:size", moved)
    inputs = [state.sources(node, perm, broadcast=False)[0], *node.inputs[1:]]
    inputs[sized[0]] = name
    return node.with_(inputs=tuple(inputs))


_REWRITES: tuple[tuple[_Kinds, _Rewrite], ...] = (
    (OnnxQuantizeLinear | OnnxDequantizeLinear, _quantisation), (OnnxConcat | OnnxSoftmax, _along_axis),
    (OnnxPad, _pad), (OnnxSlice, _slice), (OnnxResize, _resize), (OnnxReduction, _reduction),
    (OnnxGather, _looked_up), (_Elementwise, _elementwise))
