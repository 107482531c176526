"""Streams through a queue and past a halt: nothing is lost, nothing comes twice, and a halt swallows."""

import random

import pytest
from amaranth import Module, Signal
from amaranth.lib import stream
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import Component, In, Out

from tests.support.streams import get_all, put_all, simulate
from tilewright.rtl.stream.queues import QUEUE_LATENCY, FlaggedFIFO, HeadedFIFO, dequeue, enqueue, pass_until


class Queued(Component):
    """A stream through a queue of four."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = FlaggedFIFO(width=8, depth=4)
        enqueue(m, self.i, queue)
        dequeue(m, queue, self.o)
        return m


class Beside(Component):
    """A queue of ours and a `SyncFIFO` of the same depth, with the same inputs."""

    w_data: In(8)
    w_en: In(1)
    r_en: In(1)

    def __init__(self, ours, depth):
        super().__init__()
        self.fifos = [kind(width=8, depth=depth) for kind in (ours, SyncFIFO)]

    def elaborate(self, platform):
        m = Module()
        for number, fifo in enumerate(self.fifos):
            m.submodules[f"fifo{number}"] = fifo
            m.d.comb += [fifo.w_data.eq(self.w_data), fifo.w_en.eq(self.w_en), fifo.r_en.eq(self.r_en)]
        return m


class Halted(Component):
    """A stream until ``halt``."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))
    halt: In(1)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += Signal().eq(0)  # the simulator wants a clock
        pass_until(m, self.halt, self.i, self.o)
        return m


def test_everything_arrives_once_and_in_order():
    dut, sent, got = Queued(), list(range(40)), []

    async def sender(ctx):
        await put_all(ctx, dut.i, sent, stall=0.3)

    async def receiver(ctx):
        got.extend(payload for _, payload in await get_all(ctx, dut.o, len(sent), stall=0.5))

    simulate(dut, sender, receiver)
    assert got == sent


def test_an_empty_queue_takes_its_latency():
    dut = Queued()

    async def testbench(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.payload, 7)
        assert not ctx.get(dut.o.valid)
        await ctx.tick().repeat(QUEUE_LATENCY)
        assert ctx.get(dut.o.valid)
        assert ctx.get(dut.o.payload) == 7

    simulate(dut, testbench)


def test_a_halt_takes_everything_and_offers_nothing():
    dut = Halted()

    async def testbench(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.payload, 5)
        for halt, ready in ((0, 0), (0, 1), (1, 0), (1, 1)):
            ctx.set(dut.halt, halt)
            ctx.set(dut.o.ready, ready)
            await ctx.tick()
            assert (ctx.get(dut.o.valid), ctx.get(dut.i.ready)) == (not halt, ready or halt)

    simulate(dut, testbench)


@pytest.mark.parametrize("depth", [2, 4, 8])
@pytest.mark.parametrize("ours", [FlaggedFIFO, HeadedFIFO])
def test_queues_are_those_of_amaranth_in_every_cycle(ours, depth):
    dut, rng, levels = Beside(ours, depth), random.Random(depth), set()

    async def drive(ctx):
        for cycle in range(3000):
            # Full, empty and in between for a while each.
            bias = (0.9, 0.5, 0.1)[cycle // 100 % 3]
            ctx.set(dut.w_data, rng.randrange(256))
            ctx.set(dut.w_en, rng.random() < bias)
            ctx.set(dut.r_en, rng.random() < 1 - bias)
            await ctx.tick()
            ours, theirs = dut.fifos
            for name in ("w_rdy", "r_rdy", "level", "w_level", "r_level"):
                assert ctx.get(getattr(ours, name)) == ctx.get(getattr(theirs, name)), (cycle, name)
            if ctx.get(theirs.r_rdy):
                assert ctx.get(ours.r_data) == ctx.get(theirs.r_data), cycle
            levels.add(ctx.get(theirs.level))

    simulate(dut, drive)
    assert levels == set(range(depth + 1))


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_depth_is_a_power_of_two(depth):
    with pytest.raises(ValueError, match=rf"queue.*not {depth}"):
        FlaggedFIFO(width=8, depth=depth)
