"""One step of an RNN, a GRU and an LSTM as products, sums and functions of tensors.

Formulas: ONNX's operator specification. What a step takes of its input is a row of a product over all steps. Gates of
one activation are one product of the state, so that product, sum and activation are one layer of the datapath.
``(1 - z) n + z h`` is computed as ``n + z (h - n)``, with one product.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.control.activations import Activation
from tilewright.compiler.control.node_writer import NodeWriter
from tilewright.compiler.control.recurrent_node import Direction, RecurrentNode

__all__ = ["RecurrentCell", "cell_of"]

State = tuple[str, ...]
"""Hidden state and, of an LSTM, cell state."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Gates that one product computes: their numbers in ONNX's order."""

    what: str
    gates: tuple[int, ...]


class RecurrentCell:
    """The steps of one direction.

    Attributes
    ----------
    blocks : sequence of _Block
        Into which the gates are cut.
    """

    blocks: Sequence[_Block] = ()

    def __init__(self, node: RecurrentNode, direction: Direction, writer: NodeWriter) -> None:
        self.node, self.direction, self.writer = node, direction, writer

    def input_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix (inputs, columns) by which the inputs of all steps are multiplied, and a bias."""
        gates = [gate for block in self.blocks for gate in block.gates]
        return self.direction.rows(self.direction.w, *gates).T, self.direction.rows(self.direction.wb, *gates)

    def widths(self) -> list[int]:
        """Return the columns of each block."""
        return [len(block.gates) * self.node.units for block in self.blocks]

    def step(self, inputs: Sequence[str], state: State) -> State:
        """Write a step; ``inputs`` are its rows of each block."""
        raise NotImplementedError

    def product(self, state: str, block: _Block) -> str:
        """Write the product of a state with the weights of a block, and its bias."""
        weights, bias = (self.writer.constant(f"{name} {block.what}", values) for name, values in (
            ("R", self.direction.rows(self.direction.r, *block.gates).T),
            ("Rb", self.direction.rows(self.direction.rb, *block.gates))))
        return self.writer.add("Gemm", [state, weights, bias], f"{block.what} of state")

    def gate(self, inputs: str, state: str, block: _Block, activation: Activation) -> str:
        """Write the activation of what inputs and state add up to."""
        total = self.writer.add("Add", [self.product(state, block), inputs], f"{block.what} sum")
        return activation.of(total, block.what, self.writer)

    def parts(self, value: str, whats: Sequence[str]) -> list[str]:
        """Cut a block into its gates."""
        if len(whats) == 1:
            return [value]
        sizes = self.writer.constant(f"{len(whats)} gates", np.array([self.node.units] * len(whats), np.int64))
        return self.writer.several("Split", [value, sizes], whats, axis=1)


class _RnnCell(RecurrentCell):
    blocks = (_Block("h", (0,)),)

    def step(self, inputs: Sequence[str], state: State) -> State:
        return (self.gate(inputs[0], state[0], self.blocks[0], self.direction.activations[0]),)


class _GruCell(RecurrentCell):
    blocks = (_Block("gates", (0, 1)), _Block("candidate", (2,)))

    def step(self, inputs: Sequence[str], state: State) -> State:
        write, (gate, activation) = self.writer, self.direction.activations
        (h,), (gates, last) = state, self.blocks
        update, reset = self.parts(self.gate(inputs[0], h, gates, gate), ["update", "reset"])
        if self.node.reset_behind:
            kept = write.add("Mul", [reset, self.product(h, last)], "candidate kept")
        else:
            kept = self.product(write.add("Mul", [reset, h], "state kept"), last)
        candidate = activation.of(write.add("Add", [kept, inputs[1]], "candidate sum"), "candidate", write)
        back = write.add("Mul", [update, write.add("Sub", [h, candidate], "state less candidate")], "state back")
        return (write.add("Add", [back, candidate], "h"),)


class _LstmCell(RecurrentCell):
    blocks = (_Block("gates", (0, 1, 2)), _Block("candidate", (3,)))

    def step(self, inputs: Sequence[str], state: State) -> State:
        write, (gate, inner, outer) = self.writer, self.direction.activations
        (h, c), (gates, last) = state, self.blocks
        outer = replace(outer, clip=0.0)     # ONNX Runtime bounds the sums of gates alone
        if self.direction.peepholes is None:
            entry, output, forget = self.parts(self.gate(inputs[0], h, gates, gate), ["input", "output", "forget"])
        else:
            total = write.add("Add", [self.product(h, gates), inputs[0]], "gates sum")
            sums = self.parts(total, ["input sum", "output sum", "forget sum"])
            entry, forget = (self._seen(sums[index], c, index, what, gate)
                             for index, what in ((0, "input"), (2, "forget")))
        if self.node.coupled:
            one = write.constant("one", np.array(1, np.float32))
            forget = write.add("Sub", [one, entry], "forget coupled")
        candidate = self.gate(inputs[1], h, last, inner)
        kept = write.add("Mul", [forget, c], "cell kept")
        c = write.add("Add", [kept, write.add("Mul", [entry, candidate], "cell added")], "c")
        if self.direction.peepholes is not None:
            output = self._seen(sums[1], c, 1, "output", gate)
        return write.add("Mul", [output, outer.of(c, "cell seen", write)], "h"), c

    def _seen(self, total: str, cell: str, index: int, what: str, gate: Activation) -> str:
        """Write a gate that sees the cell state through a peephole."""
        assert self.direction.peepholes is not None
        weights = self.writer.constant(f"P {what}", self.direction.peepholes[index])
        seen = self.writer.add("Mul", [cell, weights], f"{what} peephole")
        return gate.of(self.writer.add("Add", [total, seen], f"{what} seen"), what, self.writer)


_CELLS: Mapping[str, type[RecurrentCell]] = {"RNN": _RnnCell, "GRU": _GruCell, "LSTM": _LstmCell}


def cell_of(node: RecurrentNode, direction: Direction, writer: NodeWriter) -> RecurrentCell:
    """Return the steps of a direction of a node, written by ``writer``."""
    return _CELLS[node.op](node, direction, writer)
