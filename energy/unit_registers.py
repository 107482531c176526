"""Flip-flops that a machine saves by what it leaves out, by block: differences of elaborated machines.

Counted on `nano`, on `base`, and on a machine of two lanes between them, each without one unit at a time; the terms
below are lines through the three. Without all of them at once the sum of blocks is met within 3 %.
"""

from collections.abc import Mapping

from tilewright.isa.machine import Machine

__all__ = ["saved_registers"]

_PLAIN_LANE = 643
"""Of a plain lane, its part of the cluster included."""


def saved_registers(machine: Machine, whole: Mapping[str, int]) -> dict[str, int]:
    """Return by block how many flip-flops fewer a machine has than the same with all units.

    Parameters
    ----------
    machine : Machine
        With an array of kind ``plain`` or ``winograd``.
    whole : mapping of str to int
        The flip-flops of the machine with all units and ``winograd``.
    """
    post, bus = machine.post_lanes, machine.bus_bytes
    units: dict[str, dict[str, float]] = {
        "column_reuse": {"activation_buffer": 5},
        "paired_rows": {},
        "value_tables": {"post_processing": 7 + 62 * post + 26.5 * bus},
        "residual_adder": {"post_processing": 1937 * max(1, post // 4) + 28 * post, "load": 5},
        "max_pooling": {"post_processing": 334 + 41 * post},
        "chaining": {"store": 209 + 9 * bus},
    }
    found: dict[str, float] = dict.fromkeys(whole, 0.0)
    for unit, blocks in units.items():
        if not getattr(machine, unit):
            for block, saved in blocks.items():
                found[block] += saved
    if not machine.winograd:
        plain = {"array": whole["array"] - _PLAIN_LANE * machine.lanes, "sequencer": 87 + 320 * post,
                 "activation_buffer": 192, "weight_buffer": 187 * machine.clusters, "post_processing": 91, "load": 76,
                 "store": 56}
        for block, saved in plain.items():
            found[block] += saved
    return {block: round(max(0.0, min(saved, whole[block]))) for block, saved in found.items()}
