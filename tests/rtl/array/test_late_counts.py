"""Counts of the sequencer that hear of the last event a cycle late say in every cycle what a plain count would."""

import random
from types import SimpleNamespace

import pytest
from amaranth import Const, Module
from amaranth.lib.wiring import Component, In, Out

from tests.support.streams import simulate
from tilewright.isa.machine import Machine
from tilewright.rtl.array.sequencer.plane_turns import PlaneTurns
from tilewright.rtl.array.sequencer.room_for_sums import MOST_UNDER_WAY, drained_sums, no_room
from tilewright.rtl.array.sequencer.slots import DEPTH

SMALL = {"activation_bytes": 1 << 20, "weight_bytes": 1 << 16}
MACHINES = {
    "a tile's sums at once": Machine(array="winograd_inner", lanes=8, post_lanes=8, tiles=4, **SMALL),
    "a part of them": Machine(array="winograd", lanes=4, post_lanes=1, tiles=4, **SMALL),
    "groups of one tile": Machine(array="winograd", lanes=1, post_lanes=1, tiles=1, **SMALL),
}


class Counts(Component):
    """The two counts of `room_for_sums`, by themselves."""

    take: In(1)
    sums_done: In(1)
    full: Out(1)
    begins: In(1)
    drain_begins: In(1)
    drain_steady: In(1)
    drained: Out(1)

    def __init__(self, machine):
        self.machine = machine
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        step, run = SimpleNamespace(go=self.take, finishes=Const(1), slot=Const(0)), SimpleNamespace(hold=Const(0))
        m.d.comb += [
            self.full.eq(no_room(m, self.machine, step, run, PlaneTurns(self.machine), self.sums_done)),
            self.drained.eq(drained_sums(m, self.machine, self.begins, self.drain_begins, self.drain_steady)),
        ]
        return m


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_room_is_that_of_all_takes_before_the_cycle(machine):
    dut, rng = Counts(machine), random.Random(3)
    groups = DEPTH // machine.tiles
    most = groups + (MOST_UNDER_WAY if machine.takes_whole_tiles else 0)
    seen = set()

    async def bench(ctx):
        count, since = 0, 9
        for cycle in range(6000):
            bias = (0.8, 0.5, 0.2)[cycle // 200 % 3]
            assert ctx.get(dut.full) == (count >= groups), (cycle, count)
            take = count < most and rng.random() < bias
            done = count > 0 and since > 1 and rng.random() < 1 - bias
            ctx.set(dut.take, take)
            ctx.set(dut.sums_done, done)
            seen.add((count - groups, take, done))
            count, since = count + take - done, 0 if take else since + 1
            await ctx.tick()

    simulate(dut, bench)
    assert {(-1, True, False), (0, False, True), (-1, False, False), (0, False, False)} <= seen


def test_drained_is_the_command_that_both_sides_have_begun():
    machine = MACHINES["a tile's sums at once"]
    dut, rng = Counts(machine), random.Random(4)
    seen = set()

    async def bench(ctx):
        ahead, steady = 0, False
        for cycle in range(6000):
            assert ctx.get(dut.drained) == (steady and ahead == 0), (cycle, ahead)
            begins = ahead < 4 and rng.random() < 0.3
            drains = ahead > -1 and rng.random() < 0.3
            now = rng.random() < 0.5
            ctx.set(dut.begins, begins)
            ctx.set(dut.drain_begins, drains)
            ctx.set(dut.drain_steady, now)
            seen.add((ahead, begins, drains))
            ahead += begins - drains
            steady = now if drains else steady
            await ctx.tick()

    simulate(dut, bench)
    assert {(-1, True, False), (0, False, True), (0, True, True), (1, False, True)} <= seen
