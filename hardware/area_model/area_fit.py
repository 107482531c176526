"""Fits the coefficients of the area model: ``make area-model`` writes coefficients.json.

Coefficients are not negative, so that no machine becomes larger when it loses a unit, and small where few machines
were synthesised: each block and resource is a ridge regression of its own, of relative errors.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.hardware.area_model.features import FEATURES
from tilewright.isa.machine import Machine
from tilewright.tools.files import write_file

__all__ = ["COEFFICIENTS", "FITTED", "MEASURED", "Coefficients", "MeasuredArea", "fit", "load_measured", "main"]

MEASURED = Path(__file__).with_name("measured.json")
COEFFICIENTS = Path(__file__).with_name("coefficients.json")
_RIDGE = 1e-3
_SWEEPS = 2000

FITTED: Mapping[str, tuple[str, ...]] = {
    "ecp5-85k": ("LUT", "carry", "FF", "LUT RAM"), "osu018": ("area", "flip-flops"), "sky130": ("area", "flip-flops"),
}
"""Resources that have coefficients, by the target whose results they are fitted to."""

Coefficients = dict[str, dict[str, list[float]]]
"""By resource and block, one for each feature."""


@dataclass(frozen=True, slots=True)
class MeasuredArea:
    """Findings of synthesis on a machine: how much of each resource each block has."""

    machine: Machine
    target: str
    blocks: Mapping[str, Mapping[str, float]]

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
    return {resource: {
        block: _non_negative(np.array([features(each.machine) for each in measured], float),
                             np.array([each.blocks.get(block, {}).get(resource, 0.0) for each in measured]))
        for block, features in FEATURES.items()} for resource in resources}


def _non_negative(rows: np.ndarray, values: np.ndarray) -> list[float]:
    """Return the non-negative coefficients of least squares, by coordinate descent; errors are relative."""
    weights = 1 / np.maximum(values, max(values.max(initial=0.0) / 100, 1e-9))
    scale = np.maximum(np.abs(rows).max(axis=0), 1e-12)
    inputs, wanted = rows / scale * weights[:, None], values * weights
    found = np.zeros(rows.shape[1])
    ridge = _RIDGE / max(values.max(initial=0.0), 1e-9) ** 2
    square = (inputs ** 2).sum(axis=0) + ridge
    for _ in range(_SWEEPS):
        for column in range(len(found)):
            rest = wanted - inputs @ found + inputs[:, column] * found[column]
            found[column] = max(0.0, inputs[:, column] @ rest / square[column])
    return [float(f"{each:.6g}") for each in found / scale]


def main() -> None:
    """Write the coefficients."""
    found = {target: fit(load_measured(target), resources) for target, resources in FITTED.items()}
    write_file(COEFFICIENTS, f"{json.dumps(found, indent=1)}\n".encode())


if __name__ == "__main__":
    main()
