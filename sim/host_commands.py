"""The host core as both parts of the fast engine see it: which command it sends when."""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.program import Call, Program
from tilewright.sim.timing.command_times import CallTime, CommandTimes
from tilewright.sim.values.core_calls import instructions_of

__all__ = ["END_CYCLES", "OPERAND_REGISTERS", "START_INSTRUCTIONS", "HostCommands", "HostRegisters"]

START_CYCLES = 40
"""Cycles from reset to the first command's operands: start-up code, and main saving 0 to 13 registers."""

END_CYCLES = 10
"""Cycles from the last fence to the end of the program, registers restored."""

START_INSTRUCTIONS = 20
"""Instructions of both."""

OPERAND_REGISTERS = 14
"""Registers left for operands: of the 31, some hold loop counters, addresses and the stack."""


class HostCommands:
    """The commands of a program in the order and at the pace in which the host core sends them.

    Parameters
    ----------
    program : Program
    call : callable
        Computes what the host core does itself, or not, and returns the cycles that it takes.
    execute : callable
        Called with the index of the function and each command before it is sent; False ends the program.

    Attributes
    ----------
    commands, instructions : int
        Sent, and retired by the host core, so far.
    """

    def __init__(self, program: Program, call: Callable[[Call], int],
                 execute: Callable[[int, EncodedCommand], bool]) -> None:
        self._program, self._call, self._execute = program, call, execute
        self.commands = 0
        self.instructions = START_INSTRUCTIONS
        self._functions: list[int] = []             # of each command sent
        self._calls: list[CallTime] = []            # as if the core had begun with them all in cycle 0

    def send(self) -> Iterator[tuple[int, EncodedCommand]]:
        """Yield the host's cycles before each command, and the command."""
        host, gap = HostRegisters(), START_CYCLES
        for function, command in self._program.actions():
            if isinstance(command, Call):
                cycles = self._call(command)
                self._calls.append(CallTime(function, command.kernel, gap, gap + cycles, self.commands))
                gap += cycles
                self.instructions += instructions_of(command, cycles)
                continue
            if not self._execute(function, command):
                return
            instructions = host.instructions(command)
            self.commands += 1
            self.instructions += instructions
            self._functions.append(function)
            yield gap + instructions, command
            gap = 0

    def complete(self, times: CommandTimes) -> CommandTimes:
        """Complete ``times`` with the facts that only the core knows: functions of commands, and its own work."""
        times.functions = self._functions
        for each in self._calls:
            # It begins when the command before has left the core.
            last = each.before - 1
            left = times.sent[last] if last >= 0 else 0
            times.calls.append(CallTime(each.function, each.kernel, left + each.begin, left + each.end, each.before))
        return times


class HostRegisters:
    """Constants that the host core keeps in registers, from which follow the instructions that send a command.

    The C compiler keeps constants as long as it can; here the most recent ``OPERAND_REGISTERS`` of them. Another one
    costs one instruction or two, as its size demands, and the core retires one such instruction per cycle. It is an
    estimate, since the C compiler chooses them.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[int, None] = OrderedDict.fromkeys([0])

    def instructions(self, command: EncodedCommand) -> int:
        """Return the instructions that send ``command``."""
        count = 1
        for value in (command.rs1, command.rs2):
            if value in self._kept:
                self._kept.move_to_end(value)
                continue
            small = value < 1 << 11 or value >= (1 << 32) - (1 << 11)
            count += 1 if small or value % (1 << 12) == 0 else 2     # addi or lui; both
            self._kept[value] = None
            if len(self._kept) > OPERAND_REGISTERS:
                self._kept.popitem(last=False)
        return count
