"""One operation of the graph: an operator, the tensors that it reads and those that it writes."""

from dataclasses import dataclass, replace
from typing import Any

__all__ = ["GraphOperator", "Node"]


@dataclass(frozen=True)
class GraphOperator:
    """The base of all operators; the fields of each are its attributes.

    See :mod:`tilewright.compiler.graph.integer_operators` and :mod:`~tilewright.compiler.graph.move_operators` for ours
    and :mod:`~tilewright.compiler.graph.onnx_operators` for ONNX's.
    """

    @property
    def name(self) -> str:
        """Name for messages and for the host core's kernels. Select by type, not by name."""
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class Node:
    """An operator at work; ``inputs`` and ``output`` name tensors or constants, an absent input is ``""``.

    ``onnx_nodes`` names the nodes of the model that it stands for, in execution order. ``reason`` says of an ONNX
    operator why no operator of the datapath stands for it.
    """

    operator: GraphOperator
    inputs: tuple[str, ...]
    output: str
    onnx_nodes: tuple[str, ...] = ()
    reason: str = ""

    @property
    def name(self) -> str:
        """Name for messages and layers: that of the first ONNX node, or of the output."""
        return self.onnx_nodes[0] if self.onnx_nodes else self.output

    @property
    def op(self) -> str:
        """Name of the operator, for messages."""
        return self.operator.name

    def with_(self, **changes: Any) -> "Node":
        """Return a copy with ``changes`` applied."""
        return replace(self, **changes)

    def with_operator(self, **changes: Any) -> "Node":
        """Return a copy with some fields of the operator replaced."""
        return replace(self, operator=replace(self.operator, **changes))
