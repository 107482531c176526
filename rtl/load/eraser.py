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
    """Send `isa.erasure.erasing_commands`, and wait until the load unit has carried them out.

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
    commands : ``Out(stream.Signature(Command))``
        To the load unit, in place of others.
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
            "commands": Out(stream.Signature(Command)),
            "done": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        steps = erasing_commands(self.machine)
        step, settled = Signal(range(len(steps) + 1)), Signal(range(self.SETTLES_CYCLES))
        with m.Switch(step):
            for number, command in enumerate(steps):
                with m.Case(number):
                    m.d.comb += self.commands.valid.eq(self.erase)
                    m.d.comb += [getattr(self.commands.payload, name).eq(bits) for name, bits in _members(command)]
            with m.Default():
                m.d.comb += self.done.eq(settled == self.SETTLES_CYCLES - 1)
        with m.If(~self.erase):
            m.d.sync += step.eq(0)
        with m.Elif(self.commands.valid & self.commands.ready):
            m.d.sync += step.eq(step + 1)
        with m.If(self.busy | self.commands.valid | ~self.erase):
            m.d.sync += settled.eq(0)
        with m.Elif(~self.done):
            m.d.sync += settled.eq(settled + 1)
        return m


def _members(command: EncodedCommand) -> tuple[tuple[str, int], ...]:
    """Return the members of a command as hardware carries it, without flags."""
    return (("funct3", command.funct3), ("variant", command.funct7 >> 4), ("rs1", command.rs1), ("rs2", command.rs2))
