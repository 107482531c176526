"""The component of an extension's unit alone in Amaranth's simulator: items sent, results stalled at random."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amaranth import Module, Signal
from amaranth.sim import Simulator
from amaranth.sim._async import TestbenchContext

from tilewright.isa.extension import BufferUnit
from tilewright.isa.machine import TILE_BYTES
from tilewright.rtl.array.extension_unit import unit_component

__all__ = ["UnitResults", "run_unit_component"]

_PATIENCE = 64
"""Cycles for each word, beyond those that the gaps take, before a component that gives no result is given up."""


@dataclass(frozen=True, slots=True)
class UnitResults:
    """Results as int8, in the order in which they came, and the cycles from each item's last word to its result."""

    values: list[list[int]]
    latencies: list[int]


def run_unit_component(unit: BufferUnit, settings: Mapping[str, int], items: Sequence[Sequence[int]],
                       gaps: Sequence[int], holds: Sequence[int]) -> UnitResults:
    """Return the component's results for ``items`` of int8; there may be fewer results, or more.

    Parameters
    ----------
    gaps, holds : sequence of int
        Cycles before each word, and in which each result is held up, used over and over again.
    """
    dut = unit_component(unit)
    words = [(list(item[start:start + TILE_BYTES]), start == 0, start + TILE_BYTES >= len(item))
             for item in items for start in range(0, len(item), TILE_BYTES)]
    found: list[list[int]] = []
    latencies: list[int] = []
    ends: list[int] = []
    limit = len(words) * (1 + max(gaps) + max(holds) + _PATIENCE) + unit.latency

    async def drive(ctx: TestbenchContext) -> None:
        ctx.set(dut.settings, dict(settings))
        sent = wait = hold = 0
        gap = gaps[0]
        for cycle in range(limit):
            offers, takes = sent < len(words) and gap == 0, hold == 0
            ctx.set(dut.i.valid, offers)
            if offers:
                data, first, last = words[sent]
                # What lies behind the end of an item is the next one's, whatever that is.
                padded = [*data, *[(37 * cycle + place) % 256 - 128 for place in range(TILE_BYTES - len(data))]]
                ctx.set(dut.i.payload, {"data": padded, "count": len(data), "first": first, "last": last})
            ctx.set(dut.o.ready, takes)
            if ctx.get(dut.o.valid) and takes:
                values = [ctx.get(dut.o.payload[place]) for place in range(unit.result_bytes)]
                if len(found) < len(ends):
                    latencies.append(cycle - ends[len(found)])
                found.append(values)
                hold = holds[len(found) % len(holds)]
            elif hold:
                hold -= 1
            if offers and ctx.get(dut.i.ready):
                if words[sent][2]:
                    ends.append(cycle)
                sent += 1
                gap = gaps[sent % len(gaps)]
            elif gap:
                gap -= 1
            wait = wait + 1 if len(found) >= len(items) else 0
            if wait > unit.latency + 4:
                return
            await ctx.tick()

    # A component without registers has no clock of its own.
    top = Module()
    top.submodules.dut = dut
    ticks = Signal()
    top.d.sync += ticks.eq(~ticks)
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    return UnitResults(found, latencies)
