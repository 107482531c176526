"""Counts that nobody can mean are told from operands that may be anything."""

from tilewright.isa.assembler import command
from tilewright.isa.counts import refused_count
from tilewright.isa.machine import preset

NANO, LARGE = preset("nano"), preset("large")


def test_a_count_of_zero_gives_the_instruction_and_other_zeros_do_not():
    assert refused_count(command("sta", "memory", address=0, base=0, rows=0), NANO) == 6 << 3
    assert refused_count(command("sta", "set_row", chunk_bytes=1, chunks=0), NANO) == 6 << 3 | 4
    assert refused_count(command("sta", "memory", address=0, base=0, rows=1), NANO) is None
    assert refused_count(command("lda", "set_layout"), NANO) is None


def test_a_row_that_no_buffer_holds_is_refused_and_one_that_the_largest_holds_is_not():
    for mnemonic, code in (("lda", 5), ("sta", 6 << 3 | 4)):
        def row(chunk_bytes, chunks, mnemonic=mnemonic):
            return command(mnemonic, "set_row", chunk_bytes=chunk_bytes, chunks=chunks)

        assert refused_count(row(65535, 4095), NANO) == refused_count(row(65535, 4095), LARGE) == code
        assert refused_count(row(65535, 1), NANO) is refused_count(row(1, 4095), NANO) is None
        for machine in (NANO, LARGE):
            for chunks in (1, 2, 3, 7, 100, 2048, 4095):
                held = min(machine.activation_bytes // chunks, 65535)
                assert refused_count(row(held, chunks), machine) is None
                if 4 * machine.activation_bytes // chunks < 65535:
                    assert refused_count(row(4 * machine.activation_bytes // chunks + 1, chunks), machine) == code
