"""Commands as hardware sees them: one layout, views of the operands by field name, and a queue.

Everything is made from `isa.encoding`; nobody writes a bit position down a second time.
"""

from collections.abc import Sequence

from amaranth import Module, Value, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from tilewright.isa.encoding import KNOWN, UNITS, EncodingError, Field
from tilewright.isa.lacking import variants_of
from tilewright.isa.machine import DEFAULT_MACHINE, PRESETS, Machine
from tilewright.rtl.stream.queues import dequeue, enqueue

__all__ = ["FUNCT3", "VARIANT", "Command", "CommandQueue", "codes_of", "flag", "is_command", "operands", "views"]

FUNCT3 = {instruction.mnemonic: instruction.funct3 for instruction in KNOWN.values()}
"""funct3 by mnemonic."""

VARIANT = {(instruction.mnemonic, variant.name): variant.code
           for instruction in KNOWN.values() for variant in instruction.variants}
"""The variant's code, the upper three bits of funct7, by mnemonic and name."""


class Command(data.Struct):
    """An instruction without its registers: its mnemonic and variant, semaphore flags, and operand values."""

    funct3: 3
    variant: 3
    flags: 4
    rs1: 32
    rs2: 32


def operands(mnemonic: str, variant: str) -> tuple[data.StructLayout, data.StructLayout]:
    """Return the layouts of rs1 and rs2, 32 bits each, members named like the operand fields.

    Examples
    --------
    >>> rs1, rs2 = operands("lda", "linear")
    >>> rs2(command.rs2).rows
    """
    chosen = KNOWN[mnemonic].variant(variant)
    return _operand(chosen.rs1), _operand(chosen.rs2)


def views(command: Command, mnemonic: str, variant: str) -> tuple[data.View, data.View]:
    """Return rs1 and rs2 of ``command`` by the names of the variant's operand fields."""
    rs1, rs2 = operands(mnemonic, variant)
    return rs1(command.rs1), rs2(command.rs2)


def flag(mnemonic: str, variant: str, name: str) -> int:
    """Return the index in ``Command.flags`` of the flag called ``name``, as in ``wait_act_ready``."""
    for index, each in enumerate(KNOWN[mnemonic].variant(variant).flags):
        if each is not None and each.name == name:
            return index
    raise EncodingError(f"{mnemonic}.{variant} must have the flag {name!r}, and lacks it")


def is_command(command: Command, mnemonic: str, *variants: str) -> Value:
    """Return a value that is high if ``command`` is the instruction, in one of ``variants`` where given."""
    matches = command.funct3 == FUNCT3[mnemonic]
    if not variants:
        return matches
    return matches & command.variant.matches(*(VARIANT[mnemonic, variant] for variant in variants))


def codes_of(unit: str, machine: Machine = PRESETS[DEFAULT_MACHINE]) -> list[tuple[int, int]]:
    """Return the pairs (funct3, variant) that ``unit`` of `isa.encoding.UNITS` takes, if ``machine`` has them."""
    if unit not in UNITS:
        raise EncodingError(f"Unit must be one of {', '.join(UNITS)}, not {unit!r}")
    return [(instruction.funct3, variant.code) for instruction, variant in variants_of(machine)
            if variant.unit == unit]


class CommandQueue(wiring.Component):
    """A queue of commands; one in and one out per cycle, the output comes from registers.

    A command is at ``o`` two cycles after an empty queue has taken it.

    Parameters
    ----------
    depth
        Commands held.

    Members
    -------
    i : ``In(stream.Signature(Command))``
    o : ``Out(stream.Signature(Command))``
    empty : ``Out(1)``
        No command is held.
    """

    LATENCY = 2

    def __init__(self, depth: int) -> None:
        self.depth = depth
        super().__init__({
            "i": In(stream.Signature(Command)),
            "o": Out(stream.Signature(Command)),
            "empty": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=Command.as_shape().size, depth=self.depth)
        enqueue(m, self.i, fifo)
        dequeue(m, fifo, self.o)
        m.d.comb += self.empty.eq(fifo.level == 0)
        return m


def _operand(fields: Sequence[Field]) -> data.StructLayout:
    members = {field.name: signed(field.width) if field.signed else unsigned(field.width) for field in fields}
    rest = 32 - sum(field.width for field in fields)
    return data.StructLayout(members | ({"_unused": rest} if rest else {}))
