"""The performance counters of `isa.counters`: cycles by cause, bytes by place, with their sums in a LUT RAM.

A counter is a narrow register, wide enough for ``INTERVAL`` cycles, and a word of 32 bits in the memory. At the
latest every ``INTERVAL`` cycles a *walk* begins: the registers of all counters are copied and start again, in one
cycle, and then the copies are added to the words, one counter per cycle.
"""

from math import gcd

from amaranth import Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In
from amaranth.utils import exact_log2

from tilewright.isa.counters import COUNTERS
from tilewright.isa.machine import TILE_BYTES, Machine
from tilewright.rtl.array.sequencer.sequencer import MacState
from tilewright.rtl.array.sequencer.slot_issue import KERNEL_BYTES
from tilewright.rtl.buffers.weight_buffer import written_bytes
from tilewright.rtl.stream.counter_walk import walk_signature

__all__ = ["BUSY", "EVENTS", "INTERVAL", "STATES", "Counters", "event_steps"]

INTERVAL = 63
"""Cycles from the beginning of a walk to that of the next, at most: what a counter of 6 bits counts."""

STATES = {
    "mac_issue": MacState.ISSUE,
    "mac_setup": MacState.SETUP,
    "mac_wait_activations": MacState.WAIT_ACTIVATIONS,
    "mac_wait_weights": MacState.WAIT_WEIGHTS,
    "mac_wait_post": MacState.WAIT_POST,
}
"""Counters of the array's states; idle cycles are told apart by who else was busy."""

_CYCLES = next(index for index, counter in enumerate(COUNTERS) if counter.name == "cycles")

BUSY = {"load_busy": "load", "store_busy": "store", "post_busy": "post"}

EVENTS = tuple(counter.name for counter in COUNTERS
               if counter.name != "cycles" and not counter.name.startswith("mac_") and counter.name not in BUSY)
"""Counters that step by as much as somebody says."""


