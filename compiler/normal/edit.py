"""A graph being rewritten: constants and nodes with names of their own are added, and readers are led elsewhere."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.values import constant, is_constant

__all__ = ["Edit"]


class Edit:
    """A graph of onnx-ir, and the names in it.

    Attributes
    ----------
    graph : onnx_ir.Graph
    opset : int
        Version of ONNX's own operators.
    notes : list of str
        Sentences on what a rule that is not exact has changed.
    """

    def __init__(self, graph: ir.Graph) -> None:
        self.graph, self.opset = graph, graph.opset_imports.get("", 1)
        self.notes: list[str] = []
        self._names = {value.name for node in graph.all_nodes() for value in node.outputs}
        self._names |= {*graph.initializers, *(value.name for value in graph.inputs)}
        self._nodes = {node.name for node in graph.all_nodes()}

    def nodes(self) -> list[ir.Node]:
        """Return the nodes as they are now, in order; those that a rule removes later are among them."""
        return list(self.graph)

    def note(self, sentence: str) -> None:
        """Tell the user something, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def name(self, like: str | None) -> str:
        """Return a name of a value that no other has."""
        return _unused(like or "value", self._names)

    def constant(self, array: np.ndarray, like: str | None) -> ir.Value:
        """Add a constant, named after ``like``."""
        name = self.name(like)
        tensor = ir.tensor(np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array), name=name)
        value = ir.Value(name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape))
        self.graph.register_initializer(value)
        return value

    def insert(self, place: ir.Node, op: str, inputs: Sequence[ir.Value | None],
               attributes: Mapping[str, Any] | None = None, *, after: bool = False,
               like: str | None = None) -> ir.Value:
        """Add a node with one output beside ``place``, named after ``like``, and return its output."""
        return self.insert_several(place, op, inputs, 1, attributes, after=after, like=like)[0]

    def insert_several(self, place: ir.Node, op: str, inputs: Sequence[ir.Value | None], count: int,
                       attributes: Mapping[str, Any] | None = None, *, after: bool = False,
                       like: str | None = None) -> Sequence[ir.Value]:
        """Add a node with ``count`` outputs in the same way, and return these."""
        node = ir.node(op, list(inputs), dict(attributes or {}), num_outputs=count)
        base = like or place.name or place.outputs[0].name
        node.name = _unused(f"{base}:{op}", self._nodes)
        for output in node.outputs:
            output.name = self.name(f"{base}:{op}")
        (self.graph.insert_after if after else self.graph.insert_before)(place, node)
        return node.outputs

    def quantised(self, value: ir.Value, like: ir.Node, place: ir.Node, *, after: bool = False) -> ir.Value:
        """Add a Q and a DQ of ``value``, with the parameters of the Q or DQ ``like``, and return the DQ's output."""
        zero = constant(like.inputs[2])
        assert zero is not None
        axis = {"axis": like.attributes["axis"].value} if "axis" in like.attributes and zero.ndim else {}
        levels = self.insert(place, "QuantizeLinear", [value, *like.inputs[1:3]], axis, after=after, like=value.name)
        maker = levels.producer()
        assert maker is not None
        real = self.insert(maker, "DequantizeLinear", [levels, *like.inputs[1:3]], axis, after=True, like=value.name)
        levels.type = ir.TensorType(ir.DataType.from_numpy(zero.dtype))
        real.type = ir.TensorType(ir.DataType.FLOAT)
        levels.shape = real.shape = value.shape
        return real

    def redirect(self, old: ir.Value, new: ir.Value, *, keep: Collection[ir.Node] = ()) -> None:
        """Let the nodes that read ``old``, but for those in ``keep``, read ``new``; an output of the model stays."""
        for use in [each for each in old.uses() if each.node not in keep]:
            use.node.replace_input_with(use.idx, new)

    def replace(self, node: ir.Node, new: ir.Value) -> None:
        """Let ``new`` be the one result of a node that goes: by name, for its readers, as an output of the model."""
        old = node.outputs[0]
        self.redirect(old, new)
        self.hand_on(old, new)
        self.drop(node)

    def hand_on(self, old: ir.Value, new: ir.Value) -> None:
        """Let ``new`` have the name of ``old``, and be the output of the model that it is."""
        for index, output in enumerate(self.graph.outputs):
            if output is old:
                self.graph.outputs[index] = new
        old.name, new.name = self.name(f"{old.name}:replaced"), old.name

    def drop(self, node: ir.Node) -> None:
        """Remove a node whose results nothing reads."""
        self.graph.remove(node, safe=True)

    def is_output(self, value: ir.Value) -> bool:
        """Tell whether a value is an output of the model."""
        return value.is_graph_output()

    def drop_unread(self) -> None:
        """Remove nodes that nothing needs, from the last on, and constants that nothing reads."""
        for node in reversed(list(self.graph)):
            if not any(output.uses() or output.is_graph_output() for output in node.outputs):
                self.graph.remove(node, safe=True)
        for value in list(self.graph.initializers.values()):
            if is_constant(value) and not value.uses() and not value.is_graph_output() and not value.is_graph_input():
                del self.graph.initializers[value.name]


def _unused(base: str, names: set[str | None]) -> str:
    """Return ``base``, or ``base`` with a number behind it, and add it to the names."""
    name, count = base, 1
    while name in names:
        count += 1
        name = f"{base}:{count}"
    names.add(name)
    return name
