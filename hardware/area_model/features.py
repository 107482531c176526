"""Features of the machine whose weighted sum is the area of each block; the coefficients are fitted.

A feature never falls when a machine gets a unit, more lanes or a wider bus, and coefficients are not negative: so no
machine is predicted to be smaller than one that lacks a unit of it.
"""

import math
from collections.abc import Callable, Mapping

from tilewright.hardware.area_model.structure import (
    block_ram_bits,
    has_unit,
    lut_ram_choices,
    lut_rams,
    memories,
    register_file_bits,
    residual_adders,
)
from tilewright.isa.machine import ARRAYS, TILE_BYTES, Machine

__all__ = ["FEATURES", "Features", "features_of"]

Features = Callable[[Machine], tuple[float, ...]]

_BLOCK_RAM_WORDS = 16384  # of one bit; a deeper memory is several, and multiplexers behind them


_OF_MEMORY = {True: (register_file_bits,), False: (lut_rams, lut_ram_choices, block_ram_bits)}
"""Of each memory, by whether it is one of standard cells: what its block has flip-flops, LUTs and LUT RAM for."""


def features_of(machine: Machine, block: str, *, cells: bool) -> tuple[float, ...]:
    """Return the features of a block of ``machine``, in standard ``cells`` or on an FPGA."""
    own = [memory for memory in memories(machine) if memory.block == block]
    return (*FEATURES[block](machine), *(sum(map(count, own)) for count in _OF_MEMORY[cells]))


def _sequencer(machine: Machine) -> tuple[float, ...]:
    bits = _address_bits(machine)
    return (1, bits, *_if(machine.winograd, 1, bits), machine.reuses_columns, *_if(machine.paired_rows, 1, bits),
            math.log2(machine.tiles))


def _activation_buffer(machine: Machine) -> tuple[float, ...]:
    bits = _address_bits(machine)
    return (1, bits, *_if(machine.winograd, 1, bits), machine.reuses_columns, *_if(machine.paired_rows, 1, bits),
            machine.pairs_channels, machine.bus_bytes, _choices(machine.activation_bytes // TILE_BYTES))


def _lanes(machine: Machine) -> tuple[float, ...]:
    kinds = {array: machine.lanes if machine.array == array else 0 for array in ARRAYS}
    return *kinds.values(), machine.inner, machine.pairs_channels, math.log2(machine.tiles)


def _weight_memories(machine: Machine) -> tuple[float, ...]:
    clusters, deep = machine.clusters, _choices(machine.weight_words)
    bits = math.log2(machine.weight_words)
    every = clusters * deep, clusters * machine.bus_bytes  # a cluster keeps the write that comes to it
    inner = _if(machine.inner, clusters, clusters * bits, clusters * machine.pairs_channels)
    if machine.inner:
        return 0, 0, 0, 0, *inner, *every
    return clusters, clusters * bits, *_if(machine.winograd, clusters, clusters * bits), *inner, *every


def _sums_out(machine: Machine) -> tuple[float, ...]:
    lanes, post = machine.lanes, machine.post_lanes
    if machine.pairs_channels:
        return 0, 0, 0, 0, 0, 0, 1, lanes, lanes - post
    if machine.inner:
        return 1, 0, post, lanes - post, 0, 0, 0, 0, 0
    return 1, post, 0, lanes - post, *_if(machine.winograd, post, lanes - post), 0, 0, 0


def _post_control(machine: Machine) -> tuple[float, ...]:
    bits = math.log2(machine.result_bytes)
    pooling, residual = has_unit(machine, "max_pooling"), has_unit(machine, "residual_adder")
    return (1, machine.post_lanes, bits, *_if(pooling, 1, bits, machine.post_lanes),
            *_if(residual, 1, machine.post_lanes), *_if(has_unit(machine, "value_tables"), 1, machine.post_lanes),
            machine.winograd, has_unit(machine, "whole_sums"))


def _residual(machine: Machine) -> tuple[float, ...]:
    adders = residual_adders(machine)
    return _if(adders > 0, 1, adders, machine.post_lanes, math.log2(machine.result_bytes))


def _max_pool(machine: Machine) -> tuple[float, ...]:
    bits = math.log2(machine.result_bytes)
    return (1, machine.post_lanes, bits, *_if(has_unit(machine, "max_pooling"), 1, machine.post_lanes, bits),
            has_unit(machine, "residual_adder"))


def _results(machine: Machine) -> tuple[float, ...]:
    lanes, bus = machine.post_lanes, machine.bus_bytes
    banks = max(bus, lanes)
    words = machine.result_bytes // banks
    bits = math.log2(banks)
    return (1, banks, banks * bits, banks * math.log2(words), banks * _choices(words), banks * math.log2(lanes), bus,
            *_if(has_unit(machine, "residual_adder"), banks, banks * bits))


def _parameters(machine: Machine) -> tuple[float, ...]:
    lanes, bus = machine.post_lanes, machine.bus_bytes
    vectors = max(1, bus // 8 // lanes)  # of which one is chosen
    return (1, lanes, vectors - 1, math.log2(machine.parameter_channels),
            *_if(has_unit(machine, "value_tables"), 1, lanes, lanes * bus))


def _load(machine: Machine) -> tuple[float, ...]:
    bus = machine.bus_bytes
    return (1, bus, bus * math.log2(bus), *_if(machine.winograd, 1, bus),
            *_if(has_unit(machine, "residual_adder"), 1, bus), has_unit(machine, "value_tables"))


def _store(machine: Machine) -> tuple[float, ...]:
    bus = machine.bus_bytes
    chaining = has_unit(machine, "chaining")
    return (1, bus, bus * math.log2(bus), *_if(chaining, 1, bus), *_if(chaining and machine.winograd, 1, bus))


def _control(machine: Machine) -> tuple[float, ...]:
    bus = machine.bus_bytes
    units = sum(has_unit(machine, unit) for unit in ("value_tables", "residual_adder", "max_pooling"))
    return (1, bus, math.log2(machine.queue_depth), *_if(has_unit(machine, "chaining"), 1, bus), units,
            machine.winograd, machine.watchdog_cycles.bit_length())


def _address_bits(machine: Machine) -> float:
    """Return the bits of a word's address in a bank of the activation buffer."""
    return math.log2(machine.activation_bytes // TILE_BYTES)


def _choices(words: int) -> int:
    """Return of how many more memories than one a word is chosen, where it is too deep for one block RAM."""
    return max(1, words // _BLOCK_RAM_WORDS) - 1


def _if(present: bool, *features: float) -> tuple[float, ...]:
    return features if present else (0.0,) * len(features)


FEATURES: Mapping[str, Features] = {
    "mac: sequencer": _sequencer,
    "mac: activation buffer": _activation_buffer,
    "mac: input transform": lambda machine: _if(machine.winograd, 1, machine.pairs_channels),
    "mac: lanes": _lanes,
    "mac: weight transform": lambda machine: _if(machine.winograd, machine.clusters,
                                                 machine.clusters * machine.pairs_channels),
    "mac: weight memories": _weight_memories,
    "mac: sums out": _sums_out,
    "post: control": _post_control,
    "post: requantise": lambda machine: (1, machine.post_lanes,
                                         *_if(has_unit(machine, "whole_sums"), machine.post_lanes)),
    "post: residual add": _residual,
    "post: max pool": _max_pool,
    "post: result buffer": _results,
    "post: parameters and tables": _parameters,
    "load": _load,
    "store": _store,
    "control": _control,
}
"""By block of `synthesis.area_blocks`, but for its small memories; a unit that is left out has features of 0."""
