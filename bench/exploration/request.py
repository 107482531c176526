"""A user's request for an exploration, read and checked before anything is evaluated."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tilewright.bench.exploration.area_prediction import AREA_MEASURES, AreaTarget
from tilewright.bench.exploration.design_cost import OBJECTIVES, Evaluator, WeightedNetwork, measures_of
from tilewright.bench.exploration.design_limits import limit_of
from tilewright.bench.exploration.exploration_study import StudySetup
from tilewright.bench.exploration.sampling import SAMPLERS, require_sampler
from tilewright.bench.exploration.space import MEMORY_KEYS, Space, Value
from tilewright.bench.exploration.space_file import default_space, read_space
from tilewright.compiler.network.options import BEST, Options
from tilewright.errors import InputError
from tilewright.runtime.design.design_flags import clock_of, memory_values
from tilewright.runtime.model_source import find_model
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.tools.progress import Steps

__all__ = ["Compilation", "ExplorationRequest", "evaluator_of", "setup_of", "weighted"]

_OBJECTIVES = ("cycles", "area")
_TARGET = "ecp5-85k"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """How the networks of an exploration are read and compiled, as ``run`` has options for it.

    Attributes
    ----------
    options : Options
    outputs_only : bool
        Store only the tensors that the network needs.
    calibrate : Path or None
    keep_float : bool
    shapes : mapping of str to sequence of int
    values : mapping of str to sequence of float
    ends : tuple of str
        As `runtime.model_source.find_model` takes them; they are of one model.
    """

    options: Options = BEST
    outputs_only: bool = False
    calibrate: Path | None = None
    keep_float: bool = False
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    ends: tuple[str, ...] = ()

    def network(self, name: str, steps: Steps) -> PredictedNetwork:
        """Return a network as it is read and compiled.

        Raises
        ------
        InputError, CompileError
            If it cannot be used.
        """
        source = find_model(name, steps, calibrate=self.calibrate, keep_float=self.keep_float, shapes=self.shapes,
                            values=self.values, ends=self.ends)
        return PredictedNetwork(source, self.options, outputs_only=self.outputs_only)

    def to_json(self) -> dict[str, str]:
        """Return what is not the default, in words."""
        said = {"options": "" if self.options == BEST else str(self.options),
                "stored": "outputs only" if self.outputs_only else "",
                "calibrate": str(self.calibrate or ""), "float": "kept" if self.keep_float else "",
                "shapes": _said(self.shapes), "values": _said(self.values), "ends": " ".join(self.ends)}
        return {key: text for key, text in said.items() if text}


def _said(given: Mapping[str, Sequence[float]]) -> str:
    return "; ".join(f"{name}={','.join(map(str, numbers))}" for name, numbers in given.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationRequest:
    """Arguments of the command line; what it leaves out is the space file's, and then a default.

    Attributes
    ----------
    models : sequence of str
        Networks as ``MODEL`` or ``MODEL=WEIGHT``.
    space : Path or None
        The space file.
    objectives, limits : sequence of str
        Limits are added to the space file's.
    target, sampler, technology : str
    seed : int
    memory, clock : str
        Timing of main memory and clock of every design; neither may be an axis of the space then.
    compilation : Compilation
    """

    models: Sequence[str]
    space: Path | None = None
    objectives: Sequence[str] = ()
    limits: Sequence[str] = ()
    target: str = ""
    sampler: str = SAMPLERS[0]
    technology: str = ""
    seed: int = 0
    memory: str = ""
    clock: str = ""
    compilation: Compilation = Compilation()


def weighted(text: str) -> tuple[str, float]:
    """Return name and weight of ``MODEL`` or ``MODEL=WEIGHT``.

    Raises
    ------
    InputError
        If the weight is no number above 0.
    """
    name, equals, weight = text.rpartition("=")
    if not equals or weight.endswith(".onnx"):
        return text, 1.0
    try:
        number = float(weight)
    except ValueError:
        number = math.nan
    if not name or not 0 < number < math.inf:
        raise InputError(f"Network must be MODEL or MODEL=WEIGHT with a weight above 0, not {text!r}")
    return name, number


def setup_of(request: ExplorationRequest) -> tuple[StudySetup, dict[str, float]]:
    """Return the exploration that is asked for, and weights of its networks as they were named.

    Raises
    ------
    InputError
        If a part of it cannot be used; the message says what is allowed.
    """
    space = default_space() if request.space is None else read_space(request.space)
    if request.technology:
        pricing = replace(space.base.pricing, technology=request.technology)
        pricing.load()
        space = replace(space, base=replace(space.base, pricing=pricing))
    space = _timed(space, request)
    models = dict(map(weighted, request.models)) or dict(space.networks)
    own = request.compilation
    if len(models) > 1 and (own.calibrate is not None or own.keep_float or own.shapes or own.values):
        raise InputError(f"Options --calibrate, --float, --shape and --input-value are of one MODEL, and there are "
                         f"{len(models)}: {', '.join(models)}")
    if not models:
        raise InputError("Exploration must have a MODEL, or a space file with [networks]; there is none")
    target = request.target or space.target or _TARGET
    if target not in AREA_MEASURES:
        raise InputError(f"Target must be one of {', '.join(AREA_MEASURES)}, not {target!r}")
    objectives = tuple(request.objectives) or space.objectives or _OBJECTIVES
    for name in objectives:
        if name not in OBJECTIVES:
            raise InputError(f"Objective must be one of {', '.join(OBJECTIVES)}, not {name!r}")
    if len(set(objectives)) < len(objectives):
        raise InputError(f"Objective must be given once, and of {', '.join(objectives)} one is given twice")
    require_sampler(request.sampler, space)
    names = {_stem(name): weight for name, weight in models.items()}
    if len(names) < len(models):
        raise InputError(f"Networks must have names of their own, and of {', '.join(models)} two have the same")
    measures = measures_of(tuple(names), AreaTarget(target))
    limits = tuple(limit_of(text, measures) for text in dict.fromkeys((*space.limits, *request.limits)))
    return StudySetup(names, space, objectives, limits, target, request.sampler, request.seed, own.to_json()), models


def _timed(space: Space, request: ExplorationRequest) -> Space:
    """Return ``space`` with the memory and the clock that are asked for, in place of its own."""
    if request.memory:
        stated: dict[str, Value] = dict(memory_values(request.memory))
        if varied := [key for key in MEMORY_KEYS if key in space.axes]:
            raise InputError(f"Option --memory excludes a space that varies it, and {space.name} varies "
                             f"{', '.join(varied)}; leave out one of them")
        kept = {key: value for key, value in space.fixed.items() if key not in MEMORY_KEYS}
        space = replace(space, base=replace(space.base, memory=None), fixed=kept | stated)
    if request.clock:
        if "mhz" in space.axes:
            raise InputError(f"Option --clock excludes a space that varies it, and {space.name} varies mhz; leave out "
                             "one of them")
        kept = {key: value for key, value in space.fixed.items() if key != "mhz"}
        pricing = replace(space.base.pricing, clock_mhz=clock_of(request.clock))
        space = replace(space, base=replace(space.base, pricing=pricing), fixed=kept)
    return space


def evaluator_of(setup: StudySetup, models: dict[str, float], steps: Steps,
                 compilation: Compilation | None = None) -> Evaluator:
    """Return what evaluates designs: every network is read once.

    Raises
    ------
    InputError, CompileError
        If a network cannot be used.
    """
    networks = []
    for name, weight in models.items():
        with steps.step(f"Reading {name}"):
            networks.append(WeightedNetwork((compilation or Compilation()).network(name, steps), weight))
    return Evaluator(tuple(networks), AreaTarget(setup.target))


def _stem(model: str) -> str:
    return Path(model).stem if model.endswith(".onnx") else model
