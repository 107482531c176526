"""Terms that the area of each block is a sum of: features of the machine, each with a coefficient that is fitted."""

import math
from collections.abc import Callable, Mapping

from tilewright.hardware.area_model.structure import has_unit
from tilewright.isa.machine import Machine

__all__ = ["FEATURES", "Features"]

Features = Callable[[Machine], tuple[float, ...]]


def _residual(machine: Machine) -> tuple[float, ...]:
    adders = max(1, machine.post_lanes // 4)
    return _if(has_unit(machine, "residual_adder"), adders, machine.post_lanes)


def _results(machine: Machine) -> tuple[float, ...]:
    banks = max(machine.bus_bytes, machine.post_lanes)
    return banks, banks * math.log2(banks)


def _parameters(machine: Machine) -> tuple[float, ...]:
    chosen = machine.post_lanes * machine.bus_bytes if has_unit(machine, "value_tables") else 0
    return machine.post_lanes, chosen


def _winograd(machine: Machine) -> bool:
    return has_unit(machine, "winograd")


def _if(present: bool, *features: float) -> tuple[float, ...]:
    return features if present else (0.0,) * len(features)


FEATURES: Mapping[str, Features] = {
    "mac: sequencer": lambda machine: (1, math.log2(machine.activation_bytes)),
    "mac: activation buffer": lambda machine: (1, machine.bus_bytes, math.log2(machine.activation_bytes)),
    "mac: input transform": lambda machine: _if(_winograd(machine), 1),
    "mac: lanes": lambda machine: (machine.lanes,),
    "mac: weight transform": lambda machine: _if(_winograd(machine), machine.clusters),
    "mac: weight memories": lambda machine: (machine.clusters,),
    "mac: sums out": lambda machine: (machine.lanes, machine.post_lanes),
    "post: control": lambda machine: (1, machine.post_lanes),
    "post: requantise": lambda machine: (machine.post_lanes,),
    "post: residual add": _residual,
    "post: max pool": lambda machine: _if(has_unit(machine, "max_pooling"), 1, machine.post_lanes),
    "post: result buffer": _results,
    "post: parameters and tables": _parameters,
    "load": lambda machine: (1, machine.bus_bytes),
    "store": lambda machine: (1, machine.bus_bytes),
    "control": lambda machine: (1, machine.bus_bytes),
}
"""By block of `synthesis.area_blocks`; a unit that is left out has features of 0."""
