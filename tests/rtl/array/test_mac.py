"""Machines beyond the presets give the sums of plain convolutions, too."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from tests.support.mac_layers import Place, conv, conv23, pool_sum
from tests.support.streams import put, simulate
from tilewright.isa.assembler import pack
from tilewright.isa.encoding import KNOWN
from tilewright.isa.machine import ARRAYS, Machine, lanes_of_a_fetch
from tilewright.rtl.array.mac import MacUnit
from tilewright.rtl.array.sequencer.room_for_sums import MOST_UNDER_WAY
from tilewright.rtl.array.sequencer.sequencer import Sequencer
from tilewright.rtl.array.sequencer.slots import DEPTH
from tilewright.rtl.post.post import PostUnit

SHAPES = [  # lanes, clusters, tiles, post_lanes, bus_bytes
    (1, 1, 1, 1, 4), (2, 2, 1, 1, 8), (2, 1, 2, 2, 16), (4, 4, 2, 2, 4), (8, 4, 4, 1, 8), (4, 1, 4, 1, 16)]
PAIRS = [(2, 1, 1, 1, 4), (4, 2, 1, 4, 8), (4, 1, 2, 2, 16), (8, 1, 4, 1, 8), (16, 8, 4, 2, 8)]  # of inner products


def machine(lanes, clusters, tiles, post_lanes, bus_bytes, array="winograd"):
    return Machine(lanes=lanes, clusters=clusters, tiles=tiles, post_lanes=post_lanes, bus_bytes=bus_bytes,
                   activation_bytes=8192, weight_bytes=16384 * clusters, array=array)


def layers_for(machine, seed):
    place, rng = Place(machine), np.random.default_rng(seed)
    if not machine.winograd:
        return [
            conv(place, rng, channels=3, kernel=(3, 1), tiles_x=3, tiles_y=2, groups=2, grouped=True),
            conv(place, rng, channels=5, kernel=(2, 3), tiles_x=5, tiles_y=1, stride=2, groups=2),
            *([pool_sum(place, rng, kernel=(2, 2), tiles_x=3, tiles_y=2, groups=2)] if machine.lane_runs == 1 else []),
            conv(place, rng, channels=2, kernel=(5, 3), tiles_x=machine.tiles, tiles_y=1, paired=True, hold=1),
            conv(place, rng, channels=33, kernel=(1, 1), tiles_x=machine.tiles, tiles_y=1, accumulate=1),
        ]
    return [
        conv23(place, rng, channels=3, tiles_x=3, tiles_y=2, groups=2, grouped=True, y_half=1),
        conv(place, rng, channels=5, kernel=(2, 3), tiles_x=5, tiles_y=1, stride=2, groups=2),
        *([pool_sum(place, rng, kernel=(2, 2), tiles_x=3, tiles_y=2, groups=2)] if machine.lane_runs == 1 else []),
        conv23(place, rng, channels=1, tiles_x=1, tiles_y=3, reuse=False),
    ]


async def fill(ctx, dut, layers):
    size = len(dut.weight_write.data) // 8
    for layer in layers:
        for blocked, address, content in layer.writes:
            ctx.set(dut.activation_write.valid, 1)
            if blocked:
                ctx.set(dut.activation_write.blocked, 1)
            elif "blocked" in dut.activation_write.signature.members:
                ctx.set(dut.activation_write.blocked, 0)
            ctx.set(dut.activation_write.address, address)
            ctx.set(dut.activation_write.count, len(content))
            ctx.set(dut.activation_write.data, int.from_bytes(content, "little"))
            assert ctx.get(dut.activation_written_bytes) == len(content)
            await ctx.tick()
        ctx.set(dut.activation_write.valid, 0)
        for ninth, words in ((0, layer.main), (1, layer.ninths)):
            for index, content in words:
                for part in range(16 // size):
                    ctx.set(dut.weight_write.valid, 1)
                    if "ninth" in dut.weight_write.signature.members:
                        ctx.set(dut.weight_write.ninth, ninth)
                    ctx.set(dut.weight_write.index, index * (16 // size) + part)
                    ctx.set(dut.weight_write.data,
                            int.from_bytes(content[size * part:size * (part + 1)], "little"))
                    assert ctx.get(dut.weight_written_bytes) == size
                    await ctx.tick()
        ctx.set(dut.weight_write.valid, 0)


async def command(ctx, dut, mnemonic, variant, fields):
    chosen = KNOWN[mnemonic].variant(variant)
    await put(ctx, dut.commands, {
        "funct3": KNOWN[mnemonic].funct3, "variant": chosen.code, "flags": 0,
        "rs1": pack(chosen.rs1, {field.name: fields[field.name] for field in chosen.rs1}),
        "rs2": pack(chosen.rs2, {field.name: fields[field.name] for field in chosen.rs2})})


async def read_group(ctx, dut, machine, layer, tiles):
    """Request every sum of the oldest group, and release it with the last request; return (tiles, pixels, lanes)."""
    await ctx.tick().until(dut.sums_available)
    slices = machine.lanes // machine.post_lanes
    places = [(tile, pixel, part) for tile in range(tiles) for pixel in range(layer.sums.shape[2])
              for part in range(slices)]
    values = []
    for cycle in range(len(places) + dut.sums_latency):
        asks = cycle < len(places)
        ctx.set(dut.sums_request.valid, asks)
        if asks:
            tile, pixel, part = places[cycle]
            ctx.set(dut.sums_request.tile, tile)
            ctx.set(dut.sums_request.pixel, pixel)
            ctx.set(dut.sums_request.slice, part)
            ctx.set(dut.sums_request.winograd, layer.winograd)
        ctx.set(dut.sums_done, cycle == len(places) - 1)
        assert ctx.get(dut.sums_response.valid) == (cycle >= dut.sums_latency)
        if cycle >= dut.sums_latency:
            values += [ctx.get(dut.sums_response.values[lane]) for lane in range(machine.post_lanes)]
        await ctx.tick()
    return np.array(values).reshape(tiles, layer.sums.shape[2], machine.lanes)


@pytest.mark.parametrize("shape", [
    *SHAPES, *((*shape, kind) for shape in PAIRS for kind in ("inner", "winograd_inner"))],
                         ids=lambda shape: "x".join(map(str, shape)))
def test_any_machine_gives_the_sums_of_plain_convolutions(shape):
    chosen = machine(*shape)
    run_layers(MacUnit(chosen), chosen, layers_for(chosen, seed=sum(shape[:5])))


@pytest.mark.parametrize(("kernel", "channels"), [((1, 1), 64), ((3, 3), 16)])
def test_inner_products_are_two_macs_a_cycle_of_each_multiplier_of_a_lane(kernel, channels):
    chosen = machine(8, 1, 4, 8, 8, "inner")
    place, rng = Place(chosen), np.random.default_rng(2)
    layers = [conv(place, rng, channels=channels, kernel=kernel, tiles_x=8, tiles_y=2, stride=2, groups=2)]
    issued = run_layers(MacUnit(chosen), chosen, layers)
    cycles = issued[-1] - issued[0] + 1
    macs = 16 * 2 * chosen.lanes * channels * kernel[0] * kernel[1]
    assert chosen.multipliers == 8 * chosen.lanes + 8     # the last eight make xi
    assert macs == 2 * cycles * (chosen.multipliers - 8)


def test_pairs_of_channels_are_four_and_a_half_macs_a_cycle_of_each_multiplier_of_a_lane():
    chosen = machine(8, 1, 4, 8, 8, "winograd_inner")
    place, rng = Place(chosen), np.random.default_rng(2)
    layers = [conv23(place, rng, channels=16, tiles_x=4, tiles_y=2, groups=3)]
    issued = run_layers(MacUnit(chosen), chosen, layers)
    cycles = issued[-1] - issued[0] + 1
    macs = 3 * 8 * 8 * 4 * 9 * 16
    assert chosen.multipliers == 8 * chosen.lanes + 16    # the last sixteen make xi
    assert macs == 4.5 * cycles * (chosen.multipliers - 16)


@pytest.mark.parametrize(("array", "lanes", "clusters", "post_lanes"), [
    pytest.param("winograd", 4, 1, 4, marks=pytest.mark.slow), ("winograd", 8, 2, 2), ("winograd_inner", 8, 1, 8),
    pytest.param("winograd_inner", 16, 2, 4, marks=pytest.mark.slow)])
def test_lanes_with_patches_of_their_own_take_turns_with_others(array, lanes, clusters, post_lanes):
    chosen = replace(machine(lanes, clusters, 4, post_lanes, 8, array), activation_bytes=16384, channel_kernels=True,
                     four_patches=True)
    place, rng = Place(chosen), np.random.default_rng(3)
    layers = [
        conv23(place, rng, channels=3, tiles_x=3, tiles_y=1, groups=2, grouped=True, y_half=1),
        conv23(place, rng, channels=0, tiles_x=3, tiles_y=3, groups=2, by_channel=True, four=True, y_half=1),
        conv(place, rng, channels=5, kernel=(2, 3), tiles_x=5, tiles_y=1, stride=2, groups=1),
        conv23(place, rng, channels=0, tiles_x=5, tiles_y=1, groups=2, by_channel=True, four=True),
        conv23(place, rng, channels=0, tiles_x=2, tiles_y=2, groups=1, by_channel=True),
    ]
    run_layers(MacUnit(chosen), chosen, layers)


@pytest.mark.parametrize(("array", "lanes"), [("winograd", 4), ("winograd_inner", 8)])
def test_four_patches_are_nine_macs_a_cycle_of_each_lane_s_multipliers(array, lanes):
    chosen = replace(machine(lanes, 1, 4, lanes, 8, array), channel_kernels=True, four_patches=True)
    place, rng = Place(chosen), np.random.default_rng(2)
    # Four groups of four tiles, whose sums there is room for.
    layer = conv23(place, rng, channels=0, tiles_x=4, tiles_y=4, by_channel=True, four=True)
    issued = run_layers(MacUnit(chosen), chosen, [layer])
    macs = 16 * 4 * 9 * lanes
    assert macs == 4 * 36 * (issued[-1] - issued[0] + 1)


def run_layers(dut, chosen, layers):
    """Hold every sum to that of the layers; return the cycles in which a slot was issued."""
    filled, issued = [], []

    async def program(ctx):
        await fill(ctx, dut, layers)
        filled.append(True)
        for layer in layers:
            for variant, fields in layer.settings.items():
                await command(ctx, dut, "conv", variant, fields)
            await command(ctx, dut, layer.mnemonic, layer.variant, layer.operands)

    async def post(ctx):
        held = 0
        for layer in layers:
            if layer.hold:
                held = layer.sums
                continue
            layer.sums, held = layer.sums + held, 0
            groups, tiles = layer.sums.shape[:2]
            for group in range(groups):
                for first in range(0, tiles, chosen.tiles):
                    count = min(chosen.tiles, tiles - first)
                    values = await read_group(ctx, dut, chosen, layer, count)
                    assert np.array_equal(values, layer.sums[group, first:first + count])
        assert filled
        assert not ctx.get(dut.busy)

    async def watch(ctx):
        cycle, expected = 0, sum(layer.steps * len(layer.sums) * layer.sums.shape[1] for layer in layers)
        while len(issued) < expected:
            *_, slot = await ctx.tick().sample(dut.tile_slots)
            cycle += 1
            if slot:
                issued.append(cycle)

    simulate(dut, program, post, watch, deadline=20_000)
    return issued


# ---- sums that leave as fast as they come

WHOLE = [(1, 1, 4, 1, 4, "winograd"), (4, 1, 4, 4, 8, "plain"), (2, 1, 4, 2, 8, "inner"),
         (8, 1, 4, 8, 8, "winograd_inner"), (2, 1, 1, 2, 8, "winograd_inner")]
SEEN = PostUnit.COMMAND_GAP - PostUnit.DRAIN_LATENCY
"""From ``drain_begins`` to the first request, at the latest, if there are sums."""


def thin_layers(chosen, seed):
    """Return layers of one step and of two, of few tiles and of many."""
    place, rng, made = Place(chosen), np.random.default_rng(seed), []
    for channels, columns in ((16, 1), (16, 5), (1, 2), (32, 5), (16, 9), (16, 3), (7, 17), (16, 24)):
        made.append(conv(place, rng, channels=channels, kernel=(1, 1), tiles_x=columns, tiles_y=1, groups=3))
    return made


@pytest.mark.parametrize("delay", [0, 60])
@pytest.mark.parametrize("shape", WHOLE, ids=lambda shape: "x".join(map(str, shape)))
def test_sums_that_leave_as_fast_as_they_come_need_no_room(shape, delay):
    """Post-processing begins a while after the command before; then it takes a tile's sums in every cycle."""
    chosen = machine(*shape)
    layers = thin_layers(chosen, delay)
    slots = drained_layers(MacUnit(chosen), chosen, layers, delay)
    assert sum(map(len, slots)) == sum(layer.steps * len(layer.sums) * layer.sums.shape[1] for layer in layers)
    if delay == 0 and chosen.fetch_slots == chosen.tiles:
        # The array waits no more within the last one, whose groups are full, but while its first are under way.
        steps = np.diff(slots[-1])
        assert (steps[-24:] == 1).all()


