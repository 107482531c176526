"""A user's request for an exploration, read and checked before anything is evaluated."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.bench.exploration.area_prediction import AREA_MEASURES, AreaTarget
from tilewright.bench.exploration.design_cost import OBJECTIVES, Evaluator, WeightedNetwork, measures_of
from tilewright.bench.exploration.design_limits import limit_of
from tilewright.bench.exploration.exploration_study import StudySetup
from tilewright.bench.exploration.sampling import SAMPLERS, require_sampler
from tilewright.bench.exploration.space_file import default_space, read_space
from tilewright.errors import InputError
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.tools.progress import Steps

__all__ = ["ExplorationRequest", "evaluator_of", "setup_of", "weighted"]

_OBJECTIVES = ("cycles", "area")
_TARGET = "ecp5-85k"


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
    """

    models: Sequence[str]
    space: Path | None = None
    objectives: Sequence[str] = ()
    limits: Sequence[str] = ()
    target: str = ""
    sampler: str = SAMPLERS[0]
    technology: str = ""
    seed: int = 0


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
    models = dict(map(weighted, request.models)) or dict(space.networks)
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
    return StudySetup(names, space, objectives, limits, target, request.sampler, request.seed), models


def evaluator_of(setup: StudySetup, models: dict[str, float], steps: Steps) -> Evaluator:
    """Return what evaluates designs: every network is read once.

    Raises
    ------
    InputError, CompileError
        If a network cannot be used.
    """
    networks = []
    for name, weight in models.items():
        with steps.step(f"Reading {name}"):
            networks.append(WeightedNetwork(PredictedNetwork.named(name, steps=steps), weight))
    return Evaluator(tuple(networks), AreaTarget(setup.target))


def _stem(model: str) -> str:
    return Path(model).stem if model.endswith(".onnx") else model
