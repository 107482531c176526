"""An RNN, a GRU or an LSTM as ONNX states it: sizes, weights of each direction, states, activations.

Source: ONNX's operator specification of RNN-22, GRU-22 and LSTM-22, which older versions agree with in all that they
have.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from tilewright.compiler.control.activations import Activation, activations_of
from tilewright.compiler.control.node_writer import attributes_of, node_name
from tilewright.compiler.control.step_limit import NotUnrolledError

__all__ = ["GATES", "Direction", "RecurrentNode"]

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_USUAL = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a recurrence: weights by gate, the rows of each gate one after the other.

    ``w`` is (gates · units, inputs), ``r`` (gates · units, units), ``wb`` and ``rb`` (gates · units), ``peepholes``
    (3, units) or None.
    """

    backwards: bool
    w: np.ndarray
    r: np.ndarray
    wb: np.ndarray
    rb: np.ndarray
    peepholes: np.ndarray | None
    activations: tuple[Activation, ...]

    def rows(self, matrix: np.ndarray, *gates: int) -> np.ndarray:
        """Return the rows of some gates of a matrix or a vector."""
        units = self.r.shape[1]
        return np.concatenate([matrix[gate * units:(gate + 1) * units] for gate in gates])


@dataclass(frozen=True, slots=True)
class RecurrentNode:
    """A recurrent node of a graph in which shapes and constants are known.

    ``x`` is its input, (steps, batch, inputs) or with ``batch_first`` (batch, steps, inputs). ``states`` are the
    initial hidden state and, of an LSTM, cell state: a tensor's name, or "" for zeros.
    """

    name: str
    op: str
    x: str
    steps: int
    batch: int
    inputs: int
    units: int
    batch_first: bool
    directions: tuple[Direction, ...]
    states: tuple[str, ...]
    outputs: tuple[str, ...]
    reset_behind: bool
    coupled: bool

    @classmethod
    def of(cls, node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]],
           constants: Mapping[str, np.ndarray]) -> "RecurrentNode":
        """Return what a node states.

        Raises
        ------
        NotUnrolledError
            If its steps are not known, or it has weights that are computed, lengths that vary or an activation that
            is none of ONNX's.
        """
        attributes = attributes_of(node)
        given = dict(enumerate(node.input))
        name, op = node_name(node), node.op_type
        way = str(_text(attributes.get("direction", "forward")))
        if way not in _DIRECTIONS:
            raise NotUnrolledError(f"its direction is {way!r}", "make it forward, reverse or bidirectional")
        count = len(_DIRECTIONS[way])
        batch_first = bool(attributes.get("layout", 0))
        shape = shapes.get(given[0], ())
        if len(shape) != 3:
            raise NotUnrolledError(f"the number of its steps is not known, because the shape of {given[0]!r} is not",
                                   "fix the shapes of the inputs with --shape")
        batch, steps = (shape[0], shape[1]) if batch_first else (shape[1], shape[0])
        w, r = (_constant(given[index], constants, what) for index, what in ((1, "weights"), (2, "weights")))
        units = r.shape[-1]
        _require(w, (count, GATES[op] * units, shape[2]), given[1])
        _require(r, (count, GATES[op] * units, units), given[2])
        b = _constant(given[3], constants, "bias") if given.get(3) else np.zeros((count, 2 * r.shape[1]), np.float32)
        _require(b, (count, 2 * r.shape[1]), given.get(3, ""))
        _require_full(given.get(4, ""), constants, steps)
        p = _constant(given[7], constants, "peepholes") if op == "LSTM" and given.get(7) else None
        if p is not None:
            _require(p, (count, 3 * units), given[7])
        functions = _functions(op, attributes, count)
        each = len(functions) // count
        half = r.shape[1]
        directions = tuple(
            Direction(backwards, w[i], r[i], b[i, :half], b[i, half:], None if p is None else p[i].reshape(3, units),
                      tuple(functions[i * each:(i + 1) * each]))
            for i, backwards in enumerate(_DIRECTIONS[way]))
        return cls(name, op, given[0], steps, batch, shape[2], units, batch_first, directions,
                   tuple(given.get(index, "") for index in ((5, 6) if op == "LSTM" else (5,))), tuple(node.output),
                   bool(attributes.get("linear_before_reset", 0)), bool(attributes.get("input_forget", 0)))


def _functions(op: str, attributes: Mapping[str, object], count: int) -> list[Activation]:
    given = attributes.get("activations")
    names = [str(_text(each)) for each in given] if isinstance(given, list) else [*_USUAL[op]] * count
    if len(names) != len(_USUAL[op]) * count:
        raise NotUnrolledError(f"it has {len(names)} activations", f"give it {len(_USUAL[op]) * count}")
    alphas, betas = (each if isinstance(each, list) else [] for each in (
        attributes.get("activation_alpha"), attributes.get("activation_beta")))
    clip = attributes.get("clip", 0.0)
    assert isinstance(clip, float)
    try:
        return activations_of(names, alphas, betas, clip)
    except KeyError as error:
        raise NotUnrolledError(f"its activation {error.args[0]!r} is none of ONNX's",
                               "export it with one that ONNX lists for this operator") from error


def _text(value: object) -> object:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _constant(name: str, constants: Mapping[str, np.ndarray], what: str) -> np.ndarray:
    if name not in constants:
        raise NotUnrolledError(f"its {what} {name!r} are computed", "make them constants of the model")
    return constants[name]


def _require(values: np.ndarray, shape: tuple[int, ...], name: str) -> None:
    if values.shape != shape:
        raise NotUnrolledError(f"its input {name!r} has the shape {list(values.shape)}, and its other inputs ask for "
                               f"{list(shape)}", "export the model again")


def _require_full(name: str, constants: Mapping[str, np.ndarray], steps: int) -> None:
    """Refuse lengths of sequences other than all steps."""
    if not name:
        return
    lengths = constants.get(name)
    if lengths is None:
        raise NotUnrolledError(f"its sequence_lens {name!r} are known only when it runs",
                               f"fix them with --input-value {name}={steps} if it is an input, or export the model "
                               "without lengths")
    if (lengths != steps).any():
        raise NotUnrolledError(f"its sequence_lens are {lengths.ravel().tolist()}, and its input has {steps} steps",
                               "export the model without lengths, for sequences of one length")
