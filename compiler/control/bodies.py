"""The body of a loop, put into the graph around it once for each step, under names of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from tilewright.compiler.control.step_names import step_name

__all__ = ["Body", "operators_of"]


def operators_of(graph: onnx.GraphProto) -> int:
    """Return how many operators a graph has, those of the graphs within it included."""
    return sum(1 + sum(operators_of(inner) for each in node.attribute for inner in (each.g, *each.graphs))
               for node in graph.node)


@dataclass(frozen=True, slots=True)
class Body:
    """The graph of a loop called ``base``."""

    base: str
    graph: onnx.GraphProto

    def constants(self) -> list[onnx.TensorProto]:
        """Return the constants of the body, which all steps share."""
        found = []
        for tensor in self.graph.initializer:
            copied = onnx.TensorProto()
            copied.CopyFrom(tensor)
            copied.name = f"{self.base}:{tensor.name}"
            found.append(copied)
        return found

    def step(self, number: int, inputs: Sequence[str]) -> tuple[list[onnx.NodeProto], list[str]]:
        """Return the nodes of a step that reads ``inputs``, and its outputs."""
        names = {value.name: name for value, name in zip(self.graph.input, inputs, strict=True)}
        names |= {tensor.name: f"{self.base}:{tensor.name}" for tensor in self.graph.initializer}
        names |= {name: step_name(f"{self.base}:{name}", number)
                  for node in self.graph.node for name in node.output if name}
        nodes = []
        for node in self.graph.node:
            copied = onnx.NodeProto()
            copied.CopyFrom(node)
            copied.name = step_name(f"{self.base}:{node.name or node.output[0]}", number)
            _rename(copied, names)
            nodes.append(copied)
        return nodes, [names.get(value.name, value.name) for value in self.graph.output]


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Give what a node reads and makes its new names, in place, and in the graphs within it too."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            inner = {old: new for old, new in names.items() if old not in own}
            for each in graph.node:
                _rename(each, inner)
            for value in graph.output:
                value.name = inner.get(value.name, value.name)
