"""Copies of a call's operands in the host core's own memory, where an access takes only one cycle.

A copy moves words, eight at a time, of which the core has two under way; a kernel's own accesses come one by one, and
those of int8 tensors are a byte each. So copying pays wherever elements are small, or are read more than once.
"""

from dataclasses import dataclass, replace

from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import DTYPES, Call, Operand

__all__ = ["STAGE_BYTES", "Stage", "bytes_read", "call_cycles", "can_be_staged", "stage_of", "staged_if_quicker"]

STAGE_BYTES = 512 * 1024
"""Of the core's memory for copies, at most; the rest is left to code, tables and stack."""

_ALIGNMENT = 16

_OWN_MEMORY = MemoryTiming(latency_cycles=1)

_COPY_START = 40
"""Cycles of a copy besides its words: the call, what is less than eight words."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Places of copies, in bytes from the stage's start: of the inputs that are present, then of the output."""

    offsets: tuple[int, ...]
    bytes: int


def stage_of(call: Call) -> Stage:
    """Return the places of copies of the operands of ``call``, one after the other."""
    offsets, size = [], 0
    for operand in call.operands:
        offsets.append(size)
        size += -(-operand.span_bytes // _ALIGNMENT) * _ALIGNMENT
    return Stage(tuple(offsets), size)


def can_be_staged(call: Call) -> bool:
    """Tell whether there is room for the operands, and whether they can be copied word by word."""
    gap_free = call.output.span_bytes == call.output.elements * DTYPES[call.output.dtype]
    return gap_free and all(each.address % 4 == 0 for each in call.operands) and stage_of(call).bytes <= STAGE_BYTES


def staged_if_quicker(call: Call, memory: MemoryTiming) -> Call:
    """Return ``call`` unchanged, or staged if that takes fewer cycles."""
    staged = replace(call, staged=True)
    if not can_be_staged(call) or call_cycles(staged, memory) >= call_cycles(call, memory):
        return call
    return staged


def call_cycles(call: Call, memory: MemoryTiming) -> int:
    """Return the cycles that the host core is expected to take for ``call``, copies included."""
    kernel = CORE_KERNELS[call.kernel]
    if not call.staged:
        return kernel.cycles(call, memory)
    return kernel.cycles(call, _OWN_MEMORY) + sum(_copy_cycles(operand, memory) for operand in call.operands)


def bytes_read(call: Call) -> int:
    """Return the bytes that the host core reads of main memory for ``call``, copies included."""
    if call.staged:
        return sum(each.span_bytes for each in call.operands[:-1])
    return CORE_KERNELS[call.kernel].bytes_read(call)


def _copy_cycles(operand: Operand, memory: MemoryTiming) -> int:
    """Return the cycles of copying an operand, in either direction.

    Measured in RTL: 4.6, 12.1 and 22.1 a word at latencies of 5, 20 and 40 cycles.
    """
    words = -(-operand.span_bytes // 4)
    return _COPY_START + words * (memory.latency_cycles + 4) // 2
