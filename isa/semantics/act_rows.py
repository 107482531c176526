"""act.rows: softmax of rows that lie in the result buffer one behind the other, in place.

    entry    table word max x - x, of the four value tables together: 256 little-endian words, of which 24 bits count
    level    requantise(entry), its scale the row's factor; zero point and clamp are those of act.set_clamp

The arithmetic is that of `isa.rows.row_softmax`; a test compares the two element by element.
"""

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.numerics import MANTISSA_BITS
from tilewright.isa.rows.row_softmax import ENTRY_BITS, LEAST_FIRST_ENTRY, TABLE_WORDS
from tilewright.isa.semantics.array_arithmetic import requantise
from tilewright.isa.semantics.buffer_places import inside
from tilewright.isa.semantics.command_errors import RowTableError
from tilewright.isa.semantics.coprocessor_state import CoprocessorState, Int8

__all__ = ["normalise_rows", "softmax_rows"]


def normalise_rows(state: CoprocessorState, operands: dict[str, int]) -> None:
    """Execute an act.rows."""
    settings, rows, length = state.settings["act"], operands["rows"], operands["length"]
    table = state.tables.reshape(-1).view(np.uint32)[:TABLE_WORDS] & np.uint32((1 << ENTRY_BITS) - 1)
    if table[0] < LEAST_FIRST_ENTRY:
        raise RowTableError(int(table[0]))
    places = inside("result", operands["base"] + np.arange(rows * length), state.results)
    state.results[places] = softmax_rows(
        state.results[places].reshape(rows, length), table, (settings["mantissa"], settings["shift"]),
        (settings["zero_point"], settings["low"], settings["high"])).reshape(-1)


def softmax_rows(levels: Int8, table: NDArray[np.uint32], one: tuple[int, int], clamp: tuple[int, int, int]) -> Int8:
    """Return ``isa.rows.row_softmax.softmax_row`` of each row of int8 (rows, length).

    Parameters
    ----------
    levels : int8 (rows, length)
    table : uint32 (256,)
        The first entry at least ``isa.rows.row_softmax.LEAST_FIRST_ENTRY``.
    one : (int, int)
        Mantissa and shift of how many levels stand for 1.
    clamp : (int, int, int)
        Zero point, least and greatest value.
    """
    mantissa, shift = one
    entries = table[levels.max(axis=1, keepdims=True).astype(np.int16) - levels].astype(np.int64)
    totals = entries.sum(axis=1, keepdims=True)
    # A sum is below 2**53, so the exponent of its float64 is its bit length.
    places = np.frexp(totals.astype(np.float64))[1].astype(np.int64) - 1
    places += np.left_shift(mantissa, places) < np.left_shift(totals, MANTISSA_BITS - 1)
    factor = np.left_shift(mantissa, places) // totals
    scale = np.ldexp(factor.astype(np.float64), -(shift + places)).astype(np.float32)
    return requantise(entries.astype(np.int32), np.zeros(1, np.int32), scale, *clamp)
