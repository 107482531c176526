"""Counts that follow from a machine's parameters: its memories, the block RAMs that they take, and its multipliers."""

import math
from dataclasses import dataclass

from tilewright.isa.machine import TABLE_BYTES, TABLE_SLOTS, TILE_BYTES, Machine

__all__ = ["MacroMemory", "block_rams", "has_unit", "memories", "multipliers"]

_BLOCK_RAM_SHAPES = ((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36))
"""Words and bits of an ECP5 block RAM: Lattice FPGA-TN-02204, "ECP5 and ECP5-5G Memory Usage Guide"."""

_BLOCK_RAM_COST, _LUT_RAM_COST = 64, 4
_LUT_RAM_WORDS, _LUT_RAM_BITS = 16, 4
_CHANNEL_BITS = 64  # bias, mantissa and shift of a channel
_PRODUCTS_PER_SUM = 4  # of a requantiser, and of a residual adder


@dataclass(frozen=True, slots=True)
class MacroMemory:
    """``count`` memories of ``words`` of ``bits`` in a block of `synthesis.area_blocks`."""

    block: str
    count: int
    words: int
    bits: int


def has_unit(machine: Machine, unit: str) -> bool:
    """Tell whether a machine has a unit that may be left out."""
    return bool(getattr(machine, unit, True))


def memories(machine: Machine) -> tuple[MacroMemory, ...]:
    """Return the buffers, parameters and tables of a machine, without its queues."""
    words, winograd = machine.weight_words, has_unit(machine, "winograd")
    banks = max(machine.bus_bytes, machine.post_lanes)
    vector = max(_CHANNEL_BITS * machine.post_lanes, 8 * machine.bus_bytes)
    found = [
        MacroMemory("mac: activation buffer", TILE_BYTES, machine.activation_bytes // TILE_BYTES, 8),
        MacroMemory("mac: weight memories", 2 * machine.clusters, words, 64),
        MacroMemory("post: result buffer", banks, machine.result_bytes // banks, 8),
        MacroMemory("post: parameters and tables", 1, _CHANNEL_BITS * machine.parameter_channels // vector, vector),
    ]
    if winograd:
        found.append(MacroMemory("mac: weight memories", machine.clusters, words // 8, 128))
    if has_unit(machine, "value_tables"):
        found.append(MacroMemory("post: parameters and tables", machine.post_lanes,
                                 TABLE_SLOTS * TABLE_BYTES // machine.bus_bytes, 8 * machine.bus_bytes))
    return tuple(found)


def block_rams(memory: MacroMemory) -> int:
    """Return how many ECP5 block RAMs Yosys makes the memories of; 0 if LUT RAM costs it less."""
    each = min(math.ceil(memory.words / words) * math.ceil(memory.bits / bits) for words, bits in _BLOCK_RAM_SHAPES)
    rows, columns = math.ceil(memory.words / _LUT_RAM_WORDS), math.ceil(memory.bits / _LUT_RAM_BITS)
    return 0 if rows * columns * _LUT_RAM_COST < each * _BLOCK_RAM_COST else memory.count * each


def multipliers(machine: Machine) -> dict[str, int]:
    """Return the MULT18X18D of each block."""
    adders = max(1, machine.post_lanes // 4) if has_unit(machine, "residual_adder") else 0
    return {"mac: lanes": machine.multipliers, "post: requantise": _PRODUCTS_PER_SUM * machine.post_lanes,
            "post: residual add": _PRODUCTS_PER_SUM * adders}