def drained_layers(dut, chosen, layers, delay):
    """Hold every sum to that of the layers; return the cycles of each layer's slots."""
    now, answers, slots = [0], [], [[] for _ in layers]

    async def program(ctx):
        await fill(ctx, dut, layers)
        for layer in layers:
            for variant, fields in layer.settings.items():
                await command(ctx, dut, "conv", variant, fields)
            await command(ctx, dut, layer.mnemonic, layer.variant, layer.operands)

    async def post(ctx):
        for layer in layers:
            await ctx.tick().until(dut.sums_available)
            await ctx.tick().repeat(delay + 1)
            ctx.set(dut.drain_begins, 1)
            ctx.set(dut.drain_steady, 1)
            await ctx.tick()
            ctx.set(dut.drain_begins, 0)
            ctx.set(dut.drain_steady, 0)
            await ctx.tick().repeat(SEEN - 1)
            groups, tiles = layer.sums.shape[:2]
            for first in [first for _ in range(groups) for first in range(0, tiles, chosen.tiles)]:
                while not ctx.get(dut.sums_available):
                    await ctx.tick()
                count = min(chosen.tiles, tiles - first)
                ctx.set(dut.sums_request.valid, 1)
                for tile in range(count):
                    ctx.set(dut.sums_request.tile, tile)
                    ctx.set(dut.sums_done, tile == count - 1)
                    await ctx.tick()
                ctx.set(dut.sums_request.valid, 0)
                ctx.set(dut.sums_done, 0)

    async def watch(ctx):
        left = [layer.steps * len(layer.sums) * layer.sums.shape[1] for layer in layers]
        while len(answers) < sum(len(layer.sums) * layer.sums.shape[1] for layer in layers):
            *_, slot, valid, values = await ctx.tick().sample(
                dut.tile_slots, dut.sums_response.valid, dut.sums_response.values)
            now[0] += 1
            if slot:
                number = next(number for number, count in enumerate(left) if count)
                left[number] -= 1
                slots[number].append(now[0])
            if valid:
                answers.append([values[lane] for lane in range(chosen.lanes)])

    simulate(dut, program, post, watch, deadline=20_000)
    assert np.array_equal(np.array(answers), np.concatenate([layer.sums.reshape(-1, chosen.lanes) for layer in layers]))
    return slots


