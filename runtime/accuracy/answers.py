"""A model's answers to one image after another: by the float model, by the quantised one, and by the hardware.

The quantised model runs in ONNX Runtime with exact kernels. The hardware's values come from the integer reference,
which both engines equal bit for bit (tests/sim and tests/end_to_end hold them to it), so that no program need be
executed where cycles are not asked for; otherwise from engine ``fast`` or ``rtl``, with the cycles of each image.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import onnxruntime

from tilewright.compiler.network.layers import Network, TensorInfo
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.network.reference import run_network
from tilewright.errors import InputError
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.runtime.execution.engines import EngineName
from tilewright.runtime.oracle.comparison import float_differences
from tilewright.runtime.oracle.conversion import dequantise_output, is_raw, quantise_input
from tilewright.runtime.oracle.inputs import node_arg
from tilewright.runtime.oracle.onnx_runtime import ONNX_RUNTIME_ERRORS, SaturationError, session
from tilewright.runtime.session import InferenceSession
from tilewright.tools.files import reason

__all__ = ["TOP", "Answerer", "Answers", "Column", "Question", "ValueEngine", "scores_of"]

TOP = 5
"""Classes that are kept of each answer, the likeliest first."""


class Column(StrEnum):
    """The three that answer."""

    FLOAT = "float"
    QUANTISED = "quantised"
    HARDWARE = "hardware"


class ValueEngine(StrEnum):
    """Way to compute the hardware's values."""

    VALUES = "values"
    """The integer reference: values alone, without cycles."""

    FAST = "fast"
    RTL = "rtl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything that answers depend on but the images.

    Attributes
    ----------
    network : Network
        The quantised model, compiled.
    model : Path
        Its file.
    float_model : Path or None
        The float model from which it was quantised.
    output : str
        The output that holds the classes' scores.
    engine : ValueEngine
    machine : Machine
    memory : MemoryTiming or None
        None for the machine's default.
    options : Options
        Of the compiler.
    threads : int
        Of ONNX Runtime; 0 for as many as it likes.
    """

    network: Network
    model: Path
    float_model: Path | None
    output: str
    engine: ValueEngine
    machine: Machine
    memory: MemoryTiming | None = None
    options: Options = BEST
    threads: int = 0

    @property
    def scores(self) -> TensorInfo:
        """The tensor behind the output."""
        return next(info for info in self.network.outputs if node_arg(info).name == self.output)


def scores_of(network: Network, name: str | None) -> tuple[str, int]:
    """Return the output that holds a model's scores, by default its first, and how many classes it has.

    Raises
    ------
    InputError
        If there is no such output, or it has one value.
    """
    arguments = {argument.name: argument for argument in map(node_arg, network.outputs)}
    chosen = next(iter(arguments)) if name is None else name
    if chosen not in arguments:
        raise InputError(f"Output to evaluate must be one of {', '.join(arguments)}, not {chosen!r}")
    classes = int(np.prod(arguments[chosen].shape))
    if classes < 2:
        raise InputError(f"Output {chosen!r} must have a score for each of two classes or more, not "
                         f"{classes} of shape {arguments[chosen].shape}; name another with --output")
    return chosen, classes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Answers to some images, in their order.

    Attributes
    ----------
    top : dict of Column to ndarray
        int32 of shape (images, min(TOP, classes)): classes by their scores, the likeliest first, equal ones in order.
    equal : ndarray
        bool of shape (images,): whether the hardware's scores are the quantised model's.
    off : ndarray
        float64 of shape (images,): the largest difference between them.
    cycles : ndarray
        int64 of shape (images,) where an engine counted them, else empty.
    """

    top: dict[Column, np.ndarray]
    equal: np.ndarray
    off: np.ndarray
    cycles: np.ndarray

    @classmethod
    def join(cls, parts: Sequence["Answers"]) -> "Answers":
        """Return the answers of several parts, one after the other."""
        return cls(top={column: np.concatenate([part.top[column] for part in parts]) for column in parts[0].top},
                   equal=np.concatenate([part.equal for part in parts]),
                   off=np.concatenate([part.off for part in parts]),
                   cycles=np.concatenate([part.cycles for part in parts]))

    def first(self, count: int) -> "Answers":
        """Return those of the first images."""
        return Answers(top={column: classes[:count] for column, classes in self.top.items()},
                       equal=self.equal[:count], off=self.off[:count], cycles=self.cycles[:count])


