"""Run a call of the host core in NumPy, and estimate how long the core would take, for the fast engine."""

from collections.abc import Sequence

import numpy as np

from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.compiler.kernels.staging import call_cycles
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["run_call", "run_on_core"]


def run_call(call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
    """Return the result of ``call`` on ``arrays``, which have the dims and types of its operands.

    Raises
    ------
    ValueError
        If the result has other dims or another type than the output of ``call``: it makes no sense.
    """
    kernel = CORE_KERNELS[call.kernel]
    with np.errstate(all="ignore"):
        result = np.asarray(kernel.compute(call, arrays))
    if result.shape != call.output.dims or result.dtype != call.output.dtype:
        raise ValueError(f"Call of {call.kernel} must give {call.output.dtype} of {call.output.dims}, not "
                         f"{result.dtype} of {result.shape}")
    return result


def run_on_core(call: Call, arrays: Sequence[np.ndarray | None], memory: MemoryTiming) -> tuple[np.ndarray, int]:
    """Return the same, and the cycles predicted for it with main memory of timing ``memory``."""
    return run_call(call, arrays), call_cycles(call, memory)
