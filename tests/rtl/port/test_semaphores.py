"""Semaphores count like integers, whatever comes in one cycle, and an event lost is an error kept."""

import random

from tests.support.streams import simulate
from tilewright.isa.encoding import SEMAPHORE_WIDTH
from tilewright.rtl.port.semaphores import NAMES, SIGNALLERS, WAITERS, Semaphores


def test_every_semaphore_has_one_waiter_and_a_signaller():
    assert all(len(WAITERS[name]) == 1 and SIGNALLERS[name] for name in NAMES)
    assert SIGNALLERS["act_ready"] == ("load", "store")
    assert WAITERS["act_free"] == ("load",)


def test_counts_like_integers_under_random_events():
    dut, rng = Semaphores(), random.Random(0)

    async def check(ctx):
        counts = dict.fromkeys(NAMES, 0)
        for _ in range(2000):
            for name in NAMES:
                assert ctx.get(getattr(dut, f"{name}_available")) == (counts[name] > 0)
                events = rng.getrandbits(len(SIGNALLERS[name])) if rng.random() < 0.5 else 0
                if counts[name] > 50:
                    events = 0
                take = counts[name] > 0 and rng.random() < 0.5
                ctx.set(getattr(dut, f"{name}_signal"), events)
                ctx.set(getattr(dut, f"{name}_take"), take)
                counts[name] += events.bit_count() - take
            await ctx.tick()
        assert not ctx.get(dut.overflow)

    simulate(dut, check)


def test_a_take_of_nothing_does_nothing():
    dut = Semaphores()

    async def check(ctx):
        ctx.set(dut.act_ready_take, 1)
        await ctx.tick()
        ctx.set(dut.act_ready_take, 0)
        ctx.set(dut.act_ready_signal, 1)
        await ctx.tick()
        assert ctx.get(dut.act_ready_available)

    simulate(dut, check)


def test_overflow_is_reported_with_its_semaphore_and_the_count_stays_full():
    dut = Semaphores()

    async def check(ctx):
        full = (1 << SEMAPHORE_WIDTH) - 1
        ctx.set(dut.res_free_signal, 1)
        await ctx.tick().repeat(full)
        await ctx.tick()
        assert not ctx.get(dut.overflow)  # it is told a cycle later
        await ctx.tick()
        assert ctx.get(dut.overflow)
        assert ctx.get(dut.overflow_index) == NAMES.index("res_free")
        ctx.set(dut.res_free_signal, 0)
        ctx.set(dut.res_free_take, 1)
        await ctx.tick().repeat(full - 1)
        assert ctx.get(dut.res_free_available)
        await ctx.tick()
        assert not ctx.get(dut.res_free_available)

    simulate(dut, check)
