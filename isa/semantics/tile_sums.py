"""The common part of conv23, conv and pool.sum: sums of all tiles, held in the accumulators or passed on to act.

    accumulate   the sums start from those that the accumulators hold
    hold         they stay there, and nothing is passed on

A command with either has one lane group and no more tiles than there are accumulators. Sums wrap to int32.

Of words of 16 bits (`isa.words.word_planes`) the sums are 256 times those of the plane of upper bytes, and those of
the lower bytes, ``plane_step`` bytes on, with the same weights.
"""

from collections.abc import Callable

import numpy as np

from tilewright.isa.machine import TILE_BYTES
from tilewright.isa.semantics.command_errors import HeldSumsMissingError, HeldTilesError, WordPlanesError
from tilewright.isa.semantics.coprocessor_state import CoprocessorState, Int32, Int64, Settings, TileSums

__all__ = ["leave_sums"]

_Summation = Callable[[CoprocessorState, Settings, dict[str, int]], Int32 | Int64]
"""Returns the sums (rows, columns, lanes * groups) of a command with the settings of conv and its operands.

int64 are four times the sums, of which the array drops two bits.
"""


def leave_sums(state: CoprocessorState, operands: dict[str, int], summation: _Summation, *, winograd: bool) -> None:
    """Execute a mac command whose products are those of ``summation``."""
    settings = state.settings["conv"].require("tiles_x", "runs", "kernel_x", "kernel_y")
    accumulate, hold, groups = operands["accumulate"], operands["hold"], operands["groups"]
    if accumulate and state.held is None:
        raise HeldSumsMissingError
    tiles = settings["tiles_x"] * operands["tiles_y"]
    if (accumulate or hold) and (groups != 1 or tiles > state.machine.tiles):
        raise HeldTilesError(tiles, groups, state.machine.tiles)
    sums = summation(state, settings, operands)
    if step := settings.get("plane_step", 0):
        if accumulate or hold or (winograd and step % (TILE_BYTES * TILE_BYTES)):
            raise WordPlanesError
        with np.errstate(over="ignore"):
            sums = (sums << 8) + summation(state, settings, {**operands, "base": operands["base"] + step})
    if accumulate and state.held is not None:
        if state.held.shape != sums.shape or state.held.dtype != sums.dtype:
            raise HeldSumsMissingError
        with np.errstate(over="ignore"):
            sums = sums + state.held
    state.held = sums if hold else None
    if not hold:
        whole = (sums >> 2 if sums.dtype == np.int64 else sums).astype(np.int32, copy=False)
        state.sums.append(TileSums(whole, winograd))
