"""Counters count what happened, and the cycles by cause add up to the cycles in every record."""

import random

from tests.support.streams import simulate
from tilewright.isa.counters import COUNTERS
from tilewright.rtl.counters import BUSY, EVENTS, STATES, Counters
from tilewright.rtl.sequencer import MacState

CAUSES = [counter.name for counter in COUNTERS if counter.name.startswith("mac_")]


def counts(ctx, dut):
    """Return the counts by name."""
    return {counter.name: ctx.get(dut.counts[i]) for i, counter in enumerate(COUNTERS)}


def test_every_state_of_the_array_but_idle_has_its_counter():
    assert {state.name for state in MacState} - {state.name for state in STATES.values()} == {"IDLE"}
    assert {f"mac_{state.name.lower()}" for state in STATES.values()} == set(STATES)


def test_counts_what_happens():
    dut, rng = Counters(), random.Random(0)

    async def check(ctx):
        ctx.set(dut.state, MacState.SETUP)
        await ctx.tick().repeat(3)
        before = counts(ctx, dut)
        expected = dict.fromkeys(before, 0)
        for _ in range(500):
            state = rng.choice(list(MacState))
            busy = {name: rng.getrandbits(1) for name in BUSY}
            events = {name: rng.randrange(64) for name in EVENTS}
            ctx.set(dut.state, state)
            for name, value in (busy | events).items():
                ctx.set(getattr(dut, name), value)
                expected[name] += value
            if state != MacState.IDLE:
                expected[f"mac_{state.name.lower()}"] += 1
            elif busy["post_busy"] or busy["store_busy"]:
                expected["mac_idle_post"] += 1
            else:
                expected["mac_idle_load" if busy["load_busy"] else "mac_idle_host"] += 1
            await ctx.tick()
        ctx.set(dut.state, MacState.SETUP)
        for name in (*BUSY, *EVENTS):
            ctx.set(getattr(dut, name), 0)
        await ctx.tick()
        # One cycle of set-up at either end is still, or already, under way.
        expected["cycles"] = 501
        expected["mac_setup"] += 1
        after = counts(ctx, dut)
        assert {name: after[name] - before[name] for name in after} == expected

    simulate(dut, check)


def test_causes_add_up_to_cycles_in_every_cycle():
    dut, rng = Counters(), random.Random(1)

    async def check(ctx):
        for _ in range(200):
            ctx.set(dut.state, rng.choice(list(MacState)))
            ctx.set(dut.load_busy, rng.getrandbits(1))
            await ctx.tick()
            values = counts(ctx, dut)
            assert sum(values[name] for name in CAUSES) == values["cycles"]

    simulate(dut, check)
