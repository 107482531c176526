"""Counts that must not be zero are told from operands that may be."""

from tilewright.isa.assembler import command
from tilewright.isa.counts import zero_count


def test_a_count_of_zero_gives_the_instruction_and_other_zeros_do_not():
    assert zero_count(command("sta", "memory", address=0, base=0, rows=0)) == 6 << 3
    assert zero_count(command("sta", "set_row", chunk_bytes=1, chunks=0)) == 6 << 3 | 4
    assert zero_count(command("sta", "memory", address=0, base=0, rows=1)) is None
    assert zero_count(command("lda", "set_layout")) is None
