"""Erasing the buffers after an abort: the load commands that reach every byte of them, and the cycles they take."""

from math import gcd

from tilewright.isa.assembler import EncodedCommand, command
from tilewright.isa.lacking import lacks
from tilewright.isa.limits import MAX_BURST_WORDS, MAX_ROWS
from tilewright.isa.machine import PARAMETER_BYTES, TABLE_BYTES, TABLE_SLOTS, TILE_BYTES, Machine

__all__ = ["ERASED_ALWAYS", "ERASED_ON_REQUEST", "ERASING_EXTRA_CYCLES", "erasing_commands", "erasing_cycles"]

ERASED_ON_REQUEST, ERASED_ALWAYS = 1, 2
"""Values of ``Machine.erasure`` other than 0, which is never."""

ERASING_EXTRA_CYCLES = 64
"""An upper bound of the cycles beside those of the words: of the commands, of pipelines, and of two resets."""


def _loaded(machine: Machine) -> dict[str, int]:
    """Return the bytes that each variant of `ldw` reaches, of those that the machine has."""
    words = machine.weight_words * machine.clusters * TILE_BYTES
    loaded = {"main": words, "ninths": words // 8, "parameters": PARAMETER_BYTES * machine.parameter_channels,
              "table": TABLE_SLOTS * TABLE_BYTES}
    return {variant: size for variant, size in loaded.items() if lacks(machine, "ldw", variant) is None}


def erasing_commands(machine: Machine) -> list[EncodedCommand]:
    """Return commands that write every byte of every buffer, for a load unit whose bytes are all zero."""
    row = gcd(machine.activation_bytes, machine.result_bytes)
    while machine.activation_bytes // row > MAX_ROWS or machine.result_bytes // row > MAX_ROWS or row > 1 << 15:
        row = row * 2 if row <= 1 << 14 else row // 2
    commands = [command("lda", "set_row", chunk_bytes=row, chunks=1), command("lda", "set_step", row_step=row),
                command("lda", "linear", rows=machine.activation_bytes // row),
                command("lda", "residual", rows=machine.result_bytes // row)]
    for variant, size in _loaded(machine).items():
        words = size // machine.bus_bytes
        most = 1 << (MAX_BURST_WORDS.bit_length() - 1)
        commands += [command("ldw", variant, base=base, words=min(most, words - base))
                     for base in range(0, words, most)]
    return commands


def erasing_cycles(machine: Machine) -> int:
    """Return an upper bound of the cycles in which all buffers are erased, behind the stop."""
    words = (machine.activation_bytes // machine.written_bytes
             + (machine.result_bytes + sum(_loaded(machine).values())) // machine.bus_bytes)
    return words + ERASING_EXTRA_CYCLES
