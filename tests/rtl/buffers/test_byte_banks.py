"""Byte banks against a bytearray: any address, any length, both ports busy in every cycle."""

import random

import pytest

from tests.support.streams import simulate
from tilewright.rtl.buffers.byte_banks import ByteBanks

CYCLES = 600


@pytest.mark.parametrize(("banks", "depth"), [(4, 4), (8, 16), (16, 2)])
def test_reads_what_was_written_before(banks, depth):
    dut = ByteBanks(banks, depth)
    rng = random.Random(banks)
    size = banks * depth
    content = bytearray(size)
    expected = {}

    async def drive(ctx):
        for cycle in range(size // banks):  # fill it, so that no byte is undefined
            ctx.set(dut.write.valid, 1)
            ctx.set(dut.write.payload.address, cycle * banks)
            ctx.set(dut.write.payload.count, banks)
            ctx.set(dut.write.payload.data, [0] * banks)
            await ctx.tick()
        for cycle in range(CYCLES):
            address, count = rng.randrange(size), rng.randint(1, banks)
            ctx.set(dut.read.valid, rng.random() < 0.9)
            ctx.set(dut.read.payload.address, address)
            ctx.set(dut.read.payload.count, count)
            if ctx.get(dut.read.valid):
                expected[cycle + dut.READ_LATENCY] = [content[(address + i) % size] for i in range(count)]
            address, count = rng.randrange(size), rng.randint(1, banks)
            data = rng.randbytes(banks)
            ctx.set(dut.write.valid, rng.random() < 0.9)
            ctx.set(dut.write.payload.address, address)
            ctx.set(dut.write.payload.count, count)
            ctx.set(dut.write.payload.data, list(data))
            if ctx.get(dut.write.valid):
                for i in range(count):
                    content[(address + i) % size] = data[i]
            if cycle in expected:
                wanted = expected.pop(cycle)
                got = [ctx.get(dut.data[i]) for i in range(len(wanted))]
                assert got == wanted, f"cycle {cycle}"
            await ctx.tick()

    simulate(dut, drive, deadline=CYCLES + size)
    assert len(expected) <= dut.READ_LATENCY
