# amaranth: UnusedElaboratable=no
"""Commands reach their unit in order, a full queue holds up the port, and a fence waits for quiet."""

import random
from dataclasses import replace

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from tests.support.streams import get_all, put, put_all, simulate
from tilewright.isa.assembler import command as make
from tilewright.isa.assembler import decode_variant
from tilewright.isa.counts import COUNTS, refused_count
from tilewright.isa.encoding import BY_MNEMONIC, INSTRUCTIONS, EncodingError
from tilewright.isa.lacking import lacks, variants_of
from tilewright.isa.machine import EXTRA_UNITS, UNITS, preset
from tilewright.rtl.port.dispatcher import QUEUED_UNITS, Dispatcher, legal
from tilewright.rtl.stream.commands import Command

NANO = preset("nano")
FEWEST = replace(NANO, name="fewest", array="plain", **dict.fromkeys(UNITS, False))
MOST = replace(NANO, name="most", lanes=4, **dict.fromkeys(EXTRA_UNITS, True))


def hardware(command):
    return Command.const({"funct3": command.funct3, "variant": command.funct7 >> 4, "flags": command.funct7 & 15,
                          "rs1": command.rs1, "rs2": command.rs2})


FENCE = hardware(make("sta", "fence"))


def random_commands(machine, count, seed=0):
    """Return pairs (unit, command) of what the machine has, each command told apart by its rs2."""
    rng = random.Random(seed)
    plain = [each for each in variants_of(machine) if each[1].unit in QUEUED_UNITS]
    pairs = []
    for number in range(count):
        instruction, variant = rng.choice(plain)
        pairs.append((variant.unit, Command.const({"funct3": instruction.funct3, "variant": variant.code,
                                                   "rs1": rng.getrandbits(32), "rs2": number})))
    return pairs


@pytest.mark.parametrize("machine", [NANO, FEWEST], ids=lambda machine: machine.name)
def test_legal_is_what_the_assembler_decodes_and_the_machine_has(machine):
    m, funct3, funct7, result = Module(), Signal(3), Signal(7), Signal()
    m.d.comb += result.eq(legal(funct3, funct7, machine))
    by_funct3 = {instruction.funct3: instruction for instruction in INSTRUCTIONS}

    def expected(f3, f7):
        try:
            variant = decode_variant(by_funct3[f3], f7)
        except (KeyError, EncodingError):
            return False
        return lacks(machine, by_funct3[f3].mnemonic, variant.name) is None

    async def check(ctx):
        for f3 in range(8):
            ctx.set(funct3, f3)
            for f7 in range(128):
                ctx.set(funct7, f7)
                assert bool(ctx.get(result)) == expected(f3, f7), (f3, f7)

    sim = Simulator(m)
    sim.add_testbench(check)
    sim.run()


@pytest.mark.parametrize(("machine", "stall"), [(MOST, 0), (MOST, 0.5), (MOST, 0.9), (NANO, 0.5)],
                         ids=lambda each: getattr(each, "name", each))
def test_each_unit_gets_its_commands_in_order(machine, stall):
    dut, sent, received = Dispatcher(machine), random_commands(machine, 200), {}

    def consumer(unit, seed):
        async def take(ctx):
            count = sum(each == unit for each, _ in sent)
            received[unit] = [p for _, p in await get_all(ctx, getattr(dut, unit), count, stall=stall, seed=seed)]
        return take

    async def producer(ctx):
        await put_all(ctx, dut.commands, [command for _, command in sent])

    simulate(dut, producer, *(consumer(unit, seed) for seed, unit in enumerate(QUEUED_UNITS)))
    assert received == {unit: [c for each, c in sent if each == unit] for unit in QUEUED_UNITS}


def test_takes_a_command_per_cycle_until_one_queue_is_full():
    dut = Dispatcher(NANO)
    load, mac = hardware(make("lda", "linear")), hardware(make("conv", "run"))

    async def check(ctx):
        ctx.set(dut.commands.payload, load)
        ctx.set(dut.commands.valid, 1)
        for _ in range(NANO.queue_depth):
            assert ctx.get(dut.commands.ready)
            await ctx.tick()
        await ctx.tick().repeat(10)
        assert not ctx.get(dut.commands.ready)
        ctx.set(dut.commands.payload, mac)
        assert ctx.get(dut.commands.ready)

    simulate(dut, check)


def test_fence_waits_for_queues_and_busy():
    dut = Dispatcher(NANO)

    async def check(ctx):
        await ctx.tick().repeat(10)
        assert ctx.get(dut.idle)
        await put(ctx, dut.commands, hardware(make("lda", "linear")))
        ctx.set(dut.commands.payload, FENCE)
        ctx.set(dut.commands.valid, 1)
        for _ in range(20):
            assert not ctx.get(dut.commands.ready)   # the command is still queued
            await ctx.tick()
        ctx.set(dut.load.ready, 1)
        await ctx.tick()
        ctx.set(dut.load.ready, 0)
        await ctx.tick()                             # a unit may rise one cycle after it has taken a command
        ctx.set(dut.busy, 1)
        for _ in range(20):
            assert not ctx.get(dut.commands.ready)
            await ctx.tick()
        ctx.set(dut.busy, 0)
        waited = 0
        while not ctx.get(dut.commands.ready):
            waited += 1
            await ctx.tick()
        assert waited == Dispatcher.QUIET_CYCLES
        assert ctx.get(dut.taken)
        assert not any(ctx.get(getattr(dut, unit).valid) for unit in QUEUED_UNITS)

    simulate(dut, check)