def event_steps(machine: Machine) -> dict[str, range]:
    """Return by how much each of ``EVENTS`` may step in a cycle, as a range from 0 on in steps of a power of two."""
    values, word = range(machine.post_lanes + 1), range(machine.bus_bytes + 1)
    result = range(max(machine.bus_bytes, machine.post_lanes) + 1)
    sizes = (TILE_BYTES, KERNEL_BYTES) if machine.winograd else (TILE_BYTES,)
    weights = [size * machine.lanes_per_fetch * machine.clusters for size in sizes]
    return {
        "tile_slots": range(2),
        "requantized": values,
        "residual_added": values,
        "activation_read": range(0, TILE_BYTES + 1, TILE_BYTES // 2),
        "activation_written": range(machine.written_bytes + 1),
        "weight_read": range(0, max(weights) + 1, gcd(*weights)),
        "weight_written": range(written_bytes(machine) + 1),
        "result_read": result,
        "result_written": result,
        "memory_read": range(0, machine.bus_bytes + 1, machine.bus_bytes),
        "memory_written": word,
        "commands": range(2),
        "table_read": values,
    }


class Counters(wiring.Component):
    """Count what happens; ``mac_*`` add up to ``cycles`` in every walk.

    What happens in a cycle is in the counts of the walks that begin one cycle later or after that, and in no others.
    A walk begins in the cycle of its request or, if one is under way, at most ``len(COUNTERS)`` cycles later. Reset
    begins one that clears the memory.

    Parameters
    ----------
    machine : Machine

    Members
    -------
    state : ``In(MacState)``
    load_busy, post_busy, store_busy : ``In(1)``
    NAME : ``In``
        For each of ``EVENTS``, how many there were in this cycle: one of its `event_steps`.
    walk : ``In(walk_signature())``

    Attributes
    ----------
    totals : Memory
        All counts up to the last walk, in the order of the table.
    """

    WALK_CYCLES = 1 + len(COUNTERS)
    """From the beginning of a walk until another can begin."""

    def __init__(self, machine: Machine) -> None:
        self._event_steps = event_steps(machine)
        self.totals = Memory(shape=32, depth=len(COUNTERS), init=[])
        super().__init__({
            "state": In(MacState),
            **{name: In(1) for name in BUSY},
            **{name: In(range(steps[-1] + 1)) for name, steps in self._event_steps.items()},
            "walk": In(walk_signature()),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Reset is like the beginning of a walk.
        walking = Signal(init=1)
        cycle = Signal(range(INTERVAL))
        following = Signal(range(INTERVAL + 1))
        m.d.comb += [
            following.eq(cycle + 1),
            self.walk.begins.eq(~walking & (self.walk.request | (following == INTERVAL))),
        ]
        m.d.sync += cycle.eq(following)
        with m.If(self.walk.begins):
            m.d.sync += [cycle.eq(0), walking.eq(1)]
        with m.Elif(cycle == len(COUNTERS) - 1):
            m.d.sync += walking.eq(0)
        self._add_up(m, walking, cycle, self._copies(m, following))
        return m

    def _copies(self, m: Module, cycles: Value) -> list[Value]:
        """Count; return what there was of each counter before the last walk began."""
        copies = []
        for name, step in self._steps(m).items():
            if name == "cycles":
                copy = Signal.like(cycles, name="cycles_copy")
                with m.If(self.walk.begins):
                    m.d.sync += copy.eq(cycles)
                copies.append(copy)
                continue
            steps = self._event_steps.get(name, range(2))
            shape = range(INTERVAL * (steps[-1] // steps.step) + 1)
            recent, now, copy = (Signal(shape, name=f"{name}_{place}") for place in ("recent", "now", "copy"))
            m.d.comb += now.eq(recent + step)
            m.d.sync += recent.eq(now)
            with m.If(self.walk.begins):
                m.d.sync += [recent.eq(0), copy.eq(now)]
            copies.append(copy << exact_log2(steps.step))
        return copies

    def _add_up(self, m: Module, walking: Value, cycle: Value, copies: list[Value]) -> None:
        """Add the copies to the sums, each in two cycles, one after the other."""
        m.submodules.totals = self.totals
        read, write = self.totals.read_port(domain="comb"), self.totals.write_port()
        sums = self.walk.sums
        # Memories have no reset: what the first walk finds there does not count.
        clears = Signal(init=1)
        addend = Signal(max(len(copy) for copy in copies))
        m.d.sync += [sums.valid.eq(walking), sums.payload.index.eq(cycle), addend.eq(_at(copies, cycle))]
        with m.If(self.walk.begins):
            m.d.sync += clears.eq(0)
        total = Signal(len(sums.payload.count) + 1)
        m.d.comb += [
            read.addr.eq(sums.payload.index),
            total.eq(Mux(clears, 0, read.data) + addend),
            sums.payload.count.eq(total),
            write.addr.eq(sums.payload.index),
            write.data.eq(sums.payload.count),
            write.en.eq(sums.valid),
        ]
        with m.If(sums.valid & (sums.payload.index == _CYCLES)):
            m.d.sync += self.walk.cycles_high.eq(self.walk.cycles_high + total[-1])

    def _steps(self, m: Module) -> dict[str, ValueLike]:
        """Return the step of every counter in this cycle, in the order of the table, divided by its unit."""
        idle = self.state == MacState.IDLE
        behind = self.post_busy | self.store_busy
        causes = {
            **{name: self.state == state for name, state in STATES.items()},
            "mac_idle_post": idle & behind,
            "mac_idle_load": idle & ~behind & self.load_busy,
            "mac_idle_host": idle & ~behind & ~self.load_busy,
        }
        # One cause and no other in every cycle, also in the first.
        registered = {name: Signal(name=f"{name}_step", init=name == "mac_idle_host") for name in causes}
        m.d.sync += [registered[name].eq(cause) for name, cause in causes.items()]
        steps = {"cycles": 1, **registered}
        for name in BUSY:
            steps[name] = Signal(name=f"{name}_step")
            m.d.sync += steps[name].eq(getattr(self, name))
        for name, those in self._event_steps.items():
            steps[name] = Signal(range(those[-1] // those.step + 1), name=f"{name}_step")
            m.d.sync += steps[name].eq(getattr(self, name)[exact_log2(those.step):])
        return {counter.name: steps[counter.name] for counter in COUNTERS}


def _at(values: list[Value], index: Value) -> Value:
    """Return the value at ``index``: multiplexers in a tree, a fifth smaller than synthesis makes of an `Array`."""
    if len(values) == 1:
        return values[0]
    even, odd = values[::2], values[1::2]
    pairs = [Mux(index[0], second, first) for first, second in zip(even, odd, strict=False)]
    return _at(pairs + even[len(odd):], index[1:])
