"""An RNN, a GRU or an LSTM becomes the operators of its steps; the inputs of all steps are one product."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx

from tilewright.compiler.control.node_writer import NodeWriter
from tilewright.compiler.control.recurrent_cells import State, cell_of
from tilewright.compiler.control.recurrent_node import GATES, Direction, RecurrentNode
from tilewright.compiler.control.step_limit import require_few
from tilewright.compiler.control.step_names import step_name

__all__ = ["RECURRENT", "unroll_recurrent"]

RECURRENT = frozenset(GATES)
_STATES = ("h", "c")
_STEP_OPERATORS = {"RNN": 4, "GRU": 12, "LSTM": 14}
"""Operators of a step, to measure what is to be unrolled."""


def unroll_recurrent(node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]],
                     constants: Mapping[str, np.ndarray]) -> NodeWriter:
    """Return the nodes and constants that compute what a recurrent node does.

    Raises
    ------
    NotUnrolledError
        If it cannot be unrolled.
    """
    recurrent = RecurrentNode.of(node, shapes, constants)
    require_few(recurrent.steps * len(recurrent.directions), _STEP_OPERATORS[recurrent.op])
    return _Unrolled(recurrent).written()


class _Unrolled:
    """The nodes of all directions of a node."""

    def __init__(self, node: RecurrentNode) -> None:
        self.node, self.writer = node, NodeWriter(node.name)

    def written(self) -> NodeWriter:
        """Write all steps and the outputs that are asked for."""
        node, write = self.node, self.writer
        x = write.add("Transpose", [node.x], "steps first", perm=[1, 0, 2]) if node.batch_first else node.x
        rows = write.constant("rows", np.array([node.steps * node.batch, node.inputs], np.int64))
        x = write.add("Reshape", [x, rows], "inputs")
        hidden, last = [], []
        for index, direction in enumerate(node.directions):
            states, final = self._steps(index, direction, x)
            hidden.append(states)
            last.append(final)
        wanted = (*node.outputs, "", "")[:3]
        if wanted[0]:
            self._all_steps(hidden, wanted[0])
        for index, output in enumerate(wanted[1:len(node.states) + 1]):
            if output:
                self._last_step([state[index] for state in last], index, output)
        return write

    def _steps(self, index: int, direction: Direction, x: str) -> tuple[list[str], State]:
        """Write the steps of a direction; return the hidden state behind each, and the last states."""
        node, write = self.node, self.writer
        base = f"{node.name}:backwards" if direction.backwards else node.name
        inner = replace(write, base=base)
        cell = cell_of(node, direction, inner)
        state = self._initial(index, inner)
        matrix, bias = cell.input_weights()
        product = inner.add("Gemm", [x, inner.constant("W", matrix), inner.constant("Wb", bias)], "of inputs")
        each = [product]
        if node.steps > 1:
            sizes = inner.constant("steps", np.array([node.batch] * node.steps, np.int64))
            each = inner.several("Split", [product, sizes], [step_name("of input", step) for step in range(node.steps)],
                                 axis=0)
        widths = cell.widths()
        columns = inner.constant("blocks", np.array(widths, np.int64)) if len(widths) > 1 else ""
        hidden = [""] * node.steps
        order = range(node.steps - 1, -1, -1) if direction.backwards else range(node.steps)
        for number, step in enumerate(order):
            inner.step = number + 1
            blocks = inner.several("Split", [each[step], columns], [f"{block.what} of input" for block in cell.blocks],
                                   axis=1) if columns else [each[step]]
            state = cell.step(blocks, state)
            hidden[step] = state[0]
        return hidden, state

    def _initial(self, index: int, write: NodeWriter) -> State:
        """Return the states before the first step, (batch, units) each."""
        node, found = self.node, []
        for name, what in zip(node.states, _STATES, strict=False):
            if not name:
                found.append(write.constant(f"{what} before", np.zeros((node.batch, node.units), np.float32)))
                continue
            if len(node.directions) > 1:
                which = write.constant("direction", np.array([index], np.int64))
                name = write.add("Gather", [name, which], f"{what} of direction", axis=1 if node.batch_first else 0)
            shape = write.constant("shape before", np.array([node.batch, node.units], np.int64))
            found.append(write.add("Reshape", [name, shape], step_name(what, 0)))
        return tuple(found)

    def _all_steps(self, hidden: list[list[str]], output: str) -> None:
        """Write the hidden states of all steps, (steps, directions, batch, units) or with the batch first."""
        node, write = self.node, self.writer
        rows = [states[0] if node.steps == 1 else write.add("Concat", states, f"h {number} of all steps", axis=0)
                for number, states in enumerate(hidden)]
        count = len(rows)
        whole = rows[0] if count == 1 else write.add("Concat", rows, "h of all directions", axis=1)
        # With one direction or one batch its axis may stand where it is wanted, and nothing is moved.
        moved = count > 1 and node.batch > 1
        extents = [node.steps, node.batch, count, node.units] if moved else [node.steps, count, node.batch, node.units]
        shape = write.constant("shape of all steps", np.array(extents, np.int64))
        whole = write.add("Reshape", [whole, shape], "h of all")
        if moved:
            whole = write.add("Transpose", [whole], "h of all, batch behind directions", perm=[0, 2, 1, 3])
        if node.batch_first:
            whole = write.add("Transpose", [whole], "h of all steps, batch first", perm=[2, 0, 1, 3])
        write.hand_on(whole, output)

    def _last_step(self, states: list[str], index: int, output: str) -> None:
        """Write the last states of all directions, (directions, batch, units) or with the batch first."""
        node, write, what = self.node, self.writer, _STATES[index]
        shape = write.constant("shape of a state", np.array([1, node.batch, node.units], np.int64))
        each = [write.add("Reshape", [state, shape], f"last {what} {number}") for number, state in enumerate(states)]
        whole = each[0] if len(each) == 1 else write.add("Concat", each, f"last {what}", axis=0)
        if node.batch_first:
            whole = write.add("Transpose", [whole], f"last {what}, batch first", perm=[1, 0, 2])
        write.hand_on(whole, output)
