"""Calls of the host core in the fast engine's main memory: operands, result, predicted cycles."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewright.isa.machine import MemoryTiming
from tilewright.isa.memory import MAIN_BASE
from tilewright.isa.program import Call, Operand
from tilewright.sim.values.executor import ExecutionError
from tilewright.sim.values.main_memory import MainMemory

__all__ = ["CoreKernel", "execute_call", "instructions_of", "no_kernel", "view"]


def instructions_of(call: Call, cycles: int) -> int:
    """Estimate the instructions in ``cycles`` of ``call``: floats are computed in software, the rest waits for memory.

    Measured in RTL, main memory 20 cycles away: 1.75 cycles an instruction for float32 and 6 for int8 there, 1.5 and 2
    with copies in the core's own memory.
    """
    floats = any(operand.dtype == "float32" for operand in call.operands)
    if call.staged:
        return cycles * 2 // 3 if floats else cycles // 2
    return cycles * 4 // 7 if floats else cycles // 6


class CoreKernel(Protocol):
    """Computes a call; who runs a program brings it, because kernels are the compiler's."""

    def __call__(self, call: Call, arrays: Sequence[np.ndarray | None],
                 memory: MemoryTiming) -> tuple[np.ndarray, int]:
        """Return the result of ``call`` on ``arrays``, of its operands' dims and types, and its cycles."""


def no_kernel(call: Call, arrays: Sequence[np.ndarray | None], memory: MemoryTiming) -> tuple[np.ndarray, int]:
    """Refuse ``call``: for programs in which the host core only sends commands."""
    del arrays, memory
    raise ExecutionError(f"Program has a call of {call}, and no kernels were given to compute it")


def execute_call(call: Call, memory: MainMemory, timing: MemoryTiming, kernel: CoreKernel) -> int:
    """Compute ``call`` in ``memory`` and return the cycles that the host core takes for it.

    Raises
    ------
    ExecutionError
        If it touches what is outside memory, or makes no sense.
    """
    # Copies: what a kernel returns may be a view of what it is given.
    arrays = [view(memory, operand, call).copy() if operand.present else None for operand in call.inputs]
    try:
        result, cycles = kernel(call, arrays, timing)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ExecutionError(f"Call of {call} must make sense, and does not: {error}") from error
    view(memory, call.output, call)[...] = result
    return cycles


def view(memory: MainMemory, operand: Operand, call: Call) -> np.ndarray:
    """Return an operand as it lies in memory: a view."""
    first = operand.address - MAIN_BASE
    if first < 0 or first + operand.span_bytes > memory.bytes.size:
        raise ExecutionError(f"Call of {call} must stay inside the {memory.bytes.size} bytes of main memory, not touch "
                             f"{operand.address:#x}..{operand.address + operand.span_bytes:#x}")
    elements = memory.bytes[first:first + operand.span_bytes].view(operand.dtype)
    # A step of an axis of one does not matter.
    steps = tuple(elements.itemsize * stride if size > 1 else 0
                  for size, stride in zip(operand.dims, operand.strides, strict=True))
    return as_strided(elements, operand.dims, steps)
