"""The rewritings by name, in the order in which they are applied, and random lists of them."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx

from tests.fuzz.twins.constants import (
    as_inputs,
    as_nodes,
    computed,
    copied,
    in_floats,
    through_pair,
    turned,
    weights_in_floats,
)
from tests.fuzz.twins.draft import Draft
from tests.fuzz.twins.exporters import (
    OF_EXPORTERS,
    axis_of_one_scale,
    constants_as_attributes,
    constants_handed_on,
    open_batch,
)
from tests.fuzz.twins.files import external, in_functions, other_opset, renamed, reordered, typed, unordered
from tests.fuzz.twins.idle import IDLE
from tests.fuzz.twins.levels import (
    along_an_axis,
    doubled,
    foreign,
    own_pairs,
    relabelled,
    scales_restated,
    zeros_restated,
)
from tests.fuzz.twins.moves import MOVES, branched
from tests.fuzz.twins.operators import as_qlinear, split_by_outputs
from tests.fuzz.twins.products import OF_PRODUCTS
from tests.fuzz.twins.spellings import SPELLINGS

__all__ = ["OF_SUMS", "REWRITINGS", "Step", "Twin", "drawn", "twin_of"]

OF_SUMS: dict[str, Callable[[Draft], int]] = {
    "split by outputs": split_by_outputs, **OF_PRODUCTS,
    "weights in floats": weights_in_floats, "qlinear": as_qlinear}
"""Those that change which kernels sum up: ONNX Runtime's floats may be rounded otherwise, its integers may not."""

REWRITINGS: dict[str, Callable[[Draft], int]] = {
    **OF_SUMS,
    "relabelled": relabelled, "doubled": doubled, "own pairs": own_pairs,
    "along an axis": along_an_axis, "bias in floats": in_floats,
    "turned": turned, "through a pair": through_pair, "constants copied": copied,
    **SPELLINGS, **OF_EXPORTERS, **IDLE, **MOVES,
    "scales restated": scales_restated, "zeros restated": zeros_restated, "axis of one scale": axis_of_one_scale,
    "other opset": other_opset, "typed": typed, "com.microsoft": foreign,
    "constants handed on": constants_handed_on, "constants computed": computed, "constants as nodes": as_nodes,
    "constants as attributes": constants_as_attributes, "constants as inputs": as_inputs,
    "in functions": in_functions, "renamed": renamed, "reordered": reordered, "a branch": branched,
    "open batch": open_batch,
    "unordered": unordered, "external data": external,
}
"""By name, in the order in which those of a list are applied."""

_LAST = {"unordered"}
"""Behind these the nodes are left as they are."""

_MOST = 6


@dataclass(frozen=True)
class Step:
    """One rewriting, and the seed of its choices."""

    name: str
    seed: int

    def __str__(self) -> str:
        return f"{self.name}:{self.seed}"


@dataclass(frozen=True)
class Twin:
    """What rewriting has made of a model.

    Attributes
    ----------
    model : ModelProto
    half_way : ModelProto
        The model behind those of `OF_SUMS`.
    applied : tuple of Step
        Those that found a place.
    external : bool
        Its data belong into a file beside it.
    """

    model: onnx.ModelProto
    half_way: onnx.ModelProto
    applied: tuple[Step, ...]
    external: bool


def drawn(rng: random.Random, names: Sequence[str]) -> tuple[Step, ...]:
    """Return one to six of the rewritings ``names``, in order of application."""
    count = min(len(names), rng.randint(1, _MOST))
    chosen = set(rng.sample(sorted(names), count))
    return tuple(Step(name, rng.randrange(10**6)) for name in REWRITINGS if name in chosen)


def twin_of(plain: onnx.ModelProto, steps: Sequence[Step]) -> Twin:
    """Return ``plain`` rewritten, step by step; ``plain`` itself stays."""
    model = _copy(plain)
    half_way, applied, beside = model, [], False
    for step in steps:
        if step.name not in OF_SUMS and half_way is model:
            half_way = _copy(model)
        draft = Draft(model, random.Random(step.seed))
        if REWRITINGS[step.name](draft):
            applied.append(step)
            if step.name not in _LAST:
                draft.finish()
        beside |= draft.external
    return Twin(model, half_way, tuple(applied), beside)


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    found = onnx.ModelProto()
    found.CopyFrom(model)
    return found
