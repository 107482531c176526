"""The graph that every pass takes and returns; it is never changed in place."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import numpy as np
from immutables import Map

from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.node_list import NodeList

__all__ = ["Border", "Graph", "Tensor"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Tensor:
    """The type of a value, and how its integers stand for real numbers: ``scale * (q - zero_point)``.

    ``shape`` is ONNX's, batch included; None, with a ``dtype`` of "", where not known yet. ``scale`` and
    ``zero_point`` are None for floats, and for integers until a pass finds the operator that quantises them.
    ``unsigned`` tells of an int8 tensor that it is the model's uint8 one, less 128.
    """

    name: str
    shape: tuple[int, ...] | None
    dtype: str
    scale: np.float32 | None = None
    zero_point: int | None = None
    unsigned: bool = False

    @property
    def quantised(self) -> bool:
        """Whether the tensor's scale is known."""
        return self.scale is not None

    @property
    def parameters(self) -> tuple[np.float32, int]:
        """Scale and zero point of a tensor that has them."""
        if self.scale is None or self.zero_point is None:
            raise ValueError(f"Tensor {self.name!r} must be quantised")
        return self.scale, self.zero_point

    def same_quantisation(self, other: Self) -> bool:
        """Tell whether equal integers of both stand for equal numbers."""
        return (self.dtype, self.scale, self.zero_point) == (other.dtype, other.scale, other.zero_point)


@dataclass(frozen=True, slots=True)
class Border:
    """The border of a model: the names of its outputs in their order, and how inputs and outputs are written.

    Attributes
    ----------
    outputs : tuple of str
        One name for each of ``Graph.outputs``, which are the values behind them; several may have the same. Empty where
        the values have the names of the outputs.
    types : mapping of str to str
        Of inputs and outputs that have another type in the model than their values.
    defaults : tuple of str
        Inputs with a default, which are constants here.
    state : mapping of str to str
        Outputs that inputs are in the next call, by input, as the file says.
    """

    outputs: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    defaults: tuple[str, ...] = ()
    state: Mapping[str, str] = field(default_factory=dict)

    def type_of(self, name: str, dtype: str) -> str:
        """Return the type that an input or output has in the model, whose value has ``dtype``."""
        return self.types.get(name, dtype) if dtype == "float32" else dtype


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in execution order, the types of all values, and the constants among them.

    ``opset`` is the version of the operators, 0 for the newest. ``border`` is what users see of ``inputs`` and
    ``outputs``. Changed copies share what is the same, and cost as much as the change (see
    :mod:`tilewright.compiler.graph.node_list`).
    """

    name: str
    nodes: Sequence[Node]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, np.ndarray]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opset: int = 0
    border: Border = Border()
    _nodes: NodeList = field(init=False, repr=False, compare=False)
    _tensors: Map[str, Tensor] = field(init=False, repr=False, compare=False)
    _constants: Map[str, np.ndarray] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        nodes = self.nodes if isinstance(self.nodes, NodeList) else NodeList(self.nodes)
        for name, value in (("nodes", nodes), ("tensors", _map(self.tensors)), ("constants", _map(self.constants))):
            object.__setattr__(self, name, value)
            object.__setattr__(self, f"_{name}", value)

    def with_(self, **changes: Any) -> "Graph":
        """Return a copy with ``changes`` applied."""
        return replace(self, **changes)

    def with_tensors(self, *tensors: Tensor) -> "Graph":
        """Return a copy with the types of some values added, or replaced."""
        return replace(self, tensors=self._tensors.update({tensor.name: tensor for tensor in tensors}))

    def with_constants(self, values: Mapping[str, np.ndarray]) -> "Graph":
        """Return a copy with constants added."""
        return replace(self, constants=self._constants.update(values))

    def all_constant(self, values: Iterable[str]) -> bool:
        """Tell whether all ``values`` are constants; an absent one, ``""``, counts as one."""
        return all(value in self._constants for value in values if value)

    def producer(self, value: str) -> Node | None:
        """Return the node that computes ``value``, if one does."""
        return self._nodes.producer(value)

    def readers(self, value: str) -> tuple[Node, ...]:
        """Return the nodes that read ``value``, in order."""
        return self._nodes.readers(value)

    def only_reader(self, value: str) -> Node | None:
        """Return the one node that reads ``value``, once, if ``value`` is seen nowhere else."""
        return None if self._nodes.uses(value) != 1 or value in self.outputs else self._nodes.readers(value)[0]

    def is_read(self, value: str) -> bool:
        """Tell whether a node reads ``value``, or it is an output of the model."""
        return self._nodes.uses(value) > 0 or value in self.outputs

    def in_order(self, values: Iterable[str]) -> tuple[Node, ...]:
        """Return the nodes that compute ``values``, in order."""
        return self._nodes.in_order(values)

    def replaced(self, old: Iterable[Node], *new: Node) -> "Graph":
        """Return a copy in which ``new`` stand for all of ``old``, at the place of the last of them."""
        return replace(self, nodes=self._nodes.replaced(old, new))

    def removed(self, node: Node) -> "Graph":
        """Return a copy without a node."""
        return self.replaced((node,))

    def replace_all_uses(self, value: str, other: str) -> "Graph":
        """Return a copy in which every node that reads ``value`` reads ``other`` instead."""
        return replace(self, nodes=self._nodes.with_inputs(value, other))

    def renamed(self, value: str, other: str) -> "Graph":
        """Return a copy in which a computed ``value`` is called ``other``, by its producer and readers."""
        producer = self.producer(value)
        graph = self if producer is None else self.replaced((producer,), producer.with_(output=other))
        return graph.replace_all_uses(value, other)

    def with_output(self, value: str, other: str) -> "Graph":
        """Return a copy in which ``other`` stands for the output that ``value`` stood for, under its name."""
        names = self.border.outputs or self.outputs
        return replace(self, border=replace(self.border, outputs=names),
                       outputs=tuple(other if each == value else each for each in self.outputs))

    def mapped(self, rewrite: Callable[[Node], Node]) -> "Graph":
        """Return a copy with every node replaced by ``rewrite(node)``."""
        return replace(self, nodes=self._nodes.mapped(rewrite))

    def without_unread(self, kept: Callable[[Node], bool] = lambda node: False) -> "Graph":
        """Return a copy without nodes whose result nothing reads, except those in ``kept``."""
        needed, nodes = set(self.outputs), []
        for node in reversed(self.nodes):
            if node.output in needed or kept(node):
                nodes.append(node)
                needed |= set(node.inputs)
        return replace(self, nodes=tuple(reversed(nodes)))


def _map(items: Mapping[str, _T]) -> Map[str, _T]:
    return items if isinstance(items, Map) else Map(items)
