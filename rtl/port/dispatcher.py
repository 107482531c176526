"""The command port: each command goes to its unit's queue, and a fence waits until all units are idle."""

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.isa.counts import COUNTS, ROW_COMMANDS, long_row_bit
from tilewright.isa.encoding import Variant
from tilewright.isa.lacking import variants_of
from tilewright.isa.machine import Machine
from tilewright.rtl.stream.commands import Command, CommandQueue, codes_of, is_command, views

__all__ = ["QUEUED_UNITS", "Dispatcher", "belongs_to", "counts_zero", "legal"]

QUEUED_UNITS = ("load", "mac", "post", "store")


def legal(funct3: Value, funct7: Value, machine: Machine) -> Value:
    """Return a value that is high if ``machine`` has such a variant and the variant all of these flags.

    Parameters
    ----------
    funct3, funct7 : Value
        Fields of the instruction word, 3 and 7 bits.
    machine : Machine
    """
    rows = [(funct3 == instruction.funct3) & funct7.matches(_funct7_pattern(variant))
            for instruction, variant in variants_of(machine)]
    return Cat(rows).any()


def _funct7_pattern(variant: Variant) -> str:
    flags = "".join("-" if flag is not None else "0" for flag in reversed(variant.flags))
    return f"{variant.code:03b}{flags}"


def belongs_to(command: Command, unit: str, machine: Machine) -> Value:
    """Return a value that is high if ``unit`` of `isa.encoding.UNITS` takes ``command``, which ``machine`` has.

    Where a unit has all variants of an instruction, the variant is not asked for: this comes before the queues.
    """
    own = codes_of(unit, machine)
    others = {instruction.funct3 for instruction, variant in variants_of(machine) if variant.unit != unit}
    patterns = {f"{funct3:03b}" + (f"{variant:03b}" if funct3 in others else "---") for funct3, variant in own}
    return Cat(command.variant, command.funct3).matches(*sorted(patterns))


def counts_zero(command: Command, machine: Machine) -> Value:
    """Return a value that is high if one of the counts of ``command`` is zero, or its row longer than any buffer."""
    zeros = [is_command(command, *name) & _row_is_long(command, *name, long_row_bit(machine)) for name in ROW_COMMANDS]
    for instruction, variant in variants_of(machine):
        operands = dict.fromkeys(COUNTS.get((instruction.mnemonic, variant.name), ()))
        rs1, rs2 = views(command, instruction.mnemonic, variant.name) if operands else (None, None)
        for name in operands:
            value = getattr(rs1 if name in {field.name for field in variant.rs1} else rs2, name)
            zeros.append(is_command(command, instruction.mnemonic, variant.name) & (value == 0))
    return Cat(zeros).any()


def _row_is_long(command: Command, mnemonic: str, variant: str, least: int) -> Value:
    """Return a value that is high if set bits of both counts have places that add up to ``least`` or more."""
    row = views(command, mnemonic, variant)[0]
    return Cat(bit & row.chunk_bytes[max(least - place, 0):].any() for place, bit in enumerate(row.chunks)).any()


