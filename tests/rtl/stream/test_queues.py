"""Streams through a queue and past a halt: nothing is lost, nothing comes twice, and a halt swallows."""

from amaranth import Module, Signal
from amaranth.lib import stream
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import Component, In, Out

from tests.support.streams import get_all, put_all, simulate
from tilewright.rtl.stream.queues import QUEUE_LATENCY, dequeue, enqueue, pass_until


class Queued(Component):
    """A stream through a queue of four."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = SyncFIFO(width=8, depth=4)
        enqueue(m, self.i, queue)
        dequeue(m, queue, self.o)
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
