"""Programs that nobody can mean: legal commands that move as much as they can, or anything at all."""

import random

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.assembler import command as make
from tilewright.isa.counts import COUNTS, long_row_bit
from tilewright.isa.lacking import variants_of
from tilewright.isa.machine import Machine
from tilewright.isa.memory import AddressWindow

QUEUED = 24
"""As many commands as the queues hold."""


def hostile_programs(window: AddressWindow, machine: Machine, rng: random.Random) -> list[list[EncodedCommand]]:
    """Return programs that run for as long as any can, on addresses of ``window``; one is refused."""
    places = long_row_bit(machine)
    longest = {"chunk_bytes": min((1 << places) - 1, 65535), "chunks": (1 << max(places - 15, 1)) - 1}
    load = [make("lda", "set_row", **longest, memory_chunk_step=0),
            make("lda", "set_step", memory_row_step=0, row_step=0)]
    store = [make("sta", "set_row", **longest), make("sta", "set_target", target_chunk_step=0, target_row_step=0)]
    refused = make("lda", "set_row", chunk_bytes=65535, chunks=4095, memory_chunk_step=0)
    one_load = make("lda", "linear", address=window.base, base=0, rows=1023)
    one_store = make("sta", "memory", base=0, address=window.base, rows=1023)
    short = [make("lda", "set_row", chunk_bytes=1, chunks=4095, memory_chunk_step=4),
             make("sta", "set_row", chunk_bytes=1, chunks=4095)]
    return [
        [*load, *[one_load] * QUEUED],
        [*store, *[one_store] * QUEUED],
        [*load, *store, *[one_load, one_store] * QUEUED],
        [*short, *[one_load, one_store] * QUEUED],
        [refused, *[one_load] * QUEUED],
        [_any(window, machine, rng) for _ in range(2 * QUEUED)],
    ]


def _any(window: AddressWindow, machine: Machine, rng: random.Random) -> EncodedCommand:
    """Return any command, with counts that are not zero, and addresses in the window."""
    instruction, variant = rng.choice([(i, v) for i, v in variants_of(machine) if v.unit != "host"])
    counts = COUNTS.get((instruction.mnemonic, variant.name), ())
    fields = {}
    for field in variant.fields:
        fields[field.name] = rng.choice((field.range[0], field.range[-1], rng.choice(field.range)))
        if field.name in counts:
            fields[field.name] = rng.choice((1, field.range[-1]))
        if field.name == "address":
            fields[field.name] = window.base
    flags = [flag.name for flag in variant.flags if flag is not None and flag.name.startswith("signal")]
    return make(instruction.mnemonic, variant.name, [name for name in flags if rng.random() < 0.3], **fields)
