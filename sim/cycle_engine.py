"""Cycles without values: a program's time by the cycle model alone, which does not depend on values."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.isa.program import Call, Program
from tilewright.sim.host_commands import END_CYCLES, HostCommands
from tilewright.sim.timing.command_times import CommandTimes
from tilewright.sim.timing.model import CycleModel

__all__ = ["PredictedRun", "predict_run"]


@dataclass(frozen=True, slots=True)
class PredictedRun:
    """Time of a program.

    Attributes
    ----------
    cycles, instructions, commands : int
        From reset to the end; instructions that the host core retires; commands that it sends.
    records : dict of int to bytes
        Status records by address, as ``sta.status`` stores them.
    wall_seconds : float
    times : CommandTimes
        Of each command.
    """

    cycles: int
    instructions: int
    commands: int
    records: dict[int, bytes]
    wall_seconds: float
    times: CommandTimes


def predict_run(machine: Machine, program: Program, timing: MemoryTiming,
                call_cycles: Callable[[Call, MemoryTiming], int],
                images: Sequence[tuple[int, bytes]] = ()) -> PredictedRun:
    """Return how long ``program`` takes on ``machine``: the cycles that `sim.fast_engine.run_fast` gives.

    ``call_cycles`` says how long the host core takes for what it computes itself. Nothing is computed, so that a
    command which no hardware could execute is not noticed, unless it waits for ever. ``images``, contents of main
    memory by their addresses, hold coded weights: how long these take depends on them.

    Raises
    ------
    ExecutionError
        If the program waits for what nobody signals.
    """
    began = time.perf_counter()
    records: dict[int, bytes] = {}

    def store(address: int, record: NDArray[np.uint32]) -> None:
        records[address] = record.astype("<u4").tobytes()

    host = HostCommands(program, lambda call: call_cycles(call, timing), lambda _function, _command: True)
    model = CycleModel(machine, timing, host.send(), store, partial(_content, images))
    cycles = model.run() + END_CYCLES
    return PredictedRun(cycles, host.instructions, host.commands, records, time.perf_counter() - began,
                        host.complete(model.times))


def _content(images: Sequence[tuple[int, bytes]], address: int, size: int) -> bytes:
    """Return ``size`` bytes of the image that has them."""
    return next((data[address - first:address - first + size] for first, data in images
                 if first <= address <= address + size <= first + len(data)), bytes(size))
