# amaranth: UnusedElaboratable=no
"""Segments to writes: every byte once and in its place, at the rate and latency stated."""

import random

import pytest
from amaranth import Const

from tests.support.load_store import BUFFER_BYTES, write_places
from tests.support.streams import get_all, put_all, simulate
from tilewright.rtl.load.row_writer import BLOCKED, LINEAR, RowWriter, segment_layout

SIZES = [4, 8, 16, 32, 64]


def segment(bus_bytes, lane, size, *, narrow=True, **members):
    """Return a segment of ``size`` bytes, the first in ``lane`` of its word."""
    last = lane + size - 1
    narrow_of = {"narrow": narrow} if bus_bytes > 16 else {}
    return {"address": 0, "words": last // bus_bytes + 1, "first_lane": lane, "last_lane": last % bus_bytes,
            "layout": LINEAR, "fill": 0, "fresh": 1, "pixel": 0, "value": 0, "tag": 0} | narrow_of | members


def write(bus_bytes, segments, words, count, *, splits=True, stall=0.0):
    """Return the ``count`` writes, each with its cycle."""
    dut = RowWriter(bus_bytes, tag=4, splits=splits)
    writes = []

    async def put_segments(ctx):
        layout = segment_layout(bus_bytes, 4)
        await put_all(ctx, dut.segments, [Const(each, layout) for each in segments], stall=stall, seed=1)

    async def put_words(ctx):
        await put_all(ctx, dut.words, words, stall=stall, seed=2)

    async def collect(ctx):
        writes.extend(await get_all(ctx, dut.o, count, stall=stall, seed=3))
        while ctx.get(dut.busy):  # everything has left, so it falls
            await ctx.tick()

    simulate(dut, put_segments, put_words, collect)
    return writes


def rows(rng, bus_bytes, layout, channels):
    """Return segments of a few rows, the source words, and the (place, byte) that should come out, in order."""
    segments, words, expected = [], [], []
    for tag in range(4):
        address = rng.randrange(BUFFER_BYTES // 32) * 16
        x, y = 0, rng.randrange(4)
        position = 0  # bytes of this row so far
        for piece in range(rng.randint(1, 4)):
            size = rng.randint(1, 5 * channels if layout == BLOCKED else 50)  # also parts of pixels
            is_fill, value = rng.random() < 0.3, rng.randrange(256)
            lane = 0 if is_fill else rng.randrange(bus_bytes)
            segments.append(segment(
                bus_bytes, lane, size, layout=layout, fill=is_fill, value=value, pixel=channels - 1, tag=tag,
                fresh=piece == 0, address=address + 4 * y if layout == BLOCKED else address))
            data = bytes([value]) * size if is_fill else rng.randbytes(size)
            if not is_fill:
                padded = bytes(lane) + data + bytes(-(lane + size) % bus_bytes)
                words += [int.from_bytes(padded[k:k + bus_bytes], "little") for k in range(0, len(padded), bus_bytes)]
            for k, byte in enumerate(data):
                x, c = divmod(position + k, channels)
                word = address // 16 + x // 4 * channels + c
                place = 16 * word + (x % 4 + 4 * y + c) % 16 if layout == BLOCKED else address + position + k
                expected.append((place, byte))
            position += size
    return segments, words, expected


def parts(segments, bus_bytes):
    """Return how many writes the segments give: one for each word, or 16 bytes of it, blocked: for each of a pixel."""
    total, position, each_write = 0, 0, min(16, bus_bytes)
    for each in segments:
        size = (each["words"] - 1) * bus_bytes + each["last_lane"] - each["first_lane"] + 1
        position = 0 if each["fresh"] else position
        pixel = each["pixel"] + 1 if each["layout"] == BLOCKED else 1 << 20
        first = each["first_lane"]
        total += len({((first + k) // each_write, (position + k) // pixel) for k in range(size)})
        position += size
    return total


@pytest.mark.parametrize("bus_bytes", SIZES)
@pytest.mark.parametrize(("layout", "channels"),
                         [(LINEAR, 1), (BLOCKED, 1), (BLOCKED, 3), (BLOCKED, 16), (BLOCKED, 37)])
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_each_byte_goes_to_its_place(bus_bytes, layout, channels, stall):
    segments, words, expected = rows(random.Random(channels), bus_bytes, layout, channels)
    count = parts(segments, bus_bytes)
    writes = write(bus_bytes, segments, words, count, stall=stall)
    seen = []
    for _, each in writes:
        assert each.layout == layout
        data = each.data.to_bytes(bus_bytes, "little")
        seen += zip(write_places(layout, each.address, each.count), data, strict=False)
    assert seen == expected
    assert [each.tag for _, each in writes if each.last] == [each["tag"] for each in segments]
    if stall == 0.0:
        cycles = [cycle for cycle, _ in writes]
        assert cycles == list(range(RowWriter.LATENCY, RowWriter.LATENCY + count))


@pytest.mark.parametrize("bus_bytes", SIZES)
def test_without_splitting_a_blocked_segment_is_one_pixel(bus_bytes):
    segments = [segment(bus_bytes, 0, 37, layout=BLOCKED, address=16 * 100 * k + 5, tag=k) for k in range(3)]
    count, words = -(-37 // min(16, bus_bytes)), -(-37 // bus_bytes)
    contents = random.Random(1).randbytes(3 * words * bus_bytes)
    values = [int.from_bytes(contents[k:k + bus_bytes], "little") for k in range(0, len(contents), bus_bytes)]
    writes = write(bus_bytes, segments, values, 3 * count, splits=False)
    assert [cycle for cycle, _ in writes] == list(range(RowWriter.LATENCY, RowWriter.LATENCY + 3 * count))
    for k in range(3):
        places = [place for _, each in writes[k * count:(k + 1) * count]
                  for place in write_places(BLOCKED, each.address, each.count)]
        assert places == [16 * (100 * k + c) + (5 + c) % 16 for c in range(37)]
        data = b"".join(each.data.to_bytes(bus_bytes, "little")[:each.count] for _, each in writes[k * count:][:count])
        assert data == contents[k * words * bus_bytes:][:37]


@pytest.mark.parametrize("bus_bytes", [32, 64])
def test_what_is_not_narrow_leaves_word_by_word(bus_bytes):
    segments, words, expected = rows(random.Random(1), bus_bytes, LINEAR, 1)
    segments = [each | {"narrow": 0} for each in segments]
    writes = write(bus_bytes, segments, words, sum(each["words"] for each in segments))
    seen = [pair for _, each in writes
            for pair in zip(write_places(LINEAR, each.address, each.count), each.data.to_bytes(bus_bytes, "little"),
                            strict=False)]
    assert seen == expected


def test_a_word_leaves_a_cycle_after_it_has_come():
    dut = RowWriter(8, splits=True)

    async def testbench(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.segments.payload, {"words": 1, "last_lane": 7, "fresh": 1})
        ctx.set(dut.segments.valid, 1)
        await ctx.tick()
        ctx.set(dut.segments.valid, 0)
        await ctx.tick().repeat(5)
        assert not ctx.get(dut.o.valid)
        assert ctx.get(dut.words.ready)
        ctx.set(dut.words.payload, 0x1234)
        ctx.set(dut.words.valid, 1)
        await ctx.tick()
        ctx.set(dut.words.valid, 0)
        assert ctx.get(dut.o.valid)
        assert ctx.get(dut.o.payload.data) == 0x1234
        assert ctx.get(dut.busy)
        await ctx.tick()
        assert not ctx.get(dut.busy)

    simulate(dut, testbench)
