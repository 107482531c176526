"""Area of a machine before synthesis, by block: multipliers and memories counted, the rest by fitted coefficients."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tilewright.energy.estimate import Technology
from tilewright.energy.sram import Sram
from tilewright.energy.unit_registers import channel_kernel_registers, four_patch_registers, integer_registers
from tilewright.hardware.area_model.area_fit import COEFFICIENTS, SCALED, HeldOutError
from tilewright.hardware.area_model.features import FEATURES, features_of
from tilewright.hardware.area_model.structure import REGISTER_FILE_WORDS, block_rams, memories, multipliers
from tilewright.isa.coded.weight_code import GROUP
from tilewright.isa.machine import Machine

__all__ = ["TARGETS_PREDICTED", "PredictedArea", "predict_area"]

TARGETS_PREDICTED = ("ecp5-25k", "ecp5-85k", "osu018", "sky130")

_ECP5 = "ecp5-85k"  # for the smaller device Yosys makes short adders of LUTs: more LUTs, fewer carry cells


@dataclass(frozen=True, slots=True)
class PredictedArea:
    """Predicted area by block.

    Attributes
    ----------
    target : str
    blocks : mapping
        By block of `synthesis.area_blocks`, how much of each resource; resources are those of a synthesis report:
        ``LUT``, ``carry``, ``FF``, ``LUT RAM``, ``DSP``, ``BRAM``, or ``area`` and ``memory`` in µm², ``flip-flops``.
    errors : mapping
        By resource that is fitted, the error of machines that were held out of the fit. Others are counted, and exact.
    beyond : tuple of str
        Parameters outside what the model was fitted to; the figures are then extrapolated.
    """

    target: str
    blocks: Mapping[str, Mapping[str, float]]
    errors: Mapping[str, HeldOutError]
    beyond: tuple[str, ...]

    def total(self, resource: str) -> float:
        """Return how much of a resource all blocks have."""
        return sum(block.get(resource, 0) for block in self.blocks.values())

    def totals(self) -> dict[str, float]:
        """Return how much of each resource all blocks have."""
        names = dict.fromkeys(name for block in self.blocks.values() for name in block)
        return {name: self.total(name) for name in names}


_ROW_UNIT = {"LUT": (365.0, 58.0), "carry": (111.0, 21.0), "FF": (804.0, 304.0)}
"""Of the row unit on ECP5, and for each lane of post-processing: Yosys 0.70, `rtl.post.row_unit` alone at 1, 2, 8, 16
lanes (423 to 1,308 LUT4), without the choices between its entries and sums, and before it normalised: roots and
products of a normalisation are not in them. Flip-flops are those of all that belongs to it now."""


_DECODER = {"LUT": (232.0, 17.0), "carry": (11.0, 0.1), "FF": (112.0, 14.0)}
"""Of the decoder of weights on ECP5, for each of its lanes, and for each of these and each byte of the bus: Yosys 0.70,
`rtl.load.weight_decoder` alone on `nano`, `base` and `large` (595, 1,433 and 4,050 LUT4; 368, 896 and 2,728 FF)."""

_CHANNEL_KERNELS = {"mac: sequencer": (23.0, 0.0), "mac: weight memories": (0.0, 11.0)}
"""LUT4 of kernels by channel on ECP5, and for each cluster: Yosys 0.70, the sequencer and the weight buffer of `base`
(23 and 9) and of `base,array=winograd,lanes=8` (10 and 13). Flip-flops are those of `channel_kernel_registers`."""


_FOUR_PATCHES = {
    "mac: activation buffer": {"LUT": (3267.0, 0.0)},
    "mac: input transform": {"LUT": (912.0, 0.0), "carry": (360.0, 0.0)},
    "mac: lanes": {"LUT": (0.0, 480.0)}, "mac: weight memories": {"LUT": (0.0, 80.0)},
}
"""Of four patches at once on ECP5, and for each cluster: Yosys 0.70, the buffer of `base` (5,557 LUT4 for 2,290) and
three transforms of 304 LUT4 and 120 CCU2C; counted by hand, a multiplexer of 160 bits before each of three lanes and
one of a kernel. Flip-flops are those of `four_patch_registers`."""

_PLACES = {"array": "mac: input transform", "sequencer": "mac: sequencer",
           "activation_buffer": "mac: activation buffer", "weight_buffer": "mac: weight memories",
           "post_processing": "post: control"}
"""Blocks of the area model, by those of energy."""


_INTEGERS = {"LUT": 220.0, "carry": 45.0}
"""Of integer requantisation on ECP5, for each lane of post-processing: Yosys 0.70, `rtl.arithmetic.requantise` alone
with and without (539 and 319 LUT4). Flip-flops are those of `integer_registers`."""

_INTEGERS_ALONE = {"LUT": -64.0, "carry": 4.0}
"""The same without float32 scales: 271 LUT4 for 335 of a lane that takes bytes of whole sums."""


_WIDE_WORDS = {
    "mac: sequencer": {"LUT": (39.0, 0.0), "FF": (43.0, 0.0)},
    "post: control": {"LUT": (141.0, 0.0), "carry": (7.0, 0.0), "FF": (95.0, 0.0)},
    "post: requantise": {"LUT": (0.0, 47.6), "carry": (0.0, 13.9)},
}
"""Of words of 16 bits on ECP5, and for each lane of post-processing: Yosys 0.70, `base` with and without (22,543 and
21,602 LUT4, 5,519 and 5,290 CCU2C). What other blocks have more is in post-processing's control; that requantisers
have 2,240 flip-flops fewer is not."""


_CURVES = {"post: parameters and tables": {"LUT": (60.0, 82.0), "carry": (0.0, 43.6), "FF": (111.0, 337.0)}}
"""Of their curves, on ECP5: a `rtl.arithmetic.parabola` alone takes 66 LUT4 and 44 CCU2C, and `base` with words 715 and
349 more than without curves (23,258 and 22,543 LUT4). Flip-flops are those of `word_registers`."""


def predict_area(machine: Machine, target: str) -> PredictedArea:
    """Return the predicted area of the coprocessor of ``machine``, alone, on one of `TARGETS_PREDICTED`.

    Raises
    ------
    ValueError
        If areas on the target are not predicted.
    """
    if target not in TARGETS_PREDICTED:
        raise ValueError(f"Target must be one of {', '.join(TARGETS_PREDICTED)}, not {target!r}")
    family = _ECP5 if target.startswith("ecp5") else SCALED.get(target, target)
    model, cells = _model()[family], family != _ECP5
    blocks: dict[str, dict[str, float]] = {block: {} for block in FEATURES}
    features = {block: features_of(machine, block, cells=cells) for block in FEATURES}
    for resource, coefficients in model["coefficients"].items():
        for block, values in features.items():
            blocks[block][resource] = sum(map(float.__mul__, coefficients[block], map(float, values)))
    for block, ratio in (_model()[target]["ratios"] if target in SCALED else {}).items():
        blocks[block]["area"] *= ratio
    _add_counted(blocks, machine, target)
    return PredictedArea(target, blocks, {name: HeldOutError(**each) for name, each in model["errors"].items()},
                         _beyond(machine, model["ranges"]))


def _add_counted(blocks: Mapping[str, dict[str, float]], machine: Machine, target: str) -> None:
    """Add what follows from the parameters: multipliers and block RAMs, or static RAM."""
    if target.startswith("ecp5"):
        for block, count in multipliers(machine).items():
            blocks[block]["DSP"] = count
        if machine.coded_weights:
            for resource, (first, each) in _DECODER.items():
                blocks["load"][resource] += machine.decoded_bytes // GROUP * (first + each * machine.bus_bytes)
        if machine.normalises_rows:
            for resource, (first, each) in _ROW_UNIT.items():
                blocks["post: control"][resource] += first + each * machine.post_lanes
        if machine.takes_channel_kernels:
            for block, (first, each) in _CHANNEL_KERNELS.items():
                blocks[block]["LUT"] += first + each * machine.clusters
            blocks["mac: sequencer"]["FF"] += sum(channel_kernel_registers(machine).values())
        if machine.takes_four_patches:
            _add(blocks, _FOUR_PATCHES, machine.clusters)
            for block, count in four_patch_registers(machine).items():
                blocks[_PLACES[block]]["FF"] += count
        if machine.wide_words:
            _add(blocks, _WIDE_WORDS, machine.post_lanes)
        if machine.bends_words:
            _add(blocks, _CURVES, machine.post_lanes)
        if machine.integer_requantise:
            for resource, each in (_INTEGERS if machine.float_requantise else _INTEGERS_ALONE).items():
                blocks["post: requantise"][resource] += each * machine.post_lanes
            blocks["post: requantise"]["FF"] += sum(integer_registers(machine).values())
    for memory in memories(machine):
        found = blocks[memory.block]
        if target.startswith("ecp5"):
            found["BRAM"] = found.get("BRAM", 0) + block_rams(memory)
        elif memory.words > REGISTER_FILE_WORDS:
            area = _sram(target).area_um2(memory.words * memory.bits // 8, memory.bits)
            found["memory"] = found.get("memory", 0) + memory.count * area


def _add(blocks: Mapping[str, dict[str, float]], unit: Mapping[str, Mapping[str, tuple[float, float]]],
         count: int) -> None:
    """Add what a unit takes in each block, once and ``count`` times."""
    for block, resources in unit.items():
        for resource, (first, each) in resources.items():
            blocks[block][resource] += first + each * count


def _beyond(machine: Machine, ranges: Mapping[str, tuple[int, int]]) -> tuple[str, ...]:
    """Return the parameters that lie outside those of the machines that were synthesised: none had extra units."""
    found = tuple(name for name, (least, most) in ranges.items() if not least <= getattr(machine, name) <= most)
    extra = {"row_unit": machine.normalises_rows, "coded_weights": machine.coded_weights,
             "channel_kernels": machine.takes_channel_kernels, "integer_requantise": machine.integer_requantise,
             "wide_words": machine.wide_words, "four_patches": machine.takes_four_patches}
    return (*found, *(unit for unit, there in extra.items() if there))


@cache
def _model() -> dict[str, Any]:
    return dict(json.loads(COEFFICIENTS.read_text(encoding="utf-8")))


@cache
def _sram(technology: str) -> Sram:
    found = Technology.load(technology).sram
    assert found is not None, technology
    return found
