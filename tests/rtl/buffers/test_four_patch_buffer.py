"""Patches of four channels at once, among single ones and runs, from the banks' four memories."""

import random

import pytest

from tests.rtl.buffers.test_activation_buffer import Image, run_request, signed, write
from tests.support.streams import simulate
from tilewright.isa.machine import Machine
from tilewright.rtl.buffers.four_patch_buffer import activation_buffer

MACHINES = [Machine(name=f"{array} {bus}", array=array, lanes=lanes, bus_bytes=bus, activation_bytes=8192,
                    channel_kernels=True, four_patches=True)
            for array, lanes, bus in (("winograd", 4, 4), ("winograd_inner", 8, 8), ("winograd_inner", 8, 16))]
LINEAR = 6144   # where the runs begin


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_patches_of_four_channels_come_with_single_ones_and_runs_one_read_a_cycle(machine):
    dut, rng, image = activation_buffer(machine, 8), random.Random(3), Image(24, 3)
    content, step, reads = rng.randbytes(1024), machine.lanes_per_fetch, []
    for place in ((x, y, c) for c in range(24) for y in range(0, 5, 2) for x in range(0, 9, 2)):
        four = place[2] % machine.lanes_per_cluster < step and rng.random() < 0.7
        expected = [image.patch(*place[:2], place[2] + step * number) for number in range(4 if four else 1)]
        reads.append((image.request(*place) | {"four": four}, expected))
    for _ in range(200):
        start = rng.randrange(len(content) - 16)
        reads.append((run_request(LINEAR + start) | {"four": 0}, [signed(content[start:start + 16])]))
    rng.shuffle(reads)

    async def bench(ctx):
        await image.write(ctx, dut)
        await write(ctx, dut, LINEAR, content)
        for cycle in range(len(reads) + dut.latency):
            ctx.set(dut.i.valid, cycle < len(reads))
            if cycle < len(reads):
                ctx.set(dut.i.payload, reads[cycle][0])
            assert ctx.get(dut.o.valid) == (cycle >= dut.latency)
            if cycle >= dut.latency:
                expected, o = reads[cycle - dut.latency][1], dut.o.payload
                assert ctx.get(o.four) == (len(expected) == 4)
                patches = [o.patch, *o.others][:len(expected)]
                assert [[ctx.get(patch[k]) for k in range(16)] for patch in patches] == expected
            await ctx.tick()

    simulate(dut, bench)
