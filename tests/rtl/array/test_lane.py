"""A lane adds what its multipliers give to the tile's sums, and keeps finished sums in turn."""

import random

import pytest

from tests.support.streams import simulate
from tilewright.rtl.array.lane import Lane
from tilewright.rtl.array.sequencer.slots import DEPTH


def slot(**fields):
    return {"present": 1, "tile": 0, "load": 0, "clear": 0, "finish": 0, "complete": 0, "dot": 1} | fields


async def issue(ctx, lane, slots):
    """Send (v, u, slot) one per cycle, then nothing until all have passed; return the cycles of ``complete``."""
    seen = []
    for cycle in range(len(slots) + lane.LATENCY + 1):
        ctx.set(lane.i.valid, cycle < len(slots))
        if cycle < len(slots):
            v, u, fields = slots[cycle]
            ctx.set(lane.i.payload, {"v": v, "slot": fields})
            ctx.set(lane.u, u)
        if ctx.get(lane.complete):
            seen.append(cycle)
        await ctx.tick()
    return seen


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def recombined(ctx, lane, address):
    ctx.set(lane.sums_address, address)
    y = [ctx.get(lane.sums[k]) for k in range(4)]
    return y[0] - y[1] - y[2] + y[3]


@pytest.mark.parametrize("tiles", [1, 2, 4])
def test_sums_of_every_group_in_the_ring(tiles):
    lane = Lane(tiles)
    rng = random.Random(tiles)
    steps, groups = 3, DEPTH // tiles

    def values():
        return [rng.randint(-128, 127) for _ in range(16)]

    slots, expected = [], []
    for _ in range(groups):
        sums = [0] * tiles
        for step in range(steps):
            weights, last = values(), step == steps - 1
            for tile in range(tiles):
                v = values()
                sums[tile] += dot(v, weights)
                # weights at u count only in the slot that loads them
                slots.append((v, weights if tile == 0 else values(), slot(
                    tile=tile, load=tile == 0, clear=step == 0, finish=last, complete=last and tile == tiles - 1)))
        expected += sums

    async def bench(ctx):
        seen = await issue(ctx, lane, slots)
        assert seen == [steps * tiles * (group + 1) - 1 + lane.LATENCY + 1 for group in range(groups)]
        assert [recombined(ctx, lane, address) for address in range(DEPTH)] == expected

    simulate(lane, bench)


def test_empty_slot_adds_nothing_but_may_load_and_complete():
    lane = Lane(4)
    ones, twos = [1] * 16, [2] * 16
    slots = [(ones, twos, slot(load=1, clear=1)), (ones, ones, slot(present=0)),
             (ones, ones, slot(load=1, finish=1)), (ones, ones, slot(present=0, tile=1, finish=1, complete=1))]

    async def bench(ctx):
        assert len(await issue(ctx, lane, slots)) == 1
        assert recombined(ctx, lane, 0) == 16 * 2 + 16

    simulate(lane, bench)


def test_passes_slots_and_data_on_a_cycle_later():
    lane = Lane(4)

    async def bench(ctx):
        ctx.set(lane.i.valid, 1)
        ctx.set(lane.i.payload, {"v": list(range(16)), "slot": slot(tile=3)})
        assert not ctx.get(lane.o.valid)
        await ctx.tick()
        assert ctx.get(lane.o.valid)
        assert [ctx.get(lane.o.payload.v[k]) for k in range(16)] == list(range(16))
        assert ctx.get(lane.o.payload.slot.tile) == 3

    simulate(lane, bench)
