"""One operation of the graph."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


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
