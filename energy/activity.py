"""Register toggles of each block, predicted from the counters and from statistics of the operands.

    toggles(block) = Σ over events (coefficient · count)

The events of each block are below; the coefficients are a non-negative fit to runs of the RTL that counted toggles
(energy/activity.toml, made by ``python -m tilewright.hardware.calibration.activity_fit``, which states the error). They
hold for machines of any size: what grows with the array is in the events. Blocks that are others with another kind of
array have coefficients for each kind.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

from tilewright.energy.actions import busy_cycles
from tilewright.energy.added_logic import CURVE_TOGGLES
from tilewright.energy.prices import Range
from tilewright.isa.machine import TILE_BYTES, Machine
from tilewright.sim.values.operand_samples import OperandToggles
from tilewright.sim.verilog.energy_blocks import ARRAY_BLOCKS, ENERGY_BLOCKS

__all__ = ["ERROR", "TABLE", "TYPICAL", "doubts", "events", "of_kind", "predict_toggles", "typical_operands"]

TABLE = Path(__file__).with_name("activity.toml")

ERROR = "error"
"""The section of the table that holds the largest error of a block's prediction, its network left out of the fit."""

TYPICAL = "typical"
"""Sections of the table, one for each kind of array, that hold operands as they are on average, by the instruction that
takes them, per lane.
"""

_Features = dict[str, float]


def of_kind(block: str, array: str) -> str:
    """Return what a block is called in the table: blocks that are others with another array have the kind behind it."""
    return f"{block}@{array}" if block in (*ARRAY_BLOCKS, TYPICAL) else block


def events(counters: Mapping[str, int], algorithm: str, operands: OperandToggles,
           machine: Machine) -> dict[str, _Features]:
    """Return for each block the event counts to which its toggles are proportional, by name.

    Parameters
    ----------
    counters : Mapping[str, int]
        Counters of `tilewright.isa.counters` by name, of one layer.
    algorithm : str
        The instruction that computes it: sums of ``conv23`` are read one by one, others as four parts.
    operands : OperandToggles
        Of that layer.
    machine : Machine
    """
    slots = counters["tile_slots"]
    busy = busy_cycles(counters)
    lanes, clusters = slots * machine.lanes, slots * machine.clusters
    count = {name: float(value) for name, value in counters.items()}
    fetched = slots * operands.weights
    winograd = algorithm == "conv23"
    whole = winograd or not machine.winograd  # a plain array has one sum of a tile, too
    sums = {"conv23_sums": count["requantized"] * whole, "dot_sums": count["requantized"] * (not whole)}
    return {
        "array": {"operand_bits": slots * operands.array, "data_bits": slots * operands.data, "weight_bits": fetched,
                  "lane_slots": lanes, "cluster_slots": clusters},
        "sequencer": {"slots": slots, "address_bits": slots * operands.addresses, "busy_cycles": busy["sequencer"],
                      "commands": count["commands"], **sums},
        "activation_buffer": {"patch_bits": slots * operands.patch,
                              "bank_bits": count["activation_read"] / TILE_BYTES * operands.banks,
                              "address_bits": slots * operands.addresses, "slots": slots,
                              "bytes_read": count["activation_read"], "bytes_written": count["activation_written"]},
        "weight_buffer": {"weight_bits": fetched, "cluster_slots": clusters, "bytes_read": count["weight_read"],
                          "bytes_written": count["weight_written"]},
        "post_processing": {"requantized": count["requantized"], "vectors": count["requantized"] / machine.post_lanes,
                            "residual_added": count["residual_added"],
                            "bytes_read": count["result_read"], "bytes_written": count["result_written"],
                            "table_read": count["table_read"]},
        "load": {"bytes_read": count["memory_read"], "activation_bytes": count["activation_written"],
                 "weight_bytes": count["weight_written"], "busy_cycles": busy["load"]},
        "store": {"bytes_written": count["memory_written"], "bytes_read": count["result_read"],
                  "busy_cycles": busy["store"], "records": 1.0},
        "control": {"cycles": count["cycles"], "slots": slots, "commands": count["commands"],
                    "bytes_read": count["memory_read"], "bytes_written": count["memory_written"]},
    }


def predict_toggles(counters: Mapping[str, int], algorithm: str, operands: OperandToggles | None,
                    machine: Machine, curved: int = 0) -> dict[str, int]:
    """Return the register bits of each block that change in a layer.

    ``algorithm`` is the instruction that computes the layer; where ``operands`` is None, they are as typical for it.
    ``curved`` words of 16 bits follow a curve.
    """
    table = _table()
    known = events(counters, algorithm, operands or typical_operands(algorithm, machine), machine)
    found = {block: round(sum(coefficient * known[block][name]
                              for name, coefficient in table[of_kind(block, machine.array)].items()))
             for block in ENERGY_BLOCKS}
    return found | {"post_processing": found["post_processing"] + CURVE_TOGGLES * curved}


def doubts(array: str) -> dict[str, Range]:
    """Return how far predicted toggles of machines with a kind of array may be off, by the name of their action."""
    errors = {block: _table()[ERROR][of_kind(block, array)] for block in ENERGY_BLOCKS}
    return {f"{block}.register_toggle": Range(1 / (1 + error), 1 + error) for block, error in errors.items()}


def typical_operands(algorithm: str, machine: Machine) -> OperandToggles:
    """Return what the operands of an instruction are like on average: none where the array has no part in the layer."""
    typical = _table()[of_kind(TYPICAL, machine.array)]
    if algorithm not in ("conv", "conv23", "pool"):
        return OperandToggles()
    means = OperandToggles(**{each.name: typical[f"{algorithm}_{each.name}"] for each in fields(OperandToggles)})
    return replace(means, array=means.array * machine.lanes)


@cache
def _table() -> dict[str, dict[str, float]]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))
