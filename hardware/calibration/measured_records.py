"""Records of measurements: the fields that blocks and cores have in common."""

from collections.abc import Mapping
from typing import Any

from tilewright.hardware.calibration.record import BlockWindow, FittedPrice, GatedRecord
from tilewright.hardware.gates.fit import GatedFit, PriceFit
from tilewright.hardware.gates.measure import Measurement

__all__ = ["block_windows", "netlist_fields"]


def netlist_fields(one: Measurement, prices: PriceFit, elaborated: int, idle: float, gated: GatedFit | None,
                   event: str) -> dict[str, Any]:
    """Return the fields of a `NetlistRecord`.

    Parameters
    ----------
    one : Measurement
        Of any window: what is the same in all of them is taken from it.
    prices : PriceFit
    elaborated : int
        Flip-flops of the elaborated design.
    idle : float
        Energy of the clock in a cycle in which nothing happens.
    gated : GatedFit or None
    event : str
        The event that has a price with clock gates.
    """
    return {"prices": dict(prices.prices), "held_out": dict(prices.held_out), "rms": prices.rms,
            "largest": prices.largest, "registers": one.registers, "elaborated_registers": elaborated,
            "cells": one.cells, "area_um2": one.area, "leakage_nw": one.leakage, "idle_clock": idle,
            "with_gates": _gated_record(gated, event) if gated is not None else None}


def block_windows(measured: Mapping[str, Measurement]) -> dict[str, BlockWindow]:
    """Return measurements per cycle, by window."""
    return {name: BlockWindow(each.energy / each.cycles, each.clock / each.cycles,
                              each.register_toggles / each.cycles, each.register_cycles / each.cycles)
            for name, each in measured.items()}


def _gated_record(gated: GatedFit, event: str) -> GatedRecord:
    prices = gated.prices
    return GatedRecord(gated.idle, next(iter(gated.measured.values())).area, block_windows(gated.measured),
                       FittedPrice(prices.prices[event], prices.rms, prices.largest), dict(prices.held_out))
