"""One float operator, or a matrix product and its bias, between DequantizeLinear and QuantizeLinear."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import BadModelError, UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_nodes import moving_node
from tilewright.compiler.graph.integer_operators import Bounded
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxClip,
    OnnxDequantizeLinear,
    OnnxGlobalMaxPool,
    OnnxMatMul,
    OnnxMaxPool,
    OnnxQuantizeLinear,
    OnnxRelu,
    OnnxView,
)

__all__ = ["Alone", "QdqGroup", "dequantise_before", "type_behind"]

Alone = OnnxMaxPool | OnnxGlobalMaxPool | OnnxRelu | OnnxClip | OnnxView
"""Operators that have no clamp of their own behind them: it is the next group's."""


class QdqGroup:
    """An operator, the Relu or Clip behind it, if there is one, and the QuantizeLinear behind all.

    Behind a MatMul, the Add of a constant belongs to it too.

    Attributes
    ----------
    bias : str
        The constant that an Add behind a MatMul adds, or what dequantises it; ``""`` if there is none.
    kind : Tensor
        The result of the QuantizeLinear.
    clamps : bool
        The Relu or Clip does more than the quantisation, which makes ONNX Runtime compute the operator in float.
    """

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node = graph, node
        self.addition, self.bias = self._added()
        self.clip, self.quantize = self.followers()
        names = (*self.quantize.inputs[1:], "")[:2]
        self.kind = quantisation.activation(graph, self.quantize, self.quantize.output, *names)
        self.scale, self.zero_point = self.kind.parameters
        self.clamps = self.clip is not None and not self._redundant(self.clip)

    @property
    def outputs(self) -> set[str]:
        """Outputs of the nodes that the group's operator stands for, besides the first."""
        return {node.output for node in (self.addition, self.clip, self.quantize) if node is not None}

    def refusal(self, reason: str, way_out: str) -> UnsupportedNodeError:
        """Return the error that says why the group is no integer operator."""
        return UnsupportedNodeError(self.node.name, self.node.op, reason, way_out)

    def require_one_type(self, *tensors: Tensor) -> None:
        """Raise :exc:`UnsupportedNodeError` unless all tensors have the result's type."""
        if any(each.dtype != self.kind.dtype for each in tensors):
            raise self.refusal("its tensors mix int8 and uint8", "quantise all activations to one type")

    def _added(self) -> tuple[Node | None, str]:
        """Return the Add of a constant right behind a MatMul, and that constant's name; None where there is none."""
        following = self.graph.only_reader(self.node.output)
        if not isinstance(self.node.operator, OnnxMatMul) or following is None \
                or not isinstance(following.operator, OnnxAdd):
            return None, ""
        bias = following.inputs[1 if following.inputs[0] == self.node.output else 0]
        source = dequantise_before(self.graph, bias)
        fixed = bias in self.graph.constants or (source is not None and self.graph.all_constant(source.inputs))
        return (following, bias) if fixed else (None, "")

    def followers(self) -> tuple[Node | None, Node]:
        """Return the Relu or Clip after the operator, if there is one, and the QuantizeLinear after them."""
        following = self.graph.only_reader((self.addition or self.node).output)
        if following is not None and isinstance(following.operator, OnnxRelu | OnnxClip) \
                and not isinstance(self.node.operator, Alone):
            clip, following = following, self.graph.only_reader(following.output)
        else:
            clip = None
        if following is None or not isinstance(following.operator, OnnxQuantizeLinear):
            raise self.refusal("its result is not quantised immediately and exactly once, so ONNX Runtime computes it "
                               "in float", "quantise every activation of the model, outputs included")
        return clip, following

    def data_input(self, name: str) -> Tensor:
        """Return the type of the integer tensor of an input, which must be computed."""
        source = dequantise_before(self.graph, name)
        if source is None:
            raise self.refusal(f"its input {name!r} is float", "quantise every activation of the model")
        if source.inputs[0] in self.graph.constants:
            raise self.refusal(f"its input {name!r} is a constant", "fold the constant into a bias")
        return type_behind(self.graph, source)

    def bounds(self, node: Node) -> tuple[int | None, int | None]:
        """Return the integer bounds of a Relu or Clip at the group's quantisation."""
        return tuple(None if bound is None else self.level(bound)  # type: ignore[return-value]
                     for bound in self._float_bounds(node))

    def _float_bounds(self, node: Node) -> tuple[np.float32 | None, np.float32 | None]:
        operator = node.operator
        if isinstance(operator, OnnxRelu):
            return np.float32(0), None
        if not isinstance(operator, OnnxClip):
            return None, None
        found = []
        for name, stated in zip((*node.inputs[1:], "", "")[:2], (operator.min, operator.max), strict=True):
            if name and name not in self.graph.constants:
                raise self.refusal(f"its bound {name!r} is computed while the model runs", "make it a constant")
            value = quantisation.number(self.graph, node, name, "bound") if name else stated
            found.append(None if value is None else np.float32(value))
        return found[0], found[1]

    def level(self, value: np.float32) -> int:
        """Return the integer that a number is quantised to."""
        if np.isnan(value):
            raise BadModelError(f"Node {self.node.name!r} ({self.node.op}) must have numbers as constants, not NaN")
        bounds = np.iinfo(self.kind.dtype)
        with np.errstate(over="ignore"):
            level = np.rint(value / self.scale) + self.zero_point
        return int(np.clip(level, bounds.min, bounds.max))

    def _redundant(self, clip: Node) -> bool:
        """Tell whether saturation does what ``clip`` does."""
        low, high = self._float_bounds(clip)
        bounds = np.iinfo(self.kind.dtype)
        bottom, top = (self.scale * np.float32(int(level) - self.zero_point)
                       for level in (bounds.min, bounds.max))
        return bool((low is None or low <= bottom) and (high is None or high >= top))

    def clamped(self, node: Node) -> Node:
        """Return the group's integer operator with the bounds of the Relu or Clip after it."""
        if self.clip is None or not self.clamps:
            return node
        clamp = moving_node(self.graph, self.clip, "", self.kind.dtype, *self.bounds(self.clip)).operator
        assert isinstance(node.operator, Bounded)
        assert isinstance(clamp, Bounded)
        return node.with_(operator=replace(node.operator, low=clamp.low, high=clamp.high),
                          onnx_nodes=node.onnx_nodes + self.clip.onnx_nodes)


def dequantise_before(graph: Graph, name: str) -> Node | None:
    """Return the DequantizeLinear that computes ``name``, if one does."""
    source = graph.producer(name)
    return source if source is not None and isinstance(source.operator, OnnxDequantizeLinear) else None


def type_behind(graph: Graph, dequantise: Node) -> Tensor:
    """Return the type of the integer tensor that a DequantizeLinear reads, which may be constant."""
    x, scale, zero = (*dequantise.inputs, "")[:3]
    if x in graph.constants and x not in graph.tensors:     # a pass has made it
        levels = graph.constants[x]
        graph = graph.with_tensors(Tensor(x, levels.shape, levels.dtype.name))
    return quantisation.activation(graph, dequantise, x, scale, zero)
