"""Fit the coefficients of the area model to synthesised machines; see `make_area_model`.

Coefficients are not negative, so that no machine becomes larger when it loses a unit. Each block and resource is a
regression of its own, weighted by what the whole machine has of the resource: what counts is the machine's error.
Each machine is also predicted from all others, which gives the errors that are stated with every prediction.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.hardware.area_model.features import FEATURES, features_of
from tilewright.isa.machine import LIMITS, Machine

__all__ = [
    "COEFFICIENTS",
    "FITTED",
    "MEASURED",
    "SCALED",
    "Coefficients",
    "HeldOutError",
    "MeasuredArea",
    "errors_of",
    "fit",
    "held_out",
    "load_measured",
    "ranges",
    "ratios",
]

MEASURED = Path(__file__).with_name("measured.json")
COEFFICIENTS = Path(__file__).with_name("coefficients.json")
_RIDGE = 1e-6
_SWEEPS = 5000

FITTED: Mapping[str, tuple[str, ...]] = {
    "ecp5-85k": ("LUT", "carry", "FF", "LUT RAM"), "sky130": ("area", "flip-flops"),
}
"""Resources that have coefficients, by the target whose results they are fitted to."""

SCALED = {"osu018": "sky130"}
"""Targets with few results: each block's area is that on another target, times a ratio."""

Coefficients = dict[str, dict[str, list[float]]]
"""By resource and block, one for each feature."""


@dataclass(frozen=True, slots=True)
class MeasuredArea:
    """Findings of synthesis on a machine: how much of each resource each block has."""

    machine: Machine
    target: str
    blocks: Mapping[str, Mapping[str, float]]

    @property
    def in_cells(self) -> bool:
        """Whether the target is a library of standard cells."""
        return not self.target.startswith("ecp5")

    def total(self, resource: str) -> float:
        """Return how much of a resource all blocks have."""
        return sum(block.get(resource, 0) for block in self.blocks.values())


def load_measured(prefix: str) -> list[MeasuredArea]:
    """Return the committed results of the targets whose names begin with ``prefix``."""
    rows = json.loads(MEASURED.read_text(encoding="utf-8"))
    return [MeasuredArea(Machine(**row["machine"]), row["target"], row["blocks"])
            for row in rows if row["target"].startswith(prefix)]


def fit(measured: Sequence[MeasuredArea], resources: Sequence[str]) -> Coefficients:
    """Return the coefficients of each resource and block."""
    return _fits(measured, resources, np.ones((1, len(measured))))[0]


def held_out(measured: Sequence[MeasuredArea], resources: Sequence[str]) -> list[dict[str, float]]:
    """Return by how much of what it has of a resource each machine is mispredicted from all the others."""
    fits = _fits(measured, resources, 1 - np.eye(len(measured)))
    return [{resource: _predicted(each, found[resource]) / each.total(resource) - 1 for resource in resources}
            for each, found in zip(measured, fits, strict=True)]


@dataclass(frozen=True, slots=True)
class HeldOutError:
    """Error of machines that were predicted from all others, as shares: root of the mean square, and the largest."""

    rms: float
    worst: float


def errors_of(found: Sequence[Mapping[str, float]]) -> dict[str, HeldOutError]:
    """Return the error by resource, of what `held_out` returns."""
    errors = {resource: np.array([each[resource] for each in found]) for resource in found[0]}
    return {resource: HeldOutError(float(f"{np.sqrt(np.mean(each ** 2)):.4g}"), float(f"{np.abs(each).max():.4g}"))
            for resource, each in errors.items()}


def ranges(machines: Sequence[Machine]) -> dict[str, list[int]]:
    """Return the least and greatest value of each size."""
    return {name: [min(values), max(values)] for name in LIMITS
            if (values := [getattr(each, name) for each in machines])}


def ratios(target: str) -> dict[str, float]:
    """Return by block how many times as large machines are on ``target`` as on the target that it is scaled from."""
    pairs = [(each, other) for each in load_measured(target) for other in load_measured(SCALED[target])
             if each.machine.same_as(other.machine)]
    found = {}
    for block in FEATURES:
        area, of = (sum(pair[number].blocks.get(block, {}).get("area", 0.0) for pair in pairs) for number in (0, 1))
        found[block] = float(f"{area / of:.4g}")
    return found


def _predicted(each: MeasuredArea, coefficients: Mapping[str, Sequence[float]]) -> float:
    """Return the sum over all blocks by ``coefficients`` of a resource."""
    return float(sum(np.dot(features_of(each.machine, block, cells=each.in_cells), found)
                     for block, found in coefficients.items()))


def _fits(measured: Sequence[MeasuredArea], resources: Sequence[str], chosen: np.ndarray) -> list[Coefficients]:
    """Return the coefficients for each row of ``chosen``, which has a weight for each machine."""
    problems = [(resource, block) for resource in resources for block in FEATURES]
    widths = {block: len(features_of(measured[0].machine, block, cells=measured[0].in_cells)) for block in FEATURES}
    widest = max(widths.values())
    squares = np.zeros((len(chosen), len(problems), widest, widest))
    products = np.zeros((len(chosen), len(problems), widest))
    scales = np.ones((len(problems), widest))
    for number, (resource, block) in enumerate(problems):
        rows = np.array([features_of(each.machine, block, cells=each.in_cells) for each in measured], float)
        weights = 1 / np.array([each.total(resource) for each in measured])
        width = widths[block]
        scales[number, :width] = np.maximum(np.abs(rows * weights[:, None]).max(axis=0), 1e-12)
        inputs = rows * weights[:, None] / scales[number, :width]
        wanted = weights * np.array([each.blocks.get(block, {}).get(resource, 0.0) for each in measured])
        squares[:, number, :width, :width] = np.einsum("fm,mi,mj->fij", chosen, inputs, inputs)
        products[:, number, :width] = np.einsum("fm,mi,m->fi", chosen, inputs, wanted)
    found = _non_negative(squares.reshape(-1, widest, widest), products.reshape(-1, widest))
    found = found.reshape(len(chosen), len(problems), widest) / scales
    return [{resource: {block: [float(f"{value:.6g}") for value in row[:widths[block]]]
                        for (of, block), row in zip(problems, rows, strict=True) if of == resource}
             for resource in resources} for rows in found]


def _non_negative(squares: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return the non-negative solutions of many least squares at once, from X'X and X'y, by coordinate descent."""
    count, width = products.shape
    found = np.zeros((count, width))
    diagonal = np.einsum("nii->ni", squares) + _RIDGE
    for _ in range(_SWEEPS):
        for column in range(width):
            rest = products[:, column] - np.einsum("ni,ni->n", squares[:, column], found)
            found[:, column] += np.maximum(-found[:, column], rest / diagonal[:, column])
    return found
