"""The graph every pass takes and returns; never changed in place."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np


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
class Node:
    """One operation; ``inputs`` and ``output`` name tensors or constants, an absent input is ``""``.

    ``onnx_nodes`` names the nodes of the model that it stands for, in execution order. ``reason`` says of an ONNX
    operator why no operator of the datapath stands for it.
    """

    op: str
    inputs: tuple[str, ...]
    output: str
    attrs: Mapping[str, Any] = field(default_factory=dict)
    onnx_nodes: tuple[str, ...] = ()
    reason: str = ""

    @property
    def name(self) -> str:
        """Name for messages and layers: that of the first ONNX node, or of the output."""
        return self.onnx_nodes[0] if self.onnx_nodes else self.output

    def with_(self, **changes: Any) -> "Node":
        """Return a copy with ``changes`` applied."""
        return replace(self, **changes)

    def with_attrs(self, **changes: Any) -> "Node":
        """Return a copy with some attributes replaced."""
        return replace(self, attrs={**self.attrs, **changes})


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in execution order, the types of all values, and the constants among them.

    ``opset`` is the version of the operators, 0 for the newest.
    """

    name: str
    nodes: tuple[Node, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, np.ndarray]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opset: int = 0

    def with_(self, **changes: Any) -> "Graph":
        """Return a copy with ``changes`` applied."""
        return replace(self, **changes)

    def producer(self, value: str) -> Node | None:
        """Return the node that computes ``value``, if one does."""
        return next((node for node in self.nodes if node.output == value), None)

    def readers(self, value: str) -> tuple[Node, ...]:
        """Return the nodes that read ``value``."""
        return tuple(node for node in self.nodes if value in node.inputs)

    def only_reader(self, value: str) -> Node | None:
        """Return the one node that reads ``value``, once, if ``value`` is seen nowhere else."""
        uses = [node for node in self.nodes for name in node.inputs if name == value]
        return uses[0] if len(uses) == 1 and value not in self.outputs else None

    def replaced(self, old: Iterable[Node], new: Node) -> "Graph":
        """Return a copy in which ``new`` stands for all of ``old``, at the place of the last of them."""
        gone = list(old)
        last = max(self.nodes.index(node) for node in gone)
        nodes = [new if i == last else node for i, node in enumerate(self.nodes) if i == last or node not in gone]
        return self.with_(nodes=tuple(nodes))

    def mapped(self, rewrite: Callable[[Node], Node]) -> "Graph":
        """Return a copy with every node replaced by ``rewrite(node)``."""
        return self.with_(nodes=tuple(map(rewrite, self.nodes)))
