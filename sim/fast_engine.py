"""The fast engine: a program's values by NumPy and its time by the cycle model, in one pass over its commands.

Results are those of the RTL bit for bit; cycles are a prediction, held to it by tests/sim/test_fast_vs_rtl.py.
"""

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.isa.memory import AddressWindow, Fault
from tilewright.isa.program import Call, Program
from tilewright.sim.run_result import RunResult, StopReason
from tilewright.sim.timing.model import CycleModel
from tilewright.sim.values.core_calls import CoreKernel, execute_call, instructions_of, no_kernel
from tilewright.sim.values.executor import Executor
from tilewright.sim.values.main_memory import MainMemory, WindowError
from tilewright.sim.values.operand_samples import OperandSampler

__all__ = ["OPERAND_REGISTERS", "HostRegisters", "run_fast"]

_START_CYCLES = 40
"""Cycles from reset to the first command's operands: start-up code, and main saving 0 to 13 registers."""

_END_CYCLES = 10
"""Cycles from the last fence to the end of the program, registers restored."""

_START_INSTRUCTIONS = 20
"""Instructions of both."""

OPERAND_REGISTERS = 14
"""Registers left for operands: of the 31, some hold loop counters, addresses and the stack."""


def run_fast(
    machine: Machine,
    program: Program,
    images: Iterable[tuple[int, bytes]] = (),
    windows: Sequence[AddressWindow] = (),
    dumps: Iterable[tuple[int, int]] = (),
    timing: MemoryTiming | None = None,
    memory_bytes: int = 1 << 20,
    core: CoreKernel = no_kernel,
) -> RunResult:
    """Run ``program`` on ``machine``.

    Parameters
    ----------
    images
        Pairs of address and content, put into memory first.
    windows
        What the coprocessor may reach.
    dumps
        Pairs of address and size in bytes, read at the end.
    timing
        Of main memory; ``MemoryTiming.default(machine)`` if None.
    memory_bytes
        Size of main memory.
    core
        Computes what the host core does itself, and says how long it takes.

    Raises
    ------
    ExecutionError
        If the program does what no hardware could: waits for what nobody signals, or leaves a buffer.
    ValueError
        If an image, a dump or a window lies outside memory.
    """
    began = time.perf_counter()
    memory = MainMemory(memory_bytes, windows)
    for address, content in images:
        memory.put(address, content)
    run = _Run(machine, program, memory, timing or MemoryTiming.default(machine), core)
    cycles = run.model.run() + _END_CYCLES
    fault = run.fault
    return RunResult(
        cycles=cycles,
        instructions=_START_INSTRUCTIONS + run.instructions,
        stop_reason=StopReason.FAULT if fault else StopReason.EXIT,
        exit_code=0,
        fault=fault,
        dumps=tuple(memory.get(address, size) for address, size in dumps),
        words_read=memory.words_read,
        words_written=run.model.words_written,
        commands=run.commands,
        operands=run.operands.means(len(program.functions)),
        wall_seconds=time.perf_counter() - began,
    )


class _Run:
    """A program on its way through both halves of the engine."""

    def __init__(self, machine: Machine, program: Program, memory: MainMemory, timing: MemoryTiming,
                 core: CoreKernel) -> None:
        self.machine = machine
        self.program = program
        self.memory = memory
        self.timing = timing
        self.core = core
        self.executor = Executor(machine, memory)
        self.operands = OperandSampler(self.executor.state)
        self.commands = 0
        self.instructions = 0
        self.fault: Fault | None = None
        self.model = CycleModel(machine, timing, self._send(), self._store_record)

    def _send(self) -> Iterator[tuple[int, EncodedCommand]]:
        """Yield the commands as the host sends them; each has been executed, and so is known to be possible."""
        host, gap = HostRegisters(), _START_CYCLES
        for function, command in self.program.actions():
            if isinstance(command, Call):
                cycles = execute_call(command, self.memory, self.timing, self.core)
                gap += cycles
                self.instructions += instructions_of(command, cycles)
                continue
            try:
                self.executor.execute(command)
            except WindowError as error:
                self.fault = error.fault
                return
            self.operands.see(function, command)
            instructions = host.instructions(command)
            self.commands += 1
            self.instructions += instructions
            yield gap + instructions, command
            gap = 0

    def _store_record(self, address: int, record: NDArray[np.uint32]) -> None:
        """Replace the zeros that the command has stored: only the model knows what the counters show."""
        self.memory.put(address, record.astype("<u4").tobytes())


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
