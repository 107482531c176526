"""A counter of turns: the last one is told by a register, also where there is one only."""

import pytest
from amaranth import Elaboratable, Module, Signal

from tests.support.streams import simulate
from tilewright.rtl.stream.turn_counter import TurnCounter


class Turns(Elaboratable):
    """``last`` after ``load``, and after as many steps as there are turns but one."""

    def __init__(self, *, once_is_known):
        self.once_is_known = once_is_known
        self.load, self.step, self.turns, self.last = Signal(), Signal(), Signal(4), Signal()

    def elaborate(self, platform):
        m = Module()
        counter = TurnCounter("left", 4, last="on_last")
        with m.If(self.load):
            counter.load(m, self.turns, once=self.turns == 1 if self.once_is_known else None)
        with m.Elif(self.step):
            counter.step(m)
        m.d.comb += self.last.eq(counter.last)
        return m


@pytest.mark.parametrize("once_is_known", [False, True])
def test_the_last_turn_comes_after_all_others(once_is_known):
    dut = Turns(once_is_known=once_is_known)

    async def testbench(ctx):
        for turns in (1, 2, 3, 15, 1):
            ctx.set(dut.load, 1)
            ctx.set(dut.turns, turns)
            await ctx.tick()
            ctx.set(dut.load, 0)
            ctx.set(dut.step, 1)
            for turn in range(1, turns + 1):
                assert ctx.get(dut.last) == (turn == turns)
                await ctx.tick()

    simulate(dut, testbench)
