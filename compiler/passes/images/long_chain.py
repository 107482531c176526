"""Sums times a long multiplier, as ONNX's operators of int64 write it: one shift of magnitudes and a sign.

``Sign(s) * ((Abs(s) * 2 m + 2 c - 1 + Sign(s)) / 2**(t + 1))`` with s = sums + b is, by the sign of s, the quotient of
|s| m + c, or of 1 less, by 2**t: `isa.integers.long_requantise`; c is its nudge plus half a step. Without biases there
is no Add. Sums that float32 does not hold are those of several products, each by a part of the weights.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.network.integer_scale import LongScale
from tilewright.isa.integers.long_requantise import LONG_BITS, NUDGE_BITS

__all__ = ["LongChain", "channel_numbers", "long_chain"]


@dataclass(frozen=True, slots=True)
class LongChain:
    """The nodes behind a product up to its quantisation, the last, and their constants, by output channel.

    ``parts`` are more products of the same tensor, whose sums are added to those of the first.
    """

    nodes: tuple[Node, ...]
    parts: tuple[Node, ...]
    biases: np.ndarray
    multipliers: np.ndarray
    addends: np.ndarray
    divisors: np.ndarray

    @property
    def scale(self) -> LongScale | None:
        """The datapath's scale with these numbers; None if it has none."""
        shifts = [each.bit_length() - 2 for each in self.divisors.tolist()]
        factors = [each // 2 for each in self.multipliers.tolist()]
        rounded = [(each + 1) // 2 - (1 << shift - 1) for each, shift in zip(self.addends.tolist(), shifts, strict=True)
                   ] if min(shifts) > 0 else []
        exact = all(1 << shift + 1 == each for shift, each in zip(shifts, self.divisors.tolist(), strict=True)) and all(
            each >> LONG_BITS - 1 == 1 for each in factors) and not (self.multipliers & 1).any() and bool(
            (self.addends & 1).all())
        for twice in (False, True):
            if exact and rounded == [1 << NUDGE_BITS if twice and shift > LONG_BITS else 0 for shift in shifts]:
                return LongScale(tuple(factors), tuple(shifts), twice)
        return None


def long_chain(graph: Graph, node: Node) -> LongChain | None:
    """Return the chain behind a product; None if the nodes behind it are no such chain."""
    found = _Way(graph, node)
    total, parts = found.step("Cast"), list[Node]()
    while not total.failed and (part := _part(graph, node, total.last)) is not None:
        parts.append(part[0])
        total.nodes.append(part[1])
        total = total.step("Add")
    if not total.failed and (plus := graph.only_reader(total.last.output)) is not None and plus.op == "Add":
        total = total.step("Add", constant=True)
    elif not total.failed:
        total.constants.append(np.zeros((*(graph.tensors[node.output].shape or ()), 1, 1)[1], np.int64))
    readers = {each.op: each for each in graph.readers(total.last.output)} if total.last is not node else {}
    if readers.keys() != {"Sign", "Abs"} or total.failed:
        return None
    sign, magnitude = readers["Sign"], readers["Abs"]
    total.nodes += [sign, magnitude]
    total.last = magnitude
    end = total.step("Mul", constant=True).step("Add", constant=True).step("Add", other=sign.output).step(
        "Div", constant=True).step("Mul", other=sign.output).step("Cast").step("QuantizeLinear")
    if end.failed or {each.output for each in graph.readers(sign.output)} != {
            end.nodes[-5].output, end.nodes[-3].output}:
        return None
    return LongChain(tuple(end.nodes), tuple(parts), *end.constants)


def _part(graph: Graph, node: Node, sums: Node) -> tuple[Node, Node] | None:
    """Return a product like ``node`` whose sums are added to ``sums``, and its Cast; None if something else is."""
    plus = graph.only_reader(sums.output)
    other = next((name for name in plus.inputs if name != sums.output), "") if plus is not None else ""
    cast = graph.producer(other)
    if plus is None or plus.op != "Add" or cast is None or cast.op != "Cast" or graph.only_reader(other) is not plus:
        return None
    product = graph.producer(cast.inputs[0])
    return (product, cast) if product is not None and graph.only_reader(product.output) is cast \
        and product.inputs[0] == node.inputs[0] and product.operator == node.operator \
        and len(product.inputs) == len(node.inputs) == 2 else None


def channel_numbers(graph: Graph, node: Node, computed: str) -> np.ndarray | None:
    """Return the constant of a node of two operands by output channel of the other; None if it is none."""
    other = graph.constants.get(next((name for name in node.inputs if name != computed), ""))
    shape = graph.tensors[computed].shape or ()
    if other is None or not np.isfinite(other).all() or len(shape) < 2:
        return None
    along = (1,) * (len(shape) - other.ndim) + other.shape
    if other.size != 1 and (len(along) != len(shape) or along[1] != shape[1] or other.size != shape[1]):
        return None
    return np.ascontiguousarray(np.broadcast_to(other.reshape(-1), shape[1]))


class _Way:
    """A way from a product on along nodes of stated operators, each the only reader of the one before."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self._graph, self.last, self.failed = graph, node, False
        self.nodes, self.constants = list[Node](), list[np.ndarray]()

    def step(self, op: str, *, constant: bool = False, other: str = "") -> "_Way":
        """Go on to the next node, which combines with a constant, by channel, or with ``other`` if these are given."""
        following = None if self.failed else self._graph.only_reader(self.last.output)
        if following is None or following.op != op:
            self.failed = True
            return self
        beside = next((name for name in following.inputs if name != self.last.output), "")
        if constant:
            values = channel_numbers(self._graph, following, self.last.output)
            if values is None or values.dtype != np.int64 or following.inputs[0] != self.last.output:
                self.failed = True
                return self
            self.constants.append(values)
        elif other and beside != other:
            self.failed = True
        self.nodes.append(following)
        self.last = following
        return self
