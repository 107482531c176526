"""The table, the words made of it, and the texts rendered from it."""

import dataclasses
import random
import re

import pytest

from tilewright.isa import emit_c
from tilewright.isa.assembler import (
    EncodedCommand,
    assemble_word,
    command,
    disassemble_word,
    encode_word,
    pack,
    parse,
    unpack,
)
from tilewright.isa.encoding import INSTRUCTIONS, EncodingError, check_table

VARIANTS = [(i, v) for i in INSTRUCTIONS for v in i.variants]
IDS = [f"{i.mnemonic}.{v.name}" for i, v in VARIANTS]


def test_there_are_exactly_the_seven_instructions():
    assert [i.mnemonic for i in INSTRUCTIONS] == ["lda", "ldw", "conv23", "conv", "act", "pool", "sta"]


@pytest.mark.parametrize(("instruction", "variant"), VARIANTS, ids=IDS)
def test_every_field_and_flag_survives_the_round_trip(instruction, variant):
    rng = random.Random(instruction.mnemonic + variant.name)
    for _ in range(20):
        values = {f.name: rng.choice([f.range.start, f.range.stop - 1, rng.randrange(f.range.start, f.range.stop)])
                  for f in variant.fields}
        flags = [f.name for f in variant.flags if f is not None and rng.random() < 0.5]
        built = command(instruction.mnemonic, variant.name, flags, **values)
        assert built.operands == values
        assert set(built.flags) == set(flags)
        assert parse(str(built)) == built
        word = encode_word(built, rs1=rng.randrange(32), rs2=rng.randrange(32))
        assert word & 0xFFF == 0x00B  # custom-0, rd = x0
        assert assemble_word(disassemble_word(word)) == word


@pytest.mark.parametrize(("instruction", "variant"), VARIANTS, ids=IDS)
def test_each_bit_of_an_operand_belongs_to_one_field(instruction, variant):
    for fields in (variant.rs1, variant.rs2):
        width = sum(f.width for f in fields)
        for bit in range(width):
            assert pack(fields, unpack(fields, 1 << bit)) == 1 << bit


def test_a_value_that_does_not_fit_is_refused():
    with pytest.raises(EncodingError, match=r"^Operand rows must be in 0\.\.1023, not 1024$"):
        command("lda", "linear", rows=1024)


def test_an_unknown_operand_is_refused():
    with pytest.raises(EncodingError, match=r"sta\.fence .*not 'rows'"):
        command("sta", "fence", rows=1)


def test_an_unknown_flag_is_refused():
    with pytest.raises(EncodingError, match=r"set_row .*none, not 'wait_act_ready'"):
        command("lda", "set_row", ["wait_act_ready"])


@pytest.mark.parametrize("funct7", [0x40, 0x08])
def test_an_undefined_variant_or_flag_is_no_instruction(funct7):
    with pytest.raises(EncodingError):
        _ = EncodedCommand(2 if funct7 == 0x40 else 0, funct7, 0, 0).variant


@pytest.mark.parametrize("word", [0x00000013, 0x0000008B, 0x0000700B])
def test_a_foreign_word_is_refused(word):
    with pytest.raises(EncodingError):
        disassemble_word(word)


def test_clashing_codes_are_refused():
    clash = dataclasses.replace(INSTRUCTIONS[1], funct3=INSTRUCTIONS[0].funct3)
    with pytest.raises(EncodingError, match=r"funct3 of its own"):
        check_table((INSTRUCTIONS[0], clash))


def test_the_header_has_every_variant_once():
    defined = re.findall(r"^#define (tw_\w+)\((?!\))", emit_c.header(), re.M)  # not tw_sleep()
    functions = re.findall(r"^static inline uint32_t (tw_\w+)\(", emit_c.header(), re.M)
    assert defined == [f"tw_{i.mnemonic}_{v.name}" for i, v in VARIANTS if v.unit != "host"]
    assert functions == ["tw_sta_fence", "tw_sta_fence", "tw_sta_abort"]   # a fence for each port
