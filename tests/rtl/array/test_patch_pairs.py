"""Patches of two channels leave beside each other, for first and then for second channels; runs as pairs, twice."""

import numpy as np
import pytest

from tests.support.streams import simulate
from tilewright.rtl.array.patch_pairs import PatchPairs


def run(tiles, slots):
    """Send ``slots``, (values, slot) a cycle each; return (even, odd, tile, second) of what leaves with a product."""
    dut, found = PatchPairs(tiles), []

    async def bench(ctx):
        for values, slot in (*slots, ([0] * 16, {"present": 0})):
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.payload, {"v": values, "slot": slot})
            await ctx.tick()
            o = dut.o.payload
            if ctx.get(o.slot.present):
                found.append(([ctx.get(o.even[k]) for k in range(16)], [ctx.get(o.odd[k]) for k in range(16)],
                              ctx.get(o.slot.tile), ctx.get(o.slot.second)))

    simulate(dut, bench)
    return found


@pytest.mark.parametrize("tiles", [1, 2, 4])
def test_each_pair_leaves_for_both_channels_while_the_next_arrives(tiles):
    patches = np.random.default_rng(tiles).integers(-512, 512, (6, tiles, 16)).tolist()
    slots, expected = [], []
    for step in range(7):   # the last brings nothing
        odd, due = step % 2, step > 0
        for tile in range(tiles):
            arrives = step < 6
            slots.append((patches[step][tile] if arrives else [99] * 16, {
                "present": odd or due, "tile": tile, "second": not odd, "arrives": arrives}))
            if odd or due:
                first = step - 1 if odd else step - 2
                expected.append((patches[first][tile], patches[first + 1][tile], tile, 1 - odd))
    assert run(tiles, slots) == expected


def test_runs_leave_as_pairs_twice_and_keep_the_patches():
    patches = np.random.default_rng(9).integers(-512, 512, (2, 16)).tolist()
    x = list(range(-8, 8))
    slots = [(patches[0], {"second": 1, "arrives": 1}), (x, {"present": 1, "dot": 1, "arrives": 1}),
             (patches[1], {"present": 1, "arrives": 1})]
    assert run(4, slots) == [(x[0::2] * 2, x[1::2] * 2, 0, 0), (*patches, 0, 0)]