class Dispatcher(wiring.Component):
    """Sort commands into one queue per unit; the fence is taken when nothing is left to do.

    One command per cycle while the queues have room; a full queue holds up everything behind it. Adapters
    pass only legal commands: others would go to any unit, or nowhere. The fence is taken ``QUIET_CYCLES`` cycles after
    the last activity, because it takes a command some cycles from its queue to its unit's ``busy``. An
    abort, that is a fence with ``abort``, waits for nothing, nor does one with ``notify``.

    Parameters
    ----------
    machine
        Its ``queue_depth``, and the units that it leaves out.

    Members
    -------
    commands : ``In(stream.Signature(Command))``
        The command port.
    load, mac, post, store : ``Out(stream.Signature(Command))``
        To the units.
    busy : ``In(1)``
        A unit works, or memory has yet to acknowledge a write.
    drop : ``In(1)``
        After a fault: commands are taken and forgotten, but for `sta.status`, fences and aborts.
    hold : ``In(1)``
        While units stop and are reset: none of those is taken.
    dead : ``In(1)``
        Every command is taken and forgotten.
    abort_taken, erase_taken : ``Out(1)``
        An abort is taken in this cycle; one with ``erase``.
    notify_taken, fence_taken : ``Out(1)``
        A fence with ``notify`` is taken in this cycle, or one without.
    idle : ``Out(1)``
        Queues empty and nothing busy, now and for ``QUIET_CYCLES`` cycles.
    taken : ``Out(1)``
        A command is taken in this cycle.
    zero_count : ``Out(1)``, zero_code : ``Out(6)``
        The command taken in the cycle before has a count of zero, or a row that is too long; its funct3 and variant.
    """

    QUIET_CYCLES = 4
    FENCE_CYCLES = QUIET_CYCLES + 1
    """Cycles from the last activity to the end of the fence, with the one in which it is taken."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.depth = machine.queue_depth
        super().__init__({
            "commands": In(stream.Signature(Command)),
            **{unit: Out(stream.Signature(Command)) for unit in QUEUED_UNITS},
            "busy": In(1),
            "drop": In(1),
            "hold": In(1),
            "dead": In(1),
            "abort_taken": Out(1),
            "erase_taken": Out(1),
            "notify_taken": Out(1),
            "fence_taken": Out(1),
            "idle": Out(1),
            "taken": Out(1),
            "zero_count": Out(1),
            "zero_code": Out(6),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        command = self.commands.payload
        free, waiting = [], []
        drops = Signal()
        fence = Signal()
        aborts = Signal()
        notifies = Signal()
        m.d.comb += [
            fence.eq(is_command(command, "sta", "fence")),
            aborts.eq(fence & views(command, "sta", "fence")[0].abort),
            notifies.eq(fence & views(command, "sta", "fence")[0].notify & ~aborts),
            drops.eq(self.dead | (self.drop & ~is_command(command, "sta", "status", "fence"))),
        ]
        for unit in QUEUED_UNITS:
            m.submodules[unit] = queue = CommandQueue(self.depth)
            chosen = Signal(name=f"for_{unit}")
            m.d.comb += [
                chosen.eq(belongs_to(command, unit, self.machine)),
                queue.i.payload.eq(command),
                queue.i.valid.eq(self.commands.valid & chosen & ~drops & ~self.hold),
            ]
            connect(m, queue.o, flipped(getattr(self, unit)))
            free.append(~chosen | queue.i.ready)
            waiting.append(~queue.empty)

        quiet = Signal(range(self.QUIET_CYCLES + 1))
        m.d.comb += [
            self.commands.ready.eq(drops | (~self.hold & Cat(free).all() & (~fence | aborts | notifies
                                                                               | self.idle))),
            self.abort_taken.eq(self.commands.valid & aborts & ~drops & ~self.hold),
            self.erase_taken.eq(self.abort_taken & views(command, "sta", "fence")[0].erase),
            self.taken.eq(self.commands.valid & self.commands.ready),
            self.notify_taken.eq(self.taken & notifies),
            self.fence_taken.eq(self.taken & fence & ~notifies),
        ]
        m.d.sync += [
            self.zero_count.eq(self.taken & ~drops & counts_zero(command, self.machine)),
            self.zero_code.eq(Cat(command.variant, command.funct3)),
        ]
        # Not ``taken``: what is offered and not taken is held, or waits for a queue that is full, and a path through
        # the decoder, the queues and ``ready`` would end here.
        with m.If(Cat(waiting).any() | self.busy | (self.commands.valid & ~fence)):
            m.d.sync += [quiet.eq(0), self.idle.eq(0)]
        with m.Elif(~self.idle):
            m.d.sync += [quiet.eq(quiet + 1), self.idle.eq(quiet == self.QUIET_CYCLES - 1)]
        return m