@pytest.mark.parametrize("drop", [0, 1])
def test_a_fence_that_notifies_waits_for_nothing(drop):
    dut = Dispatcher(NANO)

    async def check(ctx):
        ctx.set(dut.drop, drop)
        ctx.set(dut.busy, 1)
        await ctx.tick().repeat(10)
        ctx.set(dut.commands.payload, hardware(make("sta", "fence", notify=1)))
        ctx.set(dut.commands.valid, 1)
        assert ctx.get(dut.commands.ready)
        assert (ctx.get(dut.notify_taken), ctx.get(dut.fence_taken)) == (1, 0)
        ctx.set(dut.commands.payload, FENCE)
        await ctx.tick().repeat(10)
        assert not ctx.get(dut.commands.ready)
        ctx.set(dut.busy, 0)
        while not ctx.get(dut.commands.ready):
            await ctx.tick()
        assert (ctx.get(dut.notify_taken), ctx.get(dut.fence_taken)) == (0, 1)

    simulate(dut, check)


def test_after_a_fault_only_status_commands_and_fences_are_not_dropped():
    dut = Dispatcher(NANO)

    async def check(ctx):
        ctx.set(dut.drop, 1)
        ctx.set(dut.busy, 1)
        for payload in [hardware(make("lda", "linear"))] * (2 * NANO.queue_depth):
            ctx.set(dut.commands.payload, payload)
            ctx.set(dut.commands.valid, 1)
            assert ctx.get(dut.commands.ready)
            await ctx.tick()
        ctx.set(dut.commands.payload, FENCE)
        await ctx.tick().repeat(10)
        assert not ctx.get(dut.commands.ready)
        ctx.set(dut.commands.payload, hardware(make("sta", "status")))
        await ctx.tick()
        ctx.set(dut.commands.valid, 0)
        await ctx.tick().repeat(5)
        assert not ctx.get(dut.load.valid)
        assert ctx.get(dut.store.valid)

    simulate(dut, check)


def test_an_abort_waits_for_nothing_but_the_end_of_another():
    dut = Dispatcher(NANO)

    async def check(ctx):
        ctx.set(dut.busy, 1)
        ctx.set(dut.hold, 1)
        ctx.set(dut.commands.payload, hardware(make("sta", "fence", abort=1)))
        ctx.set(dut.commands.valid, 1)
        assert not ctx.get(dut.commands.ready)
        assert not ctx.get(dut.abort_taken)
        ctx.set(dut.hold, 0)
        assert ctx.get(dut.commands.ready)
        assert ctx.get(dut.abort_taken)
        ctx.set(dut.hold, 1)
        ctx.set(dut.dead, 1)
        assert ctx.get(dut.commands.ready)
        assert not ctx.get(dut.abort_taken)

    simulate(dut, check)


def test_fence_is_the_only_command_of_the_host():
    hosts = [(i.mnemonic, v.name) for i in INSTRUCTIONS for v in i.variants if v.unit == "host"]
    assert hosts == [("sta", "fence")]
    assert BY_MNEMONIC["sta"].variant("fence").flags == (None,) * 4


@pytest.mark.parametrize(("mnemonic", "variant"), COUNTS)
def test_a_count_of_zero_is_told_and_no_other(mnemonic, variant):
    dut = Dispatcher(MOST)
    whole = dict.fromkeys(COUNTS[mnemonic, variant], 1)

    async def check(ctx):
        ctx.set(dut.commands.valid, 1)
        for zero in (None, *whole):
            made = make(mnemonic, variant, **(whole | ({zero: 0} if zero else {})))
            ctx.set(dut.commands.payload, hardware(made))
            await ctx.tick()
            assert bool(ctx.get(dut.zero_count)) == (zero is not None)
            assert refused_count(made, NANO) == (ctx.get(dut.zero_code) if zero else None)

    simulate(dut, check)


@pytest.mark.parametrize("mnemonic", ["lda", "sta"])
def test_a_row_is_refused_as_the_reference_says(mnemonic):
    dut, rng = Dispatcher(NANO), random.Random(3)

    async def check(ctx):
        ctx.set(dut.commands.valid, 1)
        for unit in QUEUED_UNITS:
            ctx.set(getattr(dut, unit).ready, 1)
        refused = 0
        for _ in range(300):
            sizes = rng.randint(1, 65535) >> rng.randrange(16), rng.randint(1, 4095) >> rng.randrange(12)
            made = make(mnemonic, "set_row", chunk_bytes=max(sizes[0], 1), chunks=max(sizes[1], 1))
            ctx.set(dut.commands.payload, hardware(made))
            await ctx.tick()
            expected = refused_count(made, NANO)
            assert bool(ctx.get(dut.zero_count)) == (expected is not None)
            refused += expected is not None
        assert 20 < refused < 280

    simulate(dut, check)
