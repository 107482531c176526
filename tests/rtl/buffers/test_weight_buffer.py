"""Every kernel and run comes out of the cluster it belongs to, as ldw put it there."""

import random

import pytest

from tests.support.streams import simulate
from tilewright.isa.machine import Machine
from tilewright.rtl.buffers.weight_buffer import WeightBuffer

SHAPES = [(1, 4), (1, 8), (2, 16), (4, 8), (2, 32), (4, 32), (4, 64)]  # clusters, bus_bytes
NOTHING = {"pointer": 0, "lane": 0, "fresh": 0, "winograd": 0, "pool": 0}
IDS = [f"{clusters}x{bus_bytes}" for clusters, bus_bytes in SHAPES]


def machine(clusters, bus_bytes):
    return Machine(lanes=4, clusters=clusters, tiles=4, bus_bytes=bus_bytes, weight_bytes=4096 * clusters)


def signed(content):
    return [byte - 256 if byte > 127 else byte for byte in content]


async def load(ctx, dut, *, ninth, content):
    """Write ``content`` as bus words from index 0 on."""
    size = len(dut.write.data) // 8
    ctx.set(dut.write.valid, 1)
    ctx.set(dut.write.ninth, ninth)
    for index in range(len(content) // size):
        ctx.set(dut.write.index, index)
        ctx.set(dut.write.data, int.from_bytes(content[size * index:size * (index + 1)], "little"))
        await ctx.tick()
    ctx.set(dut.write.valid, 0)


async def fetch(ctx, dut, requests):
    """Fetch one set of weights per cycle; return those that leave, LATENCY cycles later, and whether each is a run."""
    results = []
    for cycle in range(len(requests) + dut.LATENCY):
        asks = cycle < len(requests)
        ctx.set(dut.fetch.valid, asks)
        if asks:
            ctx.set(dut.fetch.payload, NOTHING | requests[cycle])
        assert ctx.get(dut.o.valid) == (cycle >= dut.LATENCY)
        if cycle >= dut.LATENCY:
            results.append(([ctx.get(dut.o.payload.weights[k]) for k in range(16)], ctx.get(dut.o.payload.dot)))
        await ctx.tick()
    return results


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_kernels_and_runs(shape, last):
    chosen = machine(*shape)
    cluster = chosen.clusters - 1 if last else 0
    dut = WeightBuffer(chosen, cluster)
    rng = random.Random(cluster)
    size = 16 * chosen.weight_words * chosen.clusters
    main, ninths = rng.randbytes(size), rng.randbytes(size // 8)

    def word(memory, index):
        start = 16 * (index * chosen.clusters + cluster)
        return memory[start:start + 16]

    def kernel(q):
        return signed(word(main, q // 2)[8 * (q % 2):][:8] + word(ninths, q // 16)[q % 16:][:1])

    async def bench(ctx):
        await load(ctx, dut, ninth=0, content=main)
        await load(ctx, dut, ninth=1, content=ninths)
        words = [rng.randrange(chosen.weight_words) for _ in range(40)]
        runs = await fetch(ctx, dut, [{"pointer": index} for index in words])
        assert runs == [(signed(word(main, index)), 1) for index in words]
        for first in (0, 13, 2 * chosen.weight_words - 40):  # a sequence may begin anywhere in a word of ninths
            kernels = await fetch(ctx, dut, [{"pointer": q, "winograd": 1, "fresh": q == first}
                                             for q in range(first, first + 40)])
            assert [(weights[:9], dot) for weights, dot in kernels] == [
                (kernel(q), 0) for q in range(first, first + 40)]

    simulate(dut, bench)


@pytest.mark.parametrize("cluster", range(2))
def test_pool_gives_each_lane_of_the_array_its_byte(cluster):
    chosen = machine(2, 8)
    dut = WeightBuffer(chosen, cluster)

    async def bench(ctx):
        results = await fetch(ctx, dut, [{"pool": 1, "lane": lane} for lane in range(2)])
        assert results == [([int(k == 2 * cluster + lane) for k in range(16)], 1) for lane in range(2)]

    simulate(dut, bench)
