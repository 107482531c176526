"""The one decoder of instructions that a core offloads on CV-X-IF, whichever version of the interface it speaks."""

from amaranth import Module, Signal, Value
from amaranth.lib import data

from tilewright.isa.encoding import CUSTOM_0
from tilewright.isa.machine import Machine
from tilewright.rtl.port.dispatcher import legal
from tilewright.rtl.stream.commands import Command, is_command, views

__all__ = ["Offloaded", "aborts", "erases", "notifies"]


class Offloaded:
    """An instruction word on offer, decoded: signals that follow it within the cycle.

    Parameters
    ----------
    m : Module
        Gets the logic.
    instr, rs1, rs2 : Value
        The word and the values of its source registers, 32 bits each.
    machine : Machine
        What it lacks is not accepted.
    accept : Signal
        Becomes high if it is a legal row of `isa.encoding` with rd = x0, or a fence with any rd.

    Attributes
    ----------
    command : Signal of Command
    fence, aborts, waits_for_all : Signal
        It is a fence, whatever its operands; an abort; a fence that waits for all before it.
    """

    def __init__(self, m: Module, instr: Value, rs1: Value, rs2: Value, machine: Machine, accept: Signal) -> None:
        self.command = command = Signal(Command, name="offered")
        self.fence = Signal(name="fence")
        self.aborts = Signal(name="aborts")
        self.waits_for_all = Signal(name="waits_for_all")
        m.d.comb += [
            command.funct3.eq(instr[12:15]),
            command.variant.eq(instr[29:32]),
            command.flags.eq(instr[25:29]),
            command.rs1.eq(rs1),
            command.rs2.eq(rs2),
            self.fence.eq(is_command(command, "sta", "fence")),
            self.aborts.eq(aborts(command)),
            self.waits_for_all.eq(self.fence & ~self.aborts & ~notifies(command)),
            accept.eq((instr[0:7] == CUSTOM_0) & ((instr[7:12] == 0) | self.fence)
                      & legal(instr[12:15], instr[25:32], machine)),
        ]


def aborts(command: data.View) -> Value:
    """Return a value that is high if ``command`` is a fence with ``abort``."""
    return is_command(command, "sta", "fence") & views(command, "sta", "fence")[0].abort


def erases(command: data.View) -> Value:
    """Return a value that is high if the fence ``command`` has ``erase``."""
    return views(command, "sta", "fence")[0].erase


def notifies(command: data.View) -> Value:
    """Return a value that is high if the fence ``command`` has ``notify``."""
    return views(command, "sta", "fence")[0].notify