@dataclass(frozen=True)
class Course:
    """Cycles of a tile group: its last step begins, its first sum is written, that is read, it is done."""

    issued: int
    written: int
    read: int
    done: int


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("tiles", [1, 2, 4])
def test_sums_are_read_before_others_lie_in_their_place(array, tiles):
    """In cycles, for commands of every number of tiles and of steps, with post-processing early, in time and late."""
    ring = DEPTH // tiles
    for fetch in (each for each in (1, 2, 4) if each <= tiles):
        lanes = fetch * lanes_of_a_fetch(array)
        chosen = Machine(array=array, lanes=lanes, post_lanes=lanes, tiles=tiles)
        assert chosen.fetch_slots == fetch
        for count, begins, steps in product(range(1, 5 * tiles + 2), (0, 5, 20, 200), (1, 2)):
            sizes = [min(tiles, count - first) for first in range(0, count, tiles)] * 12
            courses = courses_of(chosen, sizes, begins, steps)
            for before, behind in zip(courses, courses[ring:], strict=False):
                assert before.read <= behind.written, (fetch, count, begins, steps)
            for now in courses:
                under_way = sum(each.issued <= now.issued < each.done for each in courses)
                assert under_way <= ring + MOST_UNDER_WAY


def courses_of(chosen, sizes, begins, steps):
    """Return the courses of tile groups of ``sizes`` tiles: sums are written as early and read as late as can be.

    Post-processing takes its command in cycle ``begins``.
    """
    latency, ring, slot = MacUnit.latency_of(chosen), DEPTH // chosen.tiles, 0
    courses: list[Course] = []
    for number, size in enumerate(sizes):
        spacing = max(size, chosen.fetch_slots)
        free = courses[number - ring].done + 1 if number >= ring else 0
        issued = max(slot + spacing * (steps - 1),
                     min(free, begins + PostUnit.DRAIN_LATENCY + Sequencer.DRAIN_LATENCY))
        slot = issued + spacing
        available = slot - 1 + latency + chosen.fetch_slots
        asked = max(available, courses[-1].done + 1 if courses else 0, begins + PostUnit.COMMAND_GAP)
        # An array of inner products writes xi a cycle before its first lane does.
        courses.append(Course(issued, issued + latency - (2 if chosen.inner else 1), asked + 1, asked + size - 1))
    return courses
