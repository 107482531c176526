"""Commands that make the load unit erase every buffer: what follows an abort where tenants must not see each other."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.erasure import erasing_commands
from tilewright.isa.machine import Machine
from tilewright.rtl.stream.commands import Command

__all__ = ["Eraser"]


class Eraser(wiring.Component):
    """Pass commands on to the load unit, or send `isa.erasure.erasing_commands` and wait until it has carried them out.

    Meanwhile ``erases`` of the load unit is high: whatever the command, it writes zeros instead of reading memory.

    Parameters
    ----------
    machine : Machine

    Members
    -------
    erase : ``In(1)``
        High: erase, and go on; low: the next erasure begins with the first command.
    busy : ``In(1)``
        The load unit's.
    i, o : ``stream.Signature(Command)``
        From the dispatcher, and to the load unit. Meanwhile none is taken from the dispatcher.
    done : ``Out(1)``
        All is erased.
    """

    SETTLES_CYCLES = 8
    """From the end of the load's last command until no buffer has a write in its registers; no fewer."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        super().__init__({
            "erase": In(1),
            "busy": In(1),
            "i": In(stream.Signature(Command)),
            "o": Out(stream.Signature(Command)),
            "done": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        steps = erasing_commands(self.machine)
        step = Signal(range(len(steps) + 1))
        settled = Signal(range(self.SETTLES_CYCLES))
        with m.If(~self.erase):
            m.d.comb += [
                self.o.valid.eq(self.i.valid),
                self.o.payload.eq(self.i.payload),
                self.i.ready.eq(self.o.ready),
            ]
            m.d.sync += [step.eq(0), settled.eq(0)]
        with m.Else():
            with m.Switch(step):
                for number, each in enumerate(steps):
                    with m.Case(number):
                        m.d.comb += self.o.valid.eq(1)
                        m.d.comb += [getattr(self.o.payload, name).eq(bits) for name, bits in _members(each)]
                with m.Default():
                    m.d.comb += self.done.eq(settled == self.SETTLES_CYCLES - 1)
            with m.If(self.o.valid & self.o.ready):
                m.d.sync += step.eq(step + 1)
            with m.If(self.busy | self.o.valid):
                m.d.sync += settled.eq(0)
            with m.Elif(~self.done):
                m.d.sync += settled.eq(settled + 1)
        return m


def _members(command: EncodedCommand) -> tuple[tuple[str, int], ...]:
    """Return the members of a command as hardware carries it, without flags."""
    return (("funct3", command.funct3), ("variant", command.funct7 >> 4), ("rs1", command.rs1), ("rs2", command.rs2))
