"""The graph of a stream as it is written: nodes, and rings of earlier elements that are outputs and inputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.control.node_writer import node_name
from tilewright.compiler.stream.time_axis import StreamError, TimeAxis

__all__ = ["StreamGraph"]


@dataclass
class StreamGraph:
    """The window's graph as far as it is known, and the stream's as far as it is written.

    Attributes
    ----------
    shapes : dict of str to tuple of int
        In the window.
    constants : dict of str to ndarray
    axes : dict of str to TimeAxis
        Of the tensors that arrive frame by frame, by their name in both graphs.
    fixed : set of str
        Tensors that depend on constants alone.
    nodes, added : list
        Nodes and constants of the stream.
    state : dict of str to tuple of int
        Inputs that are state, with their shapes; the output of each is its name with ``next`` at the end.
    calls : int or None
        Calls in which a window becomes whole, once something has read one.
    whole : list of str
        Nodes that read the whole window.
    """

    shapes: dict[str, tuple[int, ...]]
    constants: dict[str, np.ndarray]
    axes: dict[str, TimeAxis]
    fixed: set[str]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    added: list[onnx.TensorProto] = field(default_factory=list)
    state: dict[str, tuple[int, ...]] = field(default_factory=dict)
    calls: int | None = None
    whole: list[str] = field(default_factory=list)
    _rings: dict[tuple[str, int], str] = field(default_factory=dict)

    @property
    def pairs(self) -> dict[str, str]:
        """The output that each input which is state is in the next call."""
        return {name: _after(name) for name in self.state}

    def timed(self, node: onnx.NodeProto) -> list[str]:
        """Return the inputs of a node that arrive frame by frame."""
        return [name for name in node.input if name in self.axes]

    def constant(self, name: str, values: Sequence[int]) -> str:
        """Add a constant of int64, and return its name."""
        if name not in {each.name for each in self.added}:
            self.added.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def add(self, op: str, inputs: Sequence[str], output: str, **attributes: int) -> str:
        """Add a node, and return its output."""
        self.nodes.append(helper.make_node(op, inputs, [output], output, **attributes))
        return output

    def kept(self, name: str, count: int) -> str:
        """Return a tensor with ``count`` elements of the calls before in front of its new ones."""
        if count == 0:
            return name
        if (name, count) not in self._rings:
            self._rings[name, count] = self._ring(name, count)
        return self._rings[name, count]

    def delayed(self, name: str, count: int) -> str:
        """Return a tensor as it was ``count`` elements before."""
        if count == 0:
            return name
        time = self.axes[name]
        return self._part(self.kept(name, count), f"{name}:delayed {count}", time.axis, 0, time.hop)

    def window(self, node: onnx.NodeProto, name: str) -> str:
        """Return a tensor's whole window.

        Raises
        ------
        StreamError
            If no call ends with the window's last element, or another one than that of nodes before.
        """
        time = self.axes[name]
        end, rest = divmod(time.lead + time.length, time.hop)
        if time.lead < 0 or rest or self.calls not in (None, end):
            raise StreamError(node_name(node), f"reads all {time.length} elements of {name!r}, the last of which does "
                              "not end a call", "give the model a window whose frames its strides use up")
        self.calls = end
        if time.length > time.hop:
            self.whole.append(node_name(node))
        if time.length >= time.hop:
            return self.kept(name, time.length - time.hop)
        return self._part(name, f"{name}:last", time.axis, time.hop - time.length, time.hop)

    def _ring(self, name: str, count: int) -> str:
        """Write a ring, quantised as the tensor is."""
        time, past = self.axes[name], f"{self._before_levels(name)}:past {count}"
        shape = list(self.shapes[name])
        shape[time.axis] = count
        self.state[past] = tuple(shape)
        levels = self._quantisation(name)
        joined = self.add("Concat", [self._levels(past, levels), name], f"{past}:joined", axis=time.axis)
        joined = self._levels(joined, levels)
        kept = self._part(joined, f"{past}:kept", time.axis, time.hop, time.hop + count)
        kept = self._levels(kept, levels)
        self.add("Identity", [kept], _after(past))
        return joined

    def _part(self, name: str, output: str, axis: int, start: int, stop: int) -> str:
        """Write the elements from ``start`` to ``stop`` along an axis."""
        bounds = [self.constant(f":at {each}", [each]) for each in (start, stop, axis)]
        return self.add("Slice", [name, *bounds], output)

    def _maker(self, name: str, op: str) -> onnx.NodeProto | None:
        """Return the node that makes a tensor, if it is an ``op``."""
        return next((node for node in reversed(self.nodes) if name in node.output and node.op_type == op), None)

    def _quantisation(self, name: str) -> list[str]:
        """Return scale and zero point of a tensor that is dequantised; none of another."""
        maker = self._maker(name, "DequantizeLinear")
        return [] if maker is None else list(maker.input[1:])

    def _before_levels(self, name: str) -> str:
        """Return the name that a tensor had before it became levels; its own, if another ring has that."""
        back = self._maker(name, "DequantizeLinear")
        levels = None if back is None else self._maker(back.input[0], "QuantizeLinear")
        found = name if levels is None else levels.input[0]
        return name if any(each.startswith(f"{found}:past ") for each in self.state) else found

    def _levels(self, name: str, quantisation: Sequence[str]) -> str:
        """Write a tensor as levels that are dequantised."""
        if not quantisation:
            return name
        quantised = self.add("QuantizeLinear", [name, *quantisation], f"{name}:levels")
        return self.add("DequantizeLinear", [quantised, *quantisation], f"{name}:of levels")

    def inputs(self) -> list[onnx.ValueInfoProto]:
        """Return the inputs that are state."""
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in self.state.items()]

    def outputs(self) -> list[onnx.ValueInfoProto]:
        """Return the outputs that are state."""
        return [helper.make_tensor_value_info(_after(name), TensorProto.FLOAT, shape)
                for name, shape in self.state.items()]


def _after(name: str) -> str:
    return f"{name}:next"
