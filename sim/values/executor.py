"""Run commands in program order on the coprocessor's state and on main memory: the semantics of isa/semantics.

A breach of the windows leaves as :exc:`WindowError`: the coprocessor stops there. What no hardware could do leaves as
:exc:`CommandFailedError`. Any other exception is a defect here, and is left as it is.
"""

from collections.abc import Iterable

from tilewright.errors import SimulationError
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.machine import Machine
from tilewright.isa.semantics.command_errors import CommandError
from tilewright.isa.semantics.coprocessor_state import CoprocessorState
from tilewright.isa.semantics.execute_command import execute_command
from tilewright.sim.values.main_memory import MainMemory

__all__ = ["CommandFailedError", "ExecutionError", "Executor"]


class ExecutionError(SimulationError):
    """A program cannot be executed: it refers to something outside the machine, or its inputs are missing."""


class CommandFailedError(ExecutionError):
    """A command cannot be executed; ``reason`` explains it."""

    def __init__(self, command: EncodedCommand, reason: CommandError) -> None:
        super().__init__(f"Command {command} {reason}")
        self.command = command
        self.reason = reason


class Executor:
    """The coprocessor's state and main memory, on which commands are executed one after the other.

    The record that ``sta.status`` stores is that of ``state.counters``, zeros unless somebody supplies another.
    """

    def __init__(self, machine: Machine, memory: MainMemory) -> None:
        self.state = CoprocessorState(machine)
        self.memory = memory

    def run(self, commands: Iterable[EncodedCommand]) -> None:
        """Execute ``commands`` in order."""
        for command in commands:
            self.execute(command)

    def execute(self, command: EncodedCommand) -> None:
        """Execute one command.

        Raises
        ------
        CommandFailedError
            If it waits for a semaphore at zero, needs sums or settings that are not there, or leaves a buffer.
        WindowError
            If it reaches memory outside the windows.
        """
        try:
            execute_command(self.state, self.memory, command)
        except CommandError as reason:
            raise CommandFailedError(command, reason) from reason
