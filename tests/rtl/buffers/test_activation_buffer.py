"""Runs and patches come out of the banks as they were written, in both layouts."""

import random
from functools import cache

import pytest

from tests.support.streams import simulate
from tilewright.isa.machine import Machine
from tilewright.rtl.buffers.activation_buffer import ActivationBuffer

MACHINES = {bus: Machine(activation_bytes=4096, bus_bytes=bus) for bus in (4, 8, 16)}

activation_buffer = cache(ActivationBuffer)


async def write(ctx, dut, address, content, *, blocked=False):
    """Write ``content``, as many bytes at a time as the bus holds, with random cuts."""
    rng, size = random.Random(address), len(dut.write.data) // 8
    while content:
        count = min(len(content), rng.choice([1, size - 1, size, size]))
        ctx.set(dut.write.valid, 1)
        ctx.set(dut.write.blocked, blocked)
        ctx.set(dut.write.address, address)
        ctx.set(dut.write.count, count)
        # bytes beyond the count must not matter
        ctx.set(dut.write.data, int.from_bytes(content[:count] + bytes([0xEE] * (size - count)), "little"))
        await ctx.tick()
        content = content[count:]
        address = 16 * (address // 16 + count) + (address + count) % 16 if blocked else address + count
    ctx.set(dut.write.valid, 0)


async def read(ctx, dut, requests):
    """Make one request per cycle; return the 16 bytes of each, checking that they come LATENCY cycles later."""
    results = []
    for cycle in range(len(requests) + dut.LATENCY):
        ctx.set(dut.i.valid, cycle < len(requests))
        if cycle < len(requests):
            ctx.set(dut.i.payload, requests[cycle])
        assert ctx.get(dut.o.valid) == (cycle >= dut.LATENCY)
        if cycle >= dut.LATENCY:
            assert ctx.get(dut.o.payload.meta) == requests[cycle - dut.LATENCY]["meta"]
            results.append([ctx.get(dut.o.payload.patch[k]) for k in range(16)])
        await ctx.tick()
    return results


def run_request(address, number=0, pair_words=0):
    return {"present": 1, "linear": 1, "reuse": 0, "half_x": 0, "half_y": 0, "rotation": address % 16,
            "word": address // 16, "right": 1, "below": pair_words, "diagonal": 1 + pair_words, "meta": number % 256}


def signed(content):
    return [byte - 256 if byte > 127 else byte for byte in content]


@pytest.mark.parametrize("bus", MACHINES)
def test_run_at_any_address(bus):
    dut = activation_buffer(MACHINES[bus], 8)
    rng = random.Random(bus)
    content = rng.randbytes(4096)

    async def bench(ctx):
        await write(ctx, dut, 0, content)
        addresses = [*range(33), *(rng.randrange(4080) for _ in range(60)), 4080]
        results = await read(ctx, dut, [run_request(address, n) for n, address in enumerate(addresses)])
        assert results == [signed(content[address:address + 16]) for address in addresses]

    simulate(dut, bench)


@pytest.mark.parametrize("bus", MACHINES)
def test_run_of_two_rows_whose_distance_is_8_modulo_16(bus):
    dut = activation_buffer(MACHINES[bus], 8)
    rng = random.Random(bus)
    content = rng.randbytes(4096)
    wanted = [(address, pair) for pair in (1, 2, 13, 200) for address in range(17)]
    wanted += [(rng.randrange(2000), rng.randrange(1, 120)) for _ in range(60)] + [(3, 254), (4096 - 40, 1)]

    async def bench(ctx):
        await write(ctx, dut, 0, content)
        results = await read(ctx, dut, [run_request(address, n, pair) for n, (address, pair) in enumerate(wanted)])
        for (address, pair), result in zip(wanted, results, strict=True):
            below = address + 16 * pair + 8
            assert result == signed(content[address:address + 8] + content[below:below + 8])

    simulate(dut, bench)


class Image:
    """A blocked image of random bytes, 12 x 8 pixels, and its patches as the layout defines them."""

    COLUMNS, ROWS, BASE_WORD = 12, 8, 16

    def __init__(self, channels, seed):
        rng = random.Random(seed)
        self.channels = channels
        self.below = channels * self.COLUMNS // 4
        self.bytes = {(x, y): rng.randbytes(channels) for x in range(self.COLUMNS) for y in range(self.ROWS)}

    async def write(self, ctx, dut):
        for (x, y), content in self.bytes.items():
            word = self.BASE_WORD + y // 4 * self.below + x // 4 * self.channels
            await write(ctx, dut, 16 * word + x % 4 + 4 * (y % 4), content, blocked=True)

    def request(self, x, y, channel, *, reuse=False):
        word = self.BASE_WORD + y // 4 * self.below + x // 4 * self.channels + channel
        return {"present": 1, "linear": 0, "reuse": reuse, "half_x": x % 4 == 2, "half_y": y % 4 == 2,
                "rotation": channel % 16, "word": word, "right": self.channels, "below": self.below,
                "diagonal": self.channels + self.below, "meta": x}

    def patch(self, x, y, channel):
        return signed(bytes(self.bytes[x + j, y + i][channel] for i in range(4) for j in range(4)))


@pytest.mark.parametrize(("bus", "channels"), [(4, 1), (8, 3), (8, 16), (16, 21)])
def test_patch_of_any_channel(bus, channels):
    dut = activation_buffer(MACHINES[bus], 8)
    image = Image(channels, channels)

    async def bench(ctx):
        await image.write(ctx, dut)
        places = [(x, y, c) for c in range(channels) for y in range(0, 5, 2) for x in range(0, 9, 2)]
        for reuse in (False, True):
            results = await read(ctx, dut, [image.request(*place, reuse=reuse and place[0] > 0) for place in places])
            assert results == [image.patch(*place) for place in places]

    simulate(dut, bench)


def test_reuse_leaves_the_old_columns_alone():
    """The right neighbour's left half is not read again: it stays what it was even if the buffer changes."""
    dut = activation_buffer(MACHINES[8], 8)
    image, other = Image(2, 1), Image(2, 2)

    async def bench(ctx):
        await image.write(ctx, dut)
        await read(ctx, dut, [image.request(0, 0, 1)])
        await other.write(ctx, dut)
        (patch,) = await read(ctx, dut, [image.request(2, 0, 1, reuse=True)])
        old, new = image.patch(2, 0, 1), other.patch(2, 0, 1)
        assert patch == [old[k] if k % 4 < 2 else new[k] for k in range(16)]

    simulate(dut, bench)


def test_byte_written_can_be_read_in_the_next_cycle():
    dut = activation_buffer(MACHINES[8], 8)

    async def bench(ctx):
        ctx.set(dut.write.valid, 1)
        ctx.set(dut.write.address, 21)
        ctx.set(dut.write.count, 8)
        ctx.set(dut.write.data, int.from_bytes(bytes(range(1, 9)), "little"))
        await ctx.tick()
        ctx.set(dut.write.valid, 0)
        assert (await read(ctx, dut, [run_request(21)]))[0][:8] == list(range(1, 9))

    simulate(dut, bench)


def test_slot_without_a_tile_only_passes():
    dut = activation_buffer(MACHINES[8], 8)

    async def bench(ctx):
        await write(ctx, dut, 0, bytes(range(64)))
        empty = run_request(32, 7) | {"present": 0}
        results = await read(ctx, dut, [run_request(3), empty, run_request(20)])
        assert results == [list(range(3, 19)), list(range(3, 19)), list(range(20, 36))]

    simulate(dut, bench)
