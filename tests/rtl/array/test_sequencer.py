"""Slots are issued in the order of docs/datapath.md, with the addresses it gives, and without gaps."""

import random
from dataclasses import replace
from functools import cache
from itertools import product

import pytest
from amaranth import Value

from tests.support.streams import put, simulate
from tilewright.isa.assembler import pack
from tilewright.isa.encoding import BY_MNEMONIC
from tilewright.isa.machine import Machine
from tilewright.rtl.array.sequencer.sequencer import MacState, Sequencer
from tilewright.rtl.array.sequencer.slots import DEPTH, WordSlot
from tilewright.rtl.stream.commands import flag

SMALL = {"activation_bytes": 1 << 20, "weight_bytes": 1 << 16}
MACHINES = [
    Machine(lanes=lanes, clusters=clusters, tiles=tiles, post_lanes=1, **SMALL)
    for lanes, clusters, tiles in ((1, 1, 1), (2, 2, 1), (2, 1, 2), (4, 4, 2), (1, 1, 4), (4, 2, 4), (4, 1, 4))
]
sequencer = cache(Sequencer)
WORDS = replace(MACHINES[-2], wide_words=True)
IDS = [f"{machine.lanes}x{machine.clusters}x{machine.tiles}" for machine in MACHINES]


def random_run(machine, rng):
    """Return a run command's fields by name, all of them small enough that lists stay short."""
    winograd = rng.random() < 0.5
    continued = rng.random() < 0.2
    tiles_x = rng.randint(1, machine.tiles) if continued else rng.randint(1, 7)
    fields = {
        "tiles_x": tiles_x, "tiles_y": 1 if continued else rng.randint(1, 4),
        "runs": rng.randint(1, 4), "kernel_x": 1 if winograd else rng.randint(1, 3),
        "kernel_y": 1 if winograd else rng.randint(1, 3), "groups": 1 if continued else rng.randint(1, 3),
        "y_half": rng.randint(0, 1) if winograd else 0, "weight_base": 8 * rng.randrange(100),
        "accumulate": int(continued), "hold": int(continued and rng.random() < 0.5),
    }
    unit = 16 if winograd else 1
    for name in ("base", "x_step", "y_step", "kernel_x_step", "kernel_y_step", "group_step"):
        fields[name] = unit * rng.randrange(4000 // unit)
    fields["plane_step"] = unit * rng.randrange(4000 // unit) if not continued and rng.random() < 0.7 else 0
    fields["pair_words"] = rng.choice([0, rng.randrange(1, 4096)])  # of a conv23 too, which must ignore it
    mnemonic, variant = rng.choice([("conv23", "run"), ("conv23", "run_without_reuse")]) if winograd else rng.choice(
        [("conv", "run"), ("pool", "sum")])
    return mnemonic, variant, fields


def expected(machine, mnemonic, variant, f):
    """Return what each slot requests and fetches, from the loops of docs/datapath.md."""
    winograd = mnemonic == "conv23"
    each = machine.fetch_slots
    kernel = [(ky, kx, run) for ky in range(f["kernel_y"]) for kx in range(f["kernel_x"]) for run in range(f["runs"])]
    tiles = [(tx, ty) for ty in range(f["tiles_y"]) for tx in range(f["tiles_x"])]
    slots = []
    for g in range(f["groups"]):
        for first in range(0, len(tiles), machine.tiles):
            group = tiles[first:first + machine.tiles]
            planes = 2 if machine.wide_words and f["plane_step"] else 1
            for plane, (k, (ky, kx, run)) in product(range(planes), enumerate(kernel)):
                offset = (g * f["group_step"] + ky * f["kernel_y_step"] + kx * f["kernel_x_step"] + 16 * run
                          + plane * f["plane_step"])
                count = max(len(group), each)
                for slot in range(count):
                    last = k == len(kernel) - 1 and plane == planes - 1
                    one = {"tile": slot, "clear": k == 0 and plane == 0 and not f["accumulate"],
                           "finish": last and not f["hold"],
                           "complete": last and not f["hold"] and slot == count - 1, "load": slot == 0}
                    if machine.wide_words:
                        one["shift"] = k == 0 and plane == 1
                    if slot < len(group):
                        one["place"] = place(f, *group[slot], offset, winograd)
                        one["neighbours"] = neighbours(f, winograd)
                        one["reuse"] = variant == "run" and winograd and slot > 0 and group[slot][0] > 0
                    if slot < each:
                        base = f["weight_base"] * (2 if winograd else 1)
                        one["pointer"] = (base + (g * len(kernel) + k) * each + slot) % (1 << 17)
                    slots.append(one)
    return slots


def place(f, tx, ty, offset, winograd):
    """Return (word, rotation, half_x, half_y) of a tile."""
    if not winograd:
        address = (f["base"] + ty * f["y_step"] + tx * f["x_step"] + offset) % (1 << 20)
        return address // 16, address % 16, 0, 0
    x, y = 2 * tx, 2 * ty + 2 * f["y_half"]
    address = f["base"] + y // 4 * f["y_step"] + x // 4 * f["x_step"] + offset
    return address % (1 << 20) // 16, offset // 16 % 16, int(x % 4 == 2), int(y % 4 == 2)


def neighbours(f, winograd):
    """Return (right, below, diagonal): words from a block to the next ones; of a run, to its next word, its half."""
    right, below = (f["x_step"] // 16, f["y_step"] // 16) if winograd else (1, f["pair_words"])
    return right, below, right + below


def observed(ctx, dut):
    """Return what the slot that now leaves requests and fetches, in the form of `expected`."""
    request, fetch = dut.request.payload, dut.fetch.payload
    slot = request.meta
    wide = ("shift",) if isinstance(slot, WordSlot) else ()
    one = {name: ctx.get(getattr(slot, name)) for name in ("tile", "clear", "finish", "complete", "load", *wide)}
    if ctx.get(request.present):
        one["place"] = tuple(ctx.get(Value.cast(getattr(request, name)))
                             for name in ("word", "rotation", "half_x", "half_y"))
        one["neighbours"] = tuple(ctx.get(getattr(request, name)) for name in ("right", "below", "diagonal"))
        one["reuse"] = ctx.get(request.reuse)
    if ctx.get(dut.fetch.valid):
        one["pointer"] = ctx.get(fetch.pointer)
    return one


def commands(mnemonic, variant, fields, planes=()):
    """Return the settings and the run as payloads of the command port."""
    settings = [("conv", name) for name in ("set_shape", "set_tile_step", "set_kernel_step", "set_group_step", *planes)]
    for each_mnemonic, each_variant in [*settings, (mnemonic, variant)]:
        instruction = BY_MNEMONIC[each_mnemonic]
        chosen = instruction.variant(each_variant)
        yield {"funct3": instruction.funct3, "variant": chosen.code, "flags": 0,
               "rs1": pack(chosen.rs1, {field.name: fields[field.name] for field in chosen.rs1}),
               "rs2": pack(chosen.rs2, {field.name: fields[field.name] for field in chosen.rs2})}


def run(machine, runs, *, release=1.0, seed=0):
    """Issue ``runs``; groups are released with probability ``release`` per cycle. Return pairs (cycle, slot).

    Also returned are the state of each cycle and the cycle in which the first run command was taken.
    """
    dut = sequencer(machine)
    total = sum(len(expected(machine, *each)) for each in runs)
    slots, states, taken = [], [], []

    async def program(ctx):
        for mnemonic, variant, fields in runs:
            for command in commands(mnemonic, variant, fields, ("set_planes",) if machine.wide_words else ()):
                await put(ctx, dut.commands, command)
            taken.append(len(states))

    async def watch(ctx):
        rng, complete = random.Random(seed), 0
        while len(slots) < total:
            if ctx.get(dut.request.valid):
                slots.append((len(states), observed(ctx, dut)))
                complete += slots[-1][1]["complete"]
            assert complete <= DEPTH // machine.tiles
            done = complete > 0 and rng.random() < release
            complete -= done
            ctx.set(dut.sums_done, done)
            states.append(ctx.get(dut.state))
            await ctx.tick()
        ctx.set(dut.sums_done, 0)
        for _ in range(4):
            await ctx.tick()
        assert not ctx.get(dut.busy)

    simulate(dut, program, watch, deadline=100_000)
    return slots, states, taken[0] - 1


@pytest.mark.parametrize("machine", [*MACHINES, WORDS], ids=[*IDS, "words"])
@pytest.mark.parametrize("release", [1.0, 0.02])
def test_slots_are_those_of_the_loops(machine, release):
    rng = random.Random(machine.lanes * 16 + machine.tiles)
    runs = [random_run(machine, rng) for _ in range(8)]
    slots, _, _ = run(machine, runs, release=release)
    assert [slot for _, slot in slots] == [slot for each in runs for slot in expected(machine, *each)]


def plain(machine, **fields):
    """Return a conv command of full tile groups and one run, changed by ``fields``."""
    return "conv", "run", {
        "tiles_x": 4 * machine.tiles, "tiles_y": 3, "runs": 1, "kernel_x": 1, "kernel_y": 1, "groups": 2, "y_half": 0,
        "weight_base": 0, "accumulate": 0, "hold": 0, "base": 5, "x_step": 16, "y_step": 1000, "kernel_x_step": 0,
        "kernel_y_step": 0, "group_step": 0, "plane_step": 0, "pair_words": 0} | fields


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
def test_groups_of_one_step_follow_each_other_without_a_gap(machine):
    slots, states, taken = run(machine, [plain(machine)])
    cycles = [cycle for cycle, _ in slots]
    assert cycles == list(range(cycles[0], cycles[0] + 2 * 12 * machine.tiles))
    assert cycles[0] == taken + machine.tiles + 2 + Sequencer.LATENCY
    assert states.count(MacState.ISSUE) == len(slots)


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
def test_commands_follow_each_other_without_a_gap(machine):
    """Four settings and a run are taken, and the first tiles listed, while the command before is issued."""
    runs = [plain(machine, runs=8, weight_base=base) for base in (0, 8, 64)]
    slots, _, _ = run(machine, runs)
    cycles = [cycle for cycle, _ in slots]
    assert cycles == list(range(cycles[0], cycles[0] + len(cycles)))


def test_waits_for_post_processing_before_a_last_step_only():
    """With nothing released a ring of finished groups fills, and all but the last step of one more is issued."""
    machine = MACHINES[-1]
    dut = sequencer(machine)
    states = []

    async def bench(ctx):
        for command in commands(*plain(machine, runs=3)):
            await put(ctx, dut.commands, command)
        for _ in range(200):
            await ctx.tick()
            states.append(ctx.get(dut.state))

    simulate(dut, bench)
    groups = DEPTH // machine.tiles
    assert states.count(MacState.ISSUE) == (groups * 3 + 2) * machine.tiles
    assert states[-1] == MacState.WAIT_POST


def test_the_command_behind_a_drained_one_waits_for_room():
    """Sums of a command whose drain has begun need no room; those of the next do, from its first step on."""
    machine = Machine(array="winograd_inner", lanes=8, post_lanes=8, tiles=4, **SMALL)
    dut = sequencer(machine)
    states = []

    async def program(ctx):
        for runs in (8, 1):
            for command in commands(*plain(machine, runs=runs, tiles_y=1)):
                await put(ctx, dut.commands, command)

    async def post(ctx):
        await ctx.tick().until(dut.tile_slots)
        ctx.set(dut.drain_begins, 1)
        ctx.set(dut.drain_steady, 1)
        await ctx.tick()
        ctx.set(dut.drain_begins, 0)
        for _ in range(400):
            await ctx.tick()
            states.append(ctx.get(dut.state))

    issued = []

    async def watch(ctx):
        while len(states) < 400:
            issued.append(ctx.get(dut.request.valid))
            await ctx.tick()

    simulate(dut, program, post, watch)
    assert sum(issued) == 8 * (2 * 4) * machine.tiles > 8 * DEPTH
    assert states[-1] == MacState.WAIT_POST


def test_a_command_takes_each_semaphore_that_it_waits_for_once():
    """Both are there all the time; the second command waits for weights alone, the third for none."""
    machine = MACHINES[-1]
    dut = sequencer(machine)
    both = 1 << flag("conv", "run", "wait_act_ready") | 1 << flag("conv", "run", "wait_wgt_ready")
    taken = []

    async def program(ctx):
        ctx.set(dut.sums_done, 0)
        ctx.set(dut.act_ready_available, 1)
        ctx.set(dut.wgt_ready_available, 1)
        for flags in (both, 1 << flag("conv", "run", "wait_wgt_ready"), 0):
            *settings, last = commands(*plain(machine, tiles_x=machine.tiles, tiles_y=1, groups=1, runs=16))
            for command in (*settings, {**last, "flags": flags}):
                await put(ctx, dut.commands, command)

    async def watch(ctx):
        for _ in range(400):
            await ctx.tick()
            taken.append((ctx.get(dut.act_ready_take), ctx.get(dut.wgt_ready_take)))

    simulate(dut, program, watch)
    assert [sum(each) for each in zip(*taken, strict=True)] == [1, 2]


def test_the_last_step_of_pairs_is_as_long_as_its_own_tiles():
    """The next command's first tile group, which is there already, has more of them."""
    machine = Machine(array="winograd_inner", lanes=2, post_lanes=1, tiles=4, **SMALL)
    assert machine.fetch_slots == 1
    runs = 32
    dut = sequencer(machine)
    slots = []

    async def program(ctx):
        for tiles in (1, machine.tiles):
            _, _, fields = plain(machine, runs=runs, tiles_x=tiles, tiles_y=1, groups=1)
            for command in commands("conv23", "run", fields):
                await put(ctx, dut.commands, command)

    async def watch(ctx):
        for _ in range(400):
            await ctx.tick()
            slots.append(ctx.get(dut.request.valid))

    simulate(dut, program, watch)
    assert sum(slots) == (runs + 1) * (1 + machine.tiles)
