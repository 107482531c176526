"""Counts from a machine's parameters: its memories, the block RAMs and LUT RAMs that they take, multipliers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.isa.counters import COUNTERS, RECORD_WORDS
from tilewright.isa.limits import MAX_ROW_LENGTH
from tilewright.isa.machine import TABLE_BYTES, TABLE_SLOTS, Machine

__all__ = [
    "REGISTER_FILE_WORDS", "MacroMemory", "block_ram_bits", "block_rams", "has_unit", "lut_ram_choices", "lut_rams",
    "memories", "multipliers", "register_file_bits", "residual_adders",
]

REGISTER_FILE_WORDS = 16
"""In standard cells a memory of at most so many words is made of flip-flops."""

_BLOCK_RAM_SHAPES = ((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36))
"""Words and bits of an ECP5 block RAM: Lattice FPGA-TN-02204, "ECP5 and ECP5-5G Memory Usage Guide"."""

_BLOCK_RAM_COST, _LUT_RAM_COST = 64, 4
_LUT_RAM_WORDS, _LUT_RAM_BITS = 16, 4
_CHANNEL_BITS = 64  # bias, mantissa and shift of a channel
_PRODUCTS_PER_SUM = 4  # of a requantiser, and of a residual adder
_PRODUCTS_PER_WORD = 2  # of a curve
_COMMAND_BITS = 74
_RESIDUAL_LATENCY = 28  # of a residual stage, less the interval of its vectors


@dataclass(frozen=True, slots=True)
class MacroMemory:
    """``count`` memories of ``words`` of ``bits`` in a block of `synthesis.area_blocks`.

    ``part`` bits of a word are written at a time; 0: all of it.
    """

    block: str
    count: int
    words: int
    bits: int
    part: int = 0


def has_unit(machine: Machine, unit: str) -> bool:
    """Tell whether a machine has a unit that may be left out."""
    return bool(getattr(machine, unit, True))


def memories(machine: Machine) -> tuple[MacroMemory, ...]:
    """Return the memories of a machine, without those that are the same in every machine and of few words."""
    return tuple(each for each in (*_buffers(machine), *_queues(machine)) if each.count)


def _buffers(machine: Machine) -> Iterable[MacroMemory]:
    """Yield activations, weights, results, parameters and tables."""
    words = machine.weight_words
    banks = max(machine.bus_bytes, machine.post_lanes)
    vector = max(_CHANNEL_BITS * machine.post_lanes, 8 * machine.bus_bytes)
    fetched, bus = machine.lanes_per_fetch, 8 * machine.bus_bytes
    yield MacroMemory("mac: activation buffer", machine.activation_memories,
                      machine.activation_bytes // machine.activation_memories, 8)
    yield MacroMemory("mac: weight memories", 2 * fetched * machine.clusters, words // fetched, 64, min(64, bus))
    yield MacroMemory("mac: weight memories", machine.clusters if machine.winograd else 0, words // 8, 128,
                      min(128, bus))
    yield MacroMemory("post: result buffer", banks, machine.result_bytes // banks, 8)
    yield MacroMemory("post: parameters and tables", 1, _CHANNEL_BITS * machine.parameter_channels // vector, vector,
                      bus)
    yield MacroMemory("post: parameters and tables", machine.post_lanes if machine.value_tables else 0,
                      TABLE_SLOTS * TABLE_BYTES // machine.bus_bytes, 8 * machine.bus_bytes)
    yield MacroMemory("post: control", int(machine.normalises_rows), (MAX_ROW_LENGTH + 1) // machine.post_lanes,
                      8 * machine.post_lanes)


def _queues(machine: Machine) -> Iterable[MacroMemory]:
    """Yield commands that wait, slots of residuals, counters, and the record that the store unit keeps of them."""
    interval = machine.post_lanes // max(1, residual_adders(machine))
    slot = ((machine.result_bytes - 1).bit_length() + machine.post_lanes.bit_length() + 4
            + 2 * machine.max_pooling)
    yield MacroMemory("control", 4, machine.queue_depth - 1, _COMMAND_BITS)
    yield MacroMemory("control", 1, len(COUNTERS), 32)
    yield MacroMemory("post: residual add", int(machine.residual_adder),
                      (_RESIDUAL_LATENCY + interval) // interval, slot)
    yield MacroMemory("store", machine.bus_bytes // 4, 4 * RECORD_WORDS // machine.bus_bytes, 32)


def block_rams(memory: MacroMemory) -> int:
    """Return how many ECP5 block RAMs Yosys makes the memories of; 0 if LUT RAM costs it no more."""
    part = memory.part or memory.bits
    each = min(math.ceil(memory.words / words) * math.ceil(part / bits) for words, bits in _BLOCK_RAM_SHAPES)
    each *= memory.bits // part
    dear = _lut_rams_of_one(memory) * _LUT_RAM_COST > each * _BLOCK_RAM_COST
    return memory.count * each if dear else 0


def lut_rams(memory: MacroMemory) -> int:
    """Return how many LUT RAMs of 16 words of 4 bits Yosys makes the memories of; 0 if it takes block RAMs."""
    return 0 if block_rams(memory) else memory.count * _lut_rams_of_one(memory)


def lut_ram_choices(memory: MacroMemory) -> int:
    """Return of how many bits of LUT RAM, beside those of its first words, a memory's bits are chosen."""
    return 0 if block_rams(memory) else memory.count * memory.bits * (math.ceil(memory.words / _LUT_RAM_WORDS) - 1)


def block_ram_bits(memory: MacroMemory) -> int:
    """Return how many bits are read from block RAM."""
    return memory.count * memory.bits if block_rams(memory) else 0


def register_file_bits(memory: MacroMemory) -> int:
    """Return how many flip-flops hold the memories in standard cells; 0 if they are macros."""
    return memory.count * memory.words * memory.bits if memory.words <= REGISTER_FILE_WORDS else 0


def _lut_rams_of_one(memory: MacroMemory) -> int:
    return math.ceil(memory.words / _LUT_RAM_WORDS) * math.ceil(memory.bits / _LUT_RAM_BITS)


def residual_adders(machine: Machine) -> int:
    """Return the adders of residuals: each serves four lanes of post-processing."""
    return max(1, machine.post_lanes // 4) if machine.residual_adder else 0


def multipliers(machine: Machine) -> dict[str, int]:
    """Return the MULT18X18D of each block."""
    each = _PRODUCTS_PER_SUM + _PRODUCTS_PER_WORD * machine.bends_words
    return {"mac: lanes": machine.multipliers, "post: requantise": each * machine.post_lanes,
            "post: residual add": _PRODUCTS_PER_SUM * residual_adders(machine)}
