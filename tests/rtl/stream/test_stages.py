"""Pipelines: values arrive together, as late as the pipeline is deep."""

import pytest
from amaranth import Elaboratable, Module, Signal

from tests.support.streams import simulate
from tilewright.rtl.stream.stages import Pipeline


class SquareAndDouble(Elaboratable):
    """``value`` squared, and doubled by an offset that is the same in every stage, two cycles later."""

    def __init__(self):
        self.valid, self.value, self.offset = Signal(), Signal(4), Signal(4)
        self.done, self.result, self.carried = Signal(), Signal(10), Signal(4)

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.valid, value=self.value)
        pipe.hold(offset=self.offset)
        pipe.step(square=pipe.value * pipe.value)
        pipe.step(result=pipe.square + pipe.offset)
        assert pipe.depth == 2
        with pytest.raises(AttributeError, match=r"Pipeline.*'sum'"):
            _ = pipe.sum
        m.d.comb += [self.done.eq(pipe.valid), self.result.eq(pipe.result), self.carried.eq(pipe.value)]
        return m


def test_values_and_what_earlier_stages_made_arrive_together():
    dut = SquareAndDouble()

    async def testbench(ctx):
        ctx.set(dut.offset, 3)
        seen = []
        for value in [5, None, 9, 15, None, None, None]:
            ctx.set(dut.valid, value is not None)
            ctx.set(dut.value, value or 0)
            if ctx.get(dut.done):
                seen.append((ctx.get(dut.carried), ctx.get(dut.result)))
            await ctx.tick()
        assert seen == [(5, 28), (9, 84), (15, 228)]

    simulate(dut, testbench)


def test_data_stay_in_their_registers_while_no_value_passes():
    dut = SquareAndDouble()

    async def testbench(ctx):
        ctx.set(dut.valid, 1)
        ctx.set(dut.value, 7)
        await ctx.tick().repeat(2)
        ctx.set(dut.valid, 0)
        ctx.set(dut.value, 1)
        await ctx.tick().repeat(5)
        assert (ctx.get(dut.done), ctx.get(dut.carried), ctx.get(dut.result)) == (0, 7, 49)

    simulate(dut, testbench)
