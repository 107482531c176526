# amaranth: UnusedElaboratable=no
"""Commands in hardware are those of the table, and the queue keeps them in order."""

import random
from dataclasses import replace

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from tests.support.streams import transfer, transfer_timed
from tilewright.isa.assembler import pack
from tilewright.isa.encoding import INSTRUCTIONS, UNITS, EncodingError
from tilewright.isa.machine import EXTRA_UNITS, preset
from tilewright.rtl.stream.commands import FUNCT3, VARIANT, Command, CommandQueue, codes_of, flag, is_command, operands

ALL = [(instruction, variant) for instruction in INSTRUCTIONS for variant in instruction.variants]
NAMES = [f"{instruction.mnemonic}.{variant.name}" for instruction, variant in ALL]


@pytest.mark.parametrize(("instruction", "variant"), ALL, ids=NAMES)
def test_operand_layouts_read_what_the_assembler_packs(instruction, variant):
    rng = random.Random(0)
    for fields, layout in zip((variant.rs1, variant.rs2), operands(instruction.mnemonic, variant.name),
                              strict=True):
        assert layout.size == 32
        for _ in range(10):
            values = {field.name: rng.choice(field.range) for field in fields}
            seen = layout.from_bits(pack(fields, values))
            assert {name: getattr(seen, name) for name in values} == values


@pytest.mark.parametrize(("instruction", "variant"), ALL, ids=NAMES)
def test_flags_have_the_index_of_the_table(instruction, variant):
    for index, each in enumerate(variant.flags):
        if each is not None:
            assert flag(instruction.mnemonic, variant.name, each.name) == index


def test_a_flag_that_is_not_there_is_refused():
    with pytest.raises(EncodingError, match=r"lda\.linear.*'wait_out_free'"):
        flag("lda", "linear", "wait_out_free")


def test_units_share_the_commands_without_overlap():
    machine = replace(preset("base"), **dict.fromkeys(EXTRA_UNITS, True))
    codes = [code for unit in UNITS for code in codes_of(unit, machine)]
    assert len(codes) == len(set(codes)) == len(ALL)  # an extension's instruction is in no machine of the table
    assert set(codes) < {(FUNCT3[mnemonic], code) for (mnemonic, _), code in VARIANT.items()}
    assert codes_of("host") == [(6, 7)]


def test_is_command_tells_mnemonics_and_variants_apart():
    command = Signal(Command)
    m = Module()
    results = {f"{i.mnemonic}.{v.name}": Signal(name=f"{i.mnemonic}_{v.name}") for i, v in ALL}
    for (instruction, variant), name in zip(ALL, NAMES, strict=True):
        m.d.comb += results[name].eq(is_command(command, instruction.mnemonic, variant.name))
    lda = Signal()
    m.d.comb += lda.eq(is_command(command, "lda"))

    async def check(ctx):
        for (instruction, variant), name in zip(ALL, NAMES, strict=True):
            ctx.set(command.funct3, instruction.funct3)
            ctx.set(command.variant, variant.code)
            assert [other for other, signal in results.items() if ctx.get(signal)] == [name]
            assert ctx.get(lda) == (instruction.mnemonic == "lda")

    sim = Simulator(m)
    sim.add_testbench(check)
    sim.run()


def random_commands(count):
    rng = random.Random(1)
    return [Command.const({"funct3": rng.randrange(8), "variant": rng.randrange(8), "flags": rng.randrange(16),
                           "rs1": rng.getrandbits(32), "rs2": rng.getrandbits(32)}) for _ in range(count)]


@pytest.mark.parametrize("stall", [0, 0.3, 0.7])
@pytest.mark.parametrize("depth", [4, 16])
def test_queue_keeps_the_order_under_any_backpressure(depth, stall):
    sent = random_commands(100)
    assert transfer(CommandQueue(depth), sent, stall=stall) == sent


def test_queue_has_its_latency_and_takes_one_command_per_cycle():
    arrivals = transfer_timed(CommandQueue(16), random_commands(20))
    cycles = [cycle for cycle, _ in arrivals]
    assert cycles == list(range(CommandQueue.LATENCY, CommandQueue.LATENCY + 20))
