"""Errors of isa/, word by word."""

import pytest

from tests.support.wording import raised_by
from tilewright.isa.assembler import command
from tilewright.isa.dram.dram import DramTiming, dram_named
from tilewright.isa.encoding import INSTRUCTIONS, check_table
from tilewright.isa.machine import Machine, MemoryTiming

SENTENCES = {
    "EncodingError: Operand rows must be in 0..1023, not 1024": lambda: command("lda", "linear", rows=1024),
    "EncodingError: sta.fence has the operands abort, erase, notify, not 'rows'":
        lambda: command("sta", "fence", rows=1),
    "EncodingError: Variant set_row has the flags none, not 'wait_act_ready'":
        lambda: command("lda", "set_row", ["wait_act_ready"]),
    "EncodingError: Every instruction must have a funct3 of its own, not [0, 0]":
        lambda: check_table(INSTRUCTIONS[:1] * 2),
    "ValueError: Machine bus_bytes must be at most 16 * clusters (32), since a cluster takes a word of weights a "
    "cycle, not 64": lambda: Machine(clusters=2, bus_bytes=64),
    "ValueError: Memory stall_percent must be in 0..90, not 91": lambda: MemoryTiming(stall_percent=91),
    "ValueError: Memory dram must be one of sdr-133x16, lpddr-400x16, ddr3l-1600x16, not 'ddr9'":
        lambda: DramTiming.of(dram_named("ddr9", 80)),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_wording(sentence):
    assert raised_by(SENTENCES[sentence]) == tuple(sentence.split(": ", 1))
