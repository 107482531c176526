"""Write the nodes and constants that stand for one node of control flow."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.compiler.control.step_names import step_name

__all__ = ["NodeWriter", "attributes_of", "node_name"]

_Attribute = int | float | Sequence[int]


def node_name(node: onnx.NodeProto) -> str:
    """Return what a node is called in messages: its name, or else that of what it computes."""
    return node.name or next((name for name in node.output if name), node.op_type)


def attributes_of(node: onnx.NodeProto) -> dict[str, object]:
    """Return the values of a node's attributes by name."""
    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


@dataclass
class NodeWriter:
    """Nodes and constants whose names begin with ``base``.

    Attributes
    ----------
    base : str
        Name of the node that they stand for.
    step : int or None
        The step that the nodes written next belong to.
    nodes : list of NodeProto
    constants : dict of str to ndarray
    """

    base: str
    step: int | None = None
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def name(self, what: str) -> str:
        """Return the name of the tensor called ``what``."""
        name = f"{self.base}:{what}"
        return name if self.step is None else step_name(name, self.step)

    def constant(self, what: str, values: np.ndarray) -> str:
        """Add a constant, once for all steps, and return its name."""
        name = f"{self.base}:{what}"
        self.constants[name] = np.ascontiguousarray(values) if values.ndim else values
        return name

    def add(self, op: str, inputs: Sequence[str], what: str, **attributes: _Attribute) -> str:
        """Add a node with one result, and return that."""
        return self.several(op, inputs, [what], **attributes)[0]

    def several(self, op: str, inputs: Sequence[str], whats: Sequence[str], **attributes: _Attribute) -> list[str]:
        """Add a node with results, and return them."""
        results = [self.name(what) for what in whats]
        self.nodes.append(helper.make_node(op, list(inputs), results, name=results[0], **attributes))
        return results

    def hand_on(self, value: str, output: str) -> None:
        """Let ``output``, a result of the node that is stood for, be ``value``."""
        self.nodes.append(helper.make_node("Identity", [value], [output], name=output))

    def initializers(self) -> list[onnx.TensorProto]:
        """Return the constants as a graph holds them."""
        return [numpy_helper.from_array(values, name) for name, values in self.constants.items()]
