"""One command's effect on state and memory: its semaphores, then its instruction.

Executing every command at once in program order is a valid order (docs/datapath.md): whoever runs a whole program
calls :func:`execute_command` for one after the other.
"""

from collections.abc import Callable

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.encoding import EXTENSION, SEMAPHORE_WIDTH
from tilewright.isa.lacking import lacking
from tilewright.isa.semantics.act import post_process
from tilewright.isa.semantics.command_errors import (
    SemaphoreEmptyError,
    SemaphoreOverflowError,
    UnitMissingError,
    ZeroOperandError,
)
from tilewright.isa.semantics.conv import convolve
from tilewright.isa.semantics.conv23 import convolve_winograd
from tilewright.isa.semantics.coprocessor_state import CoprocessorState, MemoryPort
from tilewright.isa.semantics.lda import load_activations
from tilewright.isa.semantics.ldw import load_weights
from tilewright.isa.semantics.own_unit import run_unit
from tilewright.isa.semantics.pool import pool_sums
from tilewright.isa.semantics.sta import store_results

__all__ = ["EFFECTS", "execute_command"]

_Effect = Callable[[CoprocessorState, MemoryPort, str, dict[str, int]], None]

EFFECTS: dict[str, _Effect] = {
    "lda": load_activations,
    "ldw": load_weights,
    "conv23": convolve_winograd,
    "conv": convolve,
    "act": post_process,
    "pool": pool_sums,
    "sta": store_results,
    "extension": run_unit,
}
"""The effect of each instruction by mnemonic; it takes the name of the variant and the operands. Set variants apart."""

_COUNTS = ("rows", "words", "tiles_y", "groups", "channels", "items", "item_bytes", "length", "steps")
"""Operands that the hardware counts down from, and so must not be zero."""


def execute_command(state: CoprocessorState, memory: MemoryPort, command: EncodedCommand) -> None:
    """Execute ``command``: take the semaphores it waits for, do what it does, add to those it signals.

    Raises
    ------
    CommandError
        If no hardware could execute it.
    """
    mnemonic, variant, operands = command.instruction.mnemonic, command.variant.name, command.operands
    flags = command.flags
    may_lack = mnemonic == EXTENSION.mnemonic or not state.has_all
    if may_lack and (unit := lacking(state.machine, mnemonic, variant, operands)) is not None:
        raise UnitMissingError(unit, state.machine.name)
    for flag in flags:
        if flag.startswith("wait_"):
            _wait(state, flag.removeprefix("wait_"))
    if variant.startswith("set_") or variant == "window":
        state.settings[mnemonic].update(operands)
    elif variant != "fence":
        for name in _COUNTS:
            if operands.get(name) == 0:
                raise ZeroOperandError(name)
        EFFECTS[mnemonic](state, memory, variant, operands)
    for flag in flags:
        if flag.startswith("signal_"):
            _signal(state, flag.removeprefix("signal_"))


def _wait(state: CoprocessorState, semaphore: str) -> None:
    if state.semaphores[semaphore] <= 0:
        raise SemaphoreEmptyError(semaphore)
    state.semaphores[semaphore] -= 1


def _signal(state: CoprocessorState, semaphore: str) -> None:
    state.semaphores[semaphore] += 1
    if state.semaphores[semaphore] >= 1 << SEMAPHORE_WIDTH:
        raise SemaphoreOverflowError(semaphore)
