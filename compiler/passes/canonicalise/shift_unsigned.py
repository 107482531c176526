"""uint8 activations become int8: every value, zero point and bound is 128 less, and every sum is the same."""

from dataclasses import replace

from tilewright.compiler.graph.graph import Graph, Node
from tilewright.compiler.graph.rewrite import Pass, PassError

_SHIFT = 128


class ShiftUnsigned(Pass):
    """Replace each quantised uint8 tensor by an int8 one, marked ``unsigned``."""

    def apply(self, graph: Graph) -> Graph:
        shifted = {
            name: replace(tensor, dtype="int8", zero_point=tensor.zero_point - _SHIFT, unsigned=True)
            for name, tensor in graph.tensors.items() if tensor.dtype == "uint8" and tensor.zero_point is not None}

        def shift(node: Node) -> Node:
            if node.output in shifted and node.op == "QPad":
                return node.with_attrs(value=node.attrs["value"] - _SHIFT)
            if node.output not in shifted or "low" not in node.attrs:
                return node
            return node.with_attrs(low=node.attrs["low"] - _SHIFT, high=node.attrs["high"] - _SHIFT)

        return graph.mapped(shift).with_(tensors={**graph.tensors, **shifted})

    def ensures(self, graph: Graph) -> None:
        wrong = [node.name for node in graph.nodes
                 if not -128 <= node.attrs.get("low", 0) <= node.attrs.get("high", 0) <= 127]
        if wrong:
            raise PassError(f"Bounds must be int8 and in order, not those of {', '.join(wrong)}")
