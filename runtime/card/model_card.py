"""A model's card: what it costs on several designs, its bytes, the core's share, and its accuracy if labelled."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.options import BEST, Options
from tilewright.isa.machine import DEFAULT_MACHINE
from tilewright.runtime.accuracy.accuracy_report import AccuracyReport
from tilewright.runtime.accuracy.answers import Column, ValueEngine
from tilewright.runtime.accuracy.data_set import DataFiles
from tilewright.runtime.accuracy.evaluation import EvaluationRequest, default_jobs, evaluate
from tilewright.runtime.design.design import Design
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.execution.core_share import CoreShare
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.predicted_run import predict_model
from tilewright.tools.progress import Steps

__all__ = ["CardCost", "CardRequest", "ModelCard", "card_of", "refused_card"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardCost:
    """The cost of one inference on a design, predicted, with only the outputs stored.

    Attributes
    ----------
    machine : str
    refused : str
        Why the model does not compile for it; the rest is then 0.
    cycles : int
    milliseconds, clock_mhz, energy_uj : float
        Time at the clock; energy with the prices of the design's technology.
    core_share : float
        The host core's part of the cycles.
    core_operators : tuple of str
        Operators that it computes, the costliest first.
    weight_bytes, working_bytes : int
        Of main memory: weights and constants as the machine loads them; all else, inputs and outputs included.
    bus_bytes : int
        Read and written over the bus.
    """

    machine: str
    refused: str = ""
    cycles: int = 0
    milliseconds: float = 0.0
    clock_mhz: float = 0.0
    energy_uj: float = 0.0
    core_share: float = 0.0
    core_operators: tuple[str, ...] = ()
    weight_bytes: int = 0
    working_bytes: int = 0
    bus_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """The card of a model: its facts, and its cost.

    Attributes
    ----------
    model : str
    macs : int
        Multiply-accumulates of one inference.
    costs : tuple of CardCost
        One for each design.
    accuracy, float_accuracy : float or None
        Top-1, of the hardware's values and of the float model; None without labels or float model.
    images : int
        Images that accuracy was measured over.
    notes : tuple of str
        Where the ranges of a model that was quantised here come from.
    """

    model: str
    macs: int
    costs: tuple[CardCost, ...]
    accuracy: float | None = None
    float_accuracy: float | None = None
    images: int = 0
    notes: tuple[str, ...] = ()

    @property
    def compiles(self) -> bool:
        """Whether every design takes it."""
        return not any(cost.refused for cost in self.costs)

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers; the keys are a contract."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRequest:
    """The designs, with the clock where it is not their technology's; labelled images, if there are any."""

    designs: Sequence[str]
    clock: str | None = None
    files: DataFiles | None = None
    options: Options = BEST


def card_of(source: ModelSource, request: CardRequest, steps: Steps) -> ModelCard:
    """Return the card of a model.

    Raises
    ------
    CompileError
        If the file is no valid model. A model that a design cannot take is said in its cost.
    InputError
        If a design or the labelled images make no sense.
    """
    designs = [design_of(text, clock=request.clock) for text in request.designs]
    found = [_cost(source, design, request.options, steps) for design in designs]
    judged = None if request.files is None else evaluate(source, EvaluationRequest(
        files=request.files, design=design_of(DEFAULT_MACHINE), engine=ValueEngine.VALUES, options=request.options,
        jobs=default_jobs()), steps)
    return ModelCard(model=source.path.stem, macs=max((macs for macs, _ in found), default=0),
                     costs=tuple(cost for _, cost in found), images=0 if judged is None else judged.images,
                     accuracy=_top_1(judged, Column.HARDWARE), float_accuracy=_top_1(judged, Column.FLOAT),
                     notes=source.notes)


def refused_card(model: str, request: CardRequest, sentence: str) -> ModelCard:
    """Return the card of a model that is refused on every design, with the reason."""
    return ModelCard(model=model, macs=0, costs=tuple(
        CardCost(machine=design_of(text, clock=request.clock).machine.name, refused=sentence)
        for text in request.designs))


def _cost(source: ModelSource, design: Design, options: Options, steps: Steps) -> tuple[int, CardCost]:
    """Return the model's MACs and what it costs on a design."""
    try:
        compared = predict_model(source, design, options, steps, outputs_only=True)
    except CompileError as error:
        return 0, CardCost(machine=design.machine.name, refused=error.sentence)
    report, job = compared.report, compared.job
    assert job is not None
    weights = sum(len(content) for _, content in job.images if isinstance(content, bytes))
    return report.macs, CardCost(
        machine=design.machine.name, cycles=report.cycles, milliseconds=report.cycles / (1e3 * design.mhz),
        clock_mhz=design.mhz, energy_uj=report.energy.total_uj, core_share=report.core_share.share,
        core_operators=_operators(report.core_share), weight_bytes=weights, working_bytes=job.memory_bytes - weights,
        bus_bytes=sum(layer.bytes_read + layer.bytes_written for layer in report.layers))


def _operators(share: CoreShare) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cause.operator for cause in share.causes))


def _top_1(judged: AccuracyReport | None, column: Column) -> float | None:
    if judged is None or judged.labels is None or column not in judged.columns:
        return None
    return judged.right(column, 1) / judged.images