class Answerer:
    """Answers to one image at a time.

    Attributes
    ----------
    untrusted : str
        Why ONNX Runtime's results for the quantised model are not asked for; empty if they are.

    Raises
    ------
    InputError
        If ONNX Runtime refuses a model, or the float one has other inputs than the quantised one.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self.untrusted = ""
        self._quantised: onnxruntime.InferenceSession | None = None
        try:
            self._quantised = _session(question.model, question.threads)
        except SaturationError as error:
            self.untrusted = str(error)
        self._float = None if question.float_model is None else _session(question.float_model, question.threads)
        if self._float is not None:
            _check_float_inputs(self._float, question.network)
        self._engine: InferenceSession | None = None
        if question.engine is not ValueEngine.VALUES:
            engine: EngineName = "rtl" if question.engine is ValueEngine.RTL else "fast"
            self._engine = InferenceSession(question.model, question.machine, engine, memory=question.memory,
                                           options=question.options)

    def answer(self, feeds: Sequence[Mapping[str, np.ndarray]]) -> Answers:
        """Return the answers to some images, each as the model's inputs by name."""
        top: dict[Column, list[np.ndarray]] = {}
        equal, off, cycles = [], [], []
        for feed in feeds:
            found, taken = self._scores(feed)
            for column, scores in found.items():
                top.setdefault(column, []).append(_best(scores))
            if Column.QUANTISED in found:
                same, most = self._difference(found[Column.HARDWARE], found[Column.QUANTISED])
                equal.append(same)
                off.append(most)
            if taken is not None:
                cycles.append(taken)
        return Answers(top={column: np.array(each, np.int32) for column, each in top.items()},
                       equal=np.array(equal, bool), off=np.array(off, np.float64), cycles=np.array(cycles, np.int64))

    def _scores(self, feed: Mapping[str, np.ndarray]) -> tuple[dict[Column, np.ndarray], int | None]:
        """Return each column's scores of one image, in a row, and the cycles that it took."""
        found = {}
        if self._float is not None:
            found[Column.FLOAT] = _run(self._float, self._question.output, feed)
        if self._quantised is not None:
            found[Column.QUANTISED] = _run(self._quantised, self._question.output, feed)
        found[Column.HARDWARE], taken = self._hardware(feed)
        return found, taken

    def _hardware(self, feed: Mapping[str, np.ndarray]) -> tuple[np.ndarray, int | None]:
        network = self._question.network
        if self._engine is not None:
            (scores,) = self._engine.run([self._question.output], feed)
            return scores.reshape(-1), self._engine.report.cycles
        tensors = run_network(network, {info.name: quantise_input(info, feed[node_arg(info).name])
                                        for info in network.inputs})
        info = self._question.scores
        return dequantise_output(info, tensors[info.name]).reshape(-1), None

    def _difference(self, value: np.ndarray, expected: np.ndarray) -> tuple[bool, float]:
        """Tell whether scores are equal, and how far they are apart; floats that the core computed, nearly so."""
        off = float(np.abs(value.astype(np.float64) - expected).max())
        if is_raw(self._question.scores) and value.dtype == np.float32:
            return not float_differences(value, expected)[0].any(), off
        return np.array_equal(value, expected), off


def _session(model: Path, threads: int) -> onnxruntime.InferenceSession:
    try:
        return session(model, threads=threads)
    except ONNX_RUNTIME_ERRORS as error:
        raise InputError(f"Model {model.name!r} cannot be evaluated, because ONNX Runtime rejects it: "
                         f"{reason(error)}") from error


def _check_float_inputs(float_session: onnxruntime.InferenceSession, network: Network) -> None:
    """Raise :exc:`InputError` unless the float model takes the images that the quantised one takes."""
    wanted = {argument.name: argument for argument in map(node_arg, network.inputs)}
    given = {each.name: each for each in float_session.get_inputs()}
    if len(given) == len(wanted) == 1:
        wanted = dict(zip(given, wanted.values(), strict=True))
    if set(given) != set(wanted):
        raise InputError(f"Float model must have the inputs {', '.join(wanted)}, not {', '.join(given)}")
    for name, each in given.items():
        shape = wanted[name].shape
        fits = len(each.shape) == len(shape) and all(
            own == extent or not isinstance(own, int) for own, extent in zip(each.shape, shape, strict=True))
        if each.type != wanted[name].type or not fits:
            raise InputError(f"Input {name!r} of the float model must be {wanted[name].type} of shape {shape}, like "
                             f"that of the quantised model, not {each.type} of shape {tuple(each.shape)}")


def _run(model: onnxruntime.InferenceSession, output: str, feed: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return a model's scores in a row: of the output of that name, or the first; inputs by name, or the only one."""
    names = [each.name for each in model.get_outputs()]
    inputs = [each.name for each in model.get_inputs()]
    given = dict(zip(inputs, feed.values(), strict=True)) if len(inputs) == len(feed) == 1 else dict(feed)
    (scores,) = model.run([output if output in names else names[0]], given)
    return np.asarray(scores).reshape(-1)


def _best(scores: np.ndarray) -> np.ndarray:
    """Return the classes of the highest scores, of equal ones the first."""
    return np.argsort(-scores.astype(np.float64), kind="stable")[:TOP]
