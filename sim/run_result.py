"""The result of a run on either engine, and the way in which it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SimulationError
from tilewright.isa.memory import Fault
from tilewright.sim.timing.command_times import CommandTimes
from tilewright.sim.values.operand_samples import OperandToggles

__all__ = ["Events", "RunResult", "StopReason"]


class StopReason(StrEnum):
    """Reason why a run ended, by the names that the RTL simulator prints."""

    EXIT = "exit"
    TRAP = "trap"
    FAULT = "fault"
    BUS_ERROR = "bus error"
    NO_PROGRESS = "no progress"
    CYCLE_LIMIT = "cycle limit"


@dataclass(frozen=True, slots=True)
class Events:
    """Events at the core: settings of its timer, external interrupts, debug halts."""

    timers: int = 0
    externals: int = 0
    debugs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Everything that a run has shown; the fast engine predicts cycles, and leaves the fields of the core empty.

    Attributes
    ----------
    cycles, instructions : int
        From the release of reset to the end; instructions the host core retired.
    stop_reason : StopReason
        On the fast engine ``EXIT`` or ``FAULT``.
    exit_code : int
        Return value of ``main``, if any: after a fault its code, if the program checks the results of its fences.
    fault : Fault or None
        Of the coprocessor. On the fast engine nothing behind it has been done, and cycles end with it.
    pc : int
        Instruction in the core's EX stage at the end; of a trap, the instruction that trapped.
    address : int
        Of a bus error.
    trap_cause : int
        ``mcause`` of a trap.
    dumps : tuple of bytes
        Memory at the end, as asked for.
    marks : tuple of (number, cycle)
        Numbers that the program stored to the mark device.
    words_read, words_written : int
        Bus words that the coprocessor moved.
    bursts : (int, int)
        Bursts that it has read and written; counted by the RTL engine only.
    commands : int
        Commands that the host has sent; counted by the fast engine only.
    operands : tuple of OperandToggles
        Statistics of the array's operands in each function of the program; sampled only by the fast engine.
    times : CommandTimes or None
        When each command was sent, begun and ended, as the fast engine predicts; of RTL, `sim.measured_times` says it.
    activity : str
        State of coprocessor, queues and semaphores in the last cycle; empty without a coprocessor.
    toggles : tuple of dict of str to int
        Register bits of each of `sim.verilog.energy_blocks.ENERGY_BLOCKS` that have changed since reset: at each status
        record in turn, and at the end; empty unless they were counted.
    events : Events
        Counted by the RTL engine only.
    sleeps : tuple of (first, end)
        Cycles in which the core slept, its clock not needed, from the first to the one behind the last; shown by the
        RTL engine only.
    notes : ndarray or None
        Of commands, for `sim.measured_times`, shape (n,), uint64; from the RTL engine, if they were asked for.
    output : str
        Text that the program printed.
    wall_seconds : float
        Of the simulation.
    """

    cycles: int
    instructions: int
    stop_reason: StopReason
    exit_code: int
    fault: Fault | None
    dumps: tuple[bytes, ...]
    words_read: int
    words_written: int
    wall_seconds: float
    commands: int = 0
    operands: tuple[OperandToggles, ...] = ()
    times: CommandTimes | None = None
    pc: int = 0
    address: int = 0
    trap_cause: int = 0
    marks: tuple[tuple[int, int], ...] = ()
    bursts: tuple[int, int] = (0, 0)
    activity: str = ""
    toggles: tuple[Mapping[str, int], ...] = ()
    events: Events = Events()
    sleeps: tuple[tuple[int, int], ...] = ()
    notes: NDArray[np.uint64] | None = None
    output: str = ""

    @property
    def cycles_per_second(self) -> float:
        """Speed of the simulation."""
        return self.cycles / self.wall_seconds if self.wall_seconds else 0.0

    @property
    def explanation(self) -> str:
        """One sentence that says how the run ended."""
        where = f"after {self.cycles} cycles"
        details = {
            StopReason.EXIT: f"exited with code {self.exit_code} {where}",
            StopReason.TRAP: f"trapped with cause {self.trap_cause} at pc {self.pc:#010x} {where}",
            StopReason.FAULT: f"was stopped by a fault of the coprocessor, {self.fault}, {where}",
            StopReason.BUS_ERROR:
                f"used address {self.address:#010x}, where there is no memory, at pc {self.pc:#010x} {where}",
            StopReason.NO_PROGRESS: f"hung at pc {self.pc:#010x} {where}; {self.activity or 'the core alone'}",
            StopReason.CYCLE_LIMIT:
                f"did not end {where}, at pc {self.pc:#010x}; {self.activity or 'the core alone'}",
        }
        return f"Program {details[self.stop_reason]}"

    def require_exit(self) -> "RunResult":
        """Return this result if the program has returned 0.

        Raises
        ------
        SimulationError
            If it ended in any other way.
        """
        if self.stop_reason is not StopReason.EXIT or self.exit_code != 0:
            raise SimulationError(f"{self.explanation}.")
        return self
