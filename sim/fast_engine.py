"""The fast engine: a program's values by NumPy and its time by the cycle model, in one pass over its commands.

Results are those of the RTL bit for bit; cycles are a prediction, held to it by tests/sim/test_fast_vs_rtl.py.
"""

import time
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.counters import ZERO_COUNT
from tilewright.isa.counts import refused_count
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.isa.memory import AddressWindow, Fault
from tilewright.isa.program import Call, Program
from tilewright.sim.host_commands import END_CYCLES, HostCommands
from tilewright.sim.run_result import RunResult, StopReason
from tilewright.sim.timing.model import CycleModel
from tilewright.sim.values.core_calls import CoreKernel, execute_call, no_kernel
from tilewright.sim.values.executor import Executor
from tilewright.sim.values.main_memory import MainMemory, WindowError
from tilewright.sim.values.operand_samples import OperandSampler

__all__ = ["run_fast"]

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
        Windows that the coprocessor may access.
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
    cycles = run.model.run() + END_CYCLES
    fault = run.fault
    return RunResult(
        cycles=cycles,
        instructions=run.host.instructions,
        stop_reason=StopReason.FAULT if fault else StopReason.EXIT,
        exit_code=fault.code if fault else 0,
        fault=fault,
        dumps=tuple(memory.get(address, size) for address, size in dumps),
        words_read=memory.words_read,
        words_written=run.model.words_written,
        commands=run.host.commands,
        times=run.host.complete(run.model.times),
        operands=run.operands.means(len(program.functions)),
        wall_seconds=time.perf_counter() - began,
    )


class _Run:
    """A program on its way through both halves of the engine."""

    def __init__(self, machine: Machine, program: Program, memory: MainMemory, timing: MemoryTiming,
                 core: CoreKernel) -> None:
        self.memory = memory
        self.timing = timing
        self.core = core
        self.executor = Executor(machine, memory)
        self.operands = OperandSampler(self.executor.state)
        self.fault: Fault | None = None
        self.host = HostCommands(program, self._call, self._execute)
        self.model = CycleModel(machine, timing, self.host.send(), self._store_record, memory.get)

    def _call(self, call: Call) -> int:
        return execute_call(call, self.memory, self.timing, self.core)

    def _execute(self, function: int, command: EncodedCommand) -> bool:
        """Execute a command before it is sent, so that it is known to be possible."""
        if (code := refused_count(command, self.executor.state.machine)) is not None:
            self.fault = Fault(ZERO_COUNT, code)
            return False
        try:
            self.executor.execute(command)
        except WindowError as error:
            self.fault = error.fault
            return False
        self.operands.see(function, command)
        return True

    def _store_record(self, address: int, record: NDArray[np.uint32]) -> None:
        """Replace the zeros that the command has stored: only the model knows what the counters show."""
        self.memory.put(address, record.astype("<u4").tobytes())
