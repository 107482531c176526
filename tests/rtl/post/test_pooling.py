# amaranth: UnusedElaboratable=no
"""Max pooling in place: slots against a list of bytes, at every distance; windows against their definition."""

import random

import pytest
from amaranth import Module
from amaranth.lib import wiring

from tests.support.streams import simulate
from tilewright.isa.machine import Machine
from tilewright.rtl.buffers.result_buffer import ResultBuffer
from tilewright.rtl.post.output_walker import OutputWalker
from tilewright.rtl.post.pooling import MaxPoolUnit, WindowSteps

SMALL = Machine(result_bytes=1024)


class PoolAndBuffer(wiring.Component):
    """The pool on its buffer."""

    def __init__(self, machine):
        self.pool, self.buffer = MaxPoolUnit(machine), ResultBuffer(machine)
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.pool, m.submodules.buffer = pool, buffer = self.pool, self.buffer
        written = pool.o.payload
        m.d.comb += [
            buffer.post_read.valid.eq(pool.read.valid),
            buffer.post_read.payload.eq(pool.read.payload),
            pool.old.eq(buffer.post_data),
            buffer.post_write.valid.eq(pool.o.valid & written.slot.write),
            buffer.post_write.payload.address.eq(written.slot.address),
            buffer.post_write.payload.count.eq(written.slot.count),
            buffer.post_write.payload.data.eq(written.data),
        ]
        return m


@pytest.mark.parametrize("places", [1, 2, 5, 12])
def test_maximum_is_that_of_all_values_so_far(places):
    dut = PoolAndBuffer(SMALL)
    pool, lanes = dut.pool, SMALL.post_lanes
    rng = random.Random(places)
    slots = [None if rng.random() < 0.2 else
             {"address": 3 + 7 * rng.randrange(places), "merge": int(rng.random() < 0.8), "write": 1,
              "values": [rng.randint(-128, 127) for _ in range(lanes)]} for _ in range(400)]
    content = {3 + 7 * place: [None] * lanes for place in range(places)}
    for slot in slots:
        if slot is not None:
            if content[slot["address"]][0] is None:
                slot["merge"] = 0
            old = content[slot["address"]]
            slot["after"] = [*map(max, slot["values"], old)] if slot["merge"] else slot["values"]
            content[slot["address"]] = slot["after"]

    async def drive(ctx):
        for cycle in range(len(slots) + pool.LATENCY):
            slot = slots[cycle] if cycle < len(slots) else None
            ctx.set(pool.i.valid, slot is not None)
            if slot is not None:
                ctx.set(pool.i.payload, {"address": slot["address"], "count": lanes, "read": slot["merge"],
                                         "merge": slot["merge"], "write": 1})
            if pool.VALUE <= cycle < len(slots) + pool.VALUE and slots[cycle - pool.VALUE] is not None:
                assert ctx.get(pool.due.valid)
                assert ctx.get(pool.due.payload.address) == slots[cycle - pool.VALUE]["address"]
                ctx.set(pool.value, slots[cycle - pool.VALUE]["values"])
            if cycle >= pool.LATENCY:
                wanted = slots[cycle - pool.LATENCY]
                assert ctx.get(pool.o.valid) == (wanted is not None)
                if wanted is not None:
                    got = [(ctx.get(pool.o.payload.data[i]) ^ 128) - 128 for i in range(lanes)]
                    assert got == wanted["after"], f"slot {cycle - pool.LATENCY}"
            await ctx.tick()

    simulate(dut, drive)


class WalkAndWindows(wiring.Component):
    """A walk and the windows of its vectors."""

    def __init__(self, machine):
        self.walker, self.windows = OutputWalker(machine), WindowSteps(machine)
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.walker, m.submodules.windows = walker, windows = self.walker, self.windows
        wiring.connect(m, walker.o, windows.i)
        m.d.comb += [windows.axes.eq(walker.axes), windows.output.eq(walker.output)]
        return m


def covering(start, kernel, stride, windows, position):
    """Return the pairs (window, whether this is its first position) along one axis, last window first."""
    return [(w, position == max(0, w * stride - start)) for w in reversed(range(windows))
            if w * stride - start <= position < w * stride - start + kernel]


@pytest.mark.parametrize(("kernel", "stride", "padding", "windows"),
                         [(2, 2, 0, 3), (3, 2, 1, 3), (3, 1, 1, 6), (2, 1, 0, 5), (1, 2, 0, 3), (3, 2, 0, 1),
                          (15, 1, 7, 6), (4, 1, 15, 20), (5, 7, 15, 3)])
@pytest.mark.parametrize(("winograd", "four"), [(0, False), (1, False), (0, True), (1, True)])
def test_steps_are_the_windows_that_cover_each_pixel(kernel, stride, padding, windows, winograd, four):
    machine = Machine(lanes=4, post_lanes=2, result_bytes=1 << 18, channel_kernels=four, four_patches=four)
    dut = WalkAndWindows(machine)
    width, rows, channels, base, pixel_step, row_step = 6, 5, 7, 100, 9, 1000
    pool = {"kernel_x": kernel, "kernel_y": kernel - 1 or 1, "stride_x": stride, "stride_y": stride, "left": padding,
            "top": padding // 2, "width": windows, "rows": windows}
    side = 2 if winograd else 1
    # Four patches at once: the other pixels of a tile take no step.
    drops = [four and winograd and (pool[f"kernel_{axis}"], stride, pool[before]) == (1, 2, 0)
             for axis, before in (("y", "top"), ("x", "left"))]
    expected = []
    for group in range(2):
        for tile_y in range(0, rows, side):
            for tile_x in range(0, width, side):
                for pixel in range(side * side):
                    y, x = tile_y + pixel // 2, tile_x + pixel % 2
                    for slice_ in range(2):
                        meetings = [(wy, wx, first_y and first_x)
                                    for wy, first_y in covering(pool["top"], pool["kernel_y"], stride, windows, y)
                                    for wx, first_x in covering(padding, kernel, stride, windows, x)]
                        if y < rows and x < width and not ((drops[0] and y % 2) or (drops[1] and x % 2)):
                            count = 1 if group == slice_ == 1 else 2
                            expected.append((pixel, slice_, count, [
                                (base + wy * row_step + wx * pixel_step + group * 4, first)
                                for wy, wx, first in meetings]))
    got = []

    async def drive(ctx):
        ctx.set(dut.walker.output, {"width": width, "pixel_step": pixel_step, "row_step": row_step})
        ctx.set(dut.walker.pool, pool)
        ctx.set(dut.walker.run.payload, {"base": base, "rows": rows, "winograd": winograd, "channels": channels,
                                         "pooled": 1})
        ctx.set(dut.walker.run.valid, 1)
        ctx.set(dut.windows.o.ready, 1)
        started = ended = False
        while not ended:
            await ctx.tick()
            ctx.set(dut.walker.run.valid, 0)
            valid, step = ctx.get(dut.windows.o.valid), ctx.get(dut.windows.o.payload)
            assert valid or not started, "a gap in the steps"
            if valid:
                started = True
                ended = bool(step.ends_run)
                if step.fresh:
                    got.append((step.pixel, step.slice, step.count, []))
                if step.covered:
                    got[-1][-1].append((step.y + step.x, bool(step.first)))

    simulate(dut, drive)
    assert got == expected
