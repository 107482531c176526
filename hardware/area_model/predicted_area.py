"""Area of a machine before synthesis, by block: multipliers and memories counted, all else by fitted coefficients."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.energy.estimate import Technology
from tilewright.energy.sram import Sram
from tilewright.hardware.area_model.features import FEATURES
from tilewright.hardware.area_model.structure import block_rams, has_unit, memories, multipliers
from tilewright.isa.machine import PRESETS, Machine

__all__ = ["TARGETS_PREDICTED", "PredictedArea", "predict_area"]

TARGETS_PREDICTED = ("ecp5-25k", "ecp5-85k", "osu018", "sky130")

_ECP5 = "ecp5-85k"  # for the smaller device Yosys makes short adders of LUTs: more LUTs, fewer carry cells
_COEFFICIENTS = Path(__file__).with_name("coefficients.json")
_REGISTER_FILE_WORDS = 16  # in standard cells a memory of at most so many words is made of flip-flops
_UNITS = ("column_reuse", "paired_rows", "value_tables", "residual_adder", "max_pooling", "chaining")
_SIZES = ("lanes", "clusters", "tiles", "post_lanes", "bus_bytes", "queue_depth")


@dataclass(frozen=True, slots=True)
class PredictedArea:
    """Predicted area by block.

    Attributes
    ----------
    target : str
    blocks : mapping
        By block of `synthesis.area_blocks`, how much of each resource; resources are those of a synthesis report:
        ``LUT``, ``carry``, ``FF``, ``LUT RAM``, ``DSP``, ``BRAM``, or ``area`` and ``memory`` in µm², ``flip-flops``.
    beyond : tuple of str
        Parameters outside what the model was fitted to; the figures are then extrapolated.
    """

    target: str
    blocks: Mapping[str, Mapping[str, float]]
    beyond: tuple[str, ...]

    def total(self, resource: str) -> float:
        """Return how much of a resource all blocks have."""
        return sum(block.get(resource, 0) for block in self.blocks.values())

    def totals(self) -> dict[str, float]:
        """Return how much of each resource all blocks have."""
        names = dict.fromkeys(name for block in self.blocks.values() for name in block)
        return {name: self.total(name) for name in names}


def predict_area(machine: Machine, target: str) -> PredictedArea:
    """Return the predicted area of the coprocessor of ``machine``, alone, on one of `TARGETS_PREDICTED`.

    Raises
    ------
    ValueError
        If areas on the target are not predicted.
    """
    if target not in TARGETS_PREDICTED:
        raise ValueError(f"Target must be one of {', '.join(TARGETS_PREDICTED)}, not {target!r}")
    family = _ECP5 if target.startswith("ecp5") else target
    blocks: dict[str, dict[str, float]] = {block: {} for block in FEATURES}
    features = {block: each(machine) for block, each in FEATURES.items()}
    for resource, coefficients in _coefficients()[family].items():
        for block, values in features.items():
            blocks[block][resource] = sum(map(float.__mul__, coefficients[block], map(float, values)))
    if family == _ECP5:
        for block, count in multipliers(machine).items():
            blocks[block]["DSP"] = count
    for memory in memories(machine):
        found = blocks[memory.block]
        if family == _ECP5:
            found["BRAM"] = found.get("BRAM", 0) + block_rams(memory)
        elif memory.words > _REGISTER_FILE_WORDS:
            area = _sram(family).area_um2(memory.words * memory.bits // 8, memory.bits)
            found["memory"] = found.get("memory", 0) + memory.count * area
    return PredictedArea(target, blocks, _beyond(machine))


def _beyond(machine: Machine) -> tuple[str, ...]:
    """Return the parameters that lie outside those of the presets, which are what was synthesised with all units."""
    sizes = [name for name in _SIZES
             if not min(values := [getattr(each, name) for each in PRESETS.values()])
             <= getattr(machine, name) <= max(values)]
    array = [] if has_unit(machine, "winograd") else ["array"]
    return (*sizes, *array, *(unit for unit in _UNITS if not has_unit(machine, unit)))


@cache
def _coefficients() -> dict[str, Any]:
    return dict(json.loads(_COEFFICIENTS.read_text(encoding="utf-8")))


@cache
def _sram(technology: str) -> Sram:
    found = Technology.load(technology).sram
    assert found is not None, technology
    return found
