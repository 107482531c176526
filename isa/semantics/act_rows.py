"""act.rows: softmax or normalisation of rows that lie in the result buffer one behind the other, in place.

    softmax  entry    table word max x - x, of the four value tables together: 256 little-endian words, of which 24
                      bits count
             level    requantise(entry), its scale the row's factor
    norm     x², n x  the lower 15 and the upper 17 bits of table word -x
             level    requantise(what gain and shift of the element make of n x), its scale the row's factor

Zero point and clamp are those of act.set_clamp. The arithmetic is that of `isa.rows.row_softmax` and
`isa.rows.row_norm`; tests compare them element by element.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.numerics import MANTISSA_BITS
from tilewright.isa.rows.row_norm import (
    GAIN_BITS,
    LEAST_ROOT,
    LONG_TERMS,
    MAX_NORM_LENGTH,
    PRODUCT_BITS,
    ROOT_BITS,
    ROOT_PLACES,
    SHIFT_PLACES,
    SQUARE_BITS,
    SUM_PLACES,
    RowNorm,
    root_digits,
)
from tilewright.isa.rows.row_softmax import ENTRY_BITS, LEAST_FIRST_ENTRY, TABLE_WORDS
from tilewright.isa.semantics.array_arithmetic import requantise
from tilewright.isa.semantics.buffer_places import inside
from tilewright.isa.semantics.command_errors import OutsideBufferError, RowNormError, RowTableError
from tilewright.isa.semantics.coprocessor_state import CoprocessorState, Int8, Int64

__all__ = ["NormNumbers", "norm_rows", "normalise_rows", "softmax_rows"]

_Clamp = tuple[int, int, int]


def normalise_rows(state: CoprocessorState, operands: dict[str, int]) -> None:
    """Execute an act.rows."""
    settings, rows, length = state.settings["act"], operands["rows"], operands["length"]
    words = state.tables.reshape(-1).view("<u4")[:TABLE_WORDS]
    scale = settings["mantissa"], settings["shift"]
    clamp = settings["zero_point"], settings["low"], settings["high"]
    places = inside("result", operands["base"] + np.arange(rows * length), state.results)
    levels = state.results[places].reshape(rows, length)
    if operands["norm"]:
        found = norm_rows(levels, NormNumbers.of_state(state, words, length), scale, clamp)
    else:
        table = words & np.uint32((1 << ENTRY_BITS) - 1)
        if table[0] < LEAST_FIRST_ENTRY:
            raise RowTableError(int(table[0]))
        found = softmax_rows(levels, table, scale, clamp)
    state.results[places] = found.reshape(-1)


def softmax_rows(levels: Int8, table: NDArray[np.uint32], one: tuple[int, int], clamp: _Clamp) -> Int8:
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
    entries = table[levels.max(axis=1, keepdims=True).astype(np.int16) - levels].astype(np.int64)
    scale = _factors(entries.sum(axis=1, keepdims=True), one)
    return requantise(entries.astype(np.int32), np.zeros(1, np.int32), scale, *clamp)


def _factors(totals: Int64, one: tuple[int, int]) -> NDArray[np.float32]:
    """Return ``isa.rows.row_softmax.row_factor`` of a mantissa and each total, with its shift, as float32."""
    mantissa, shift = one
    # A total is below 2**53, so the exponent of its float64 is its bit length.
    places = np.frexp(totals.astype(np.float64))[1].astype(np.int64) - 1
    places += np.left_shift(mantissa, places) < np.left_shift(totals, MANTISSA_BITS - 1)
    factor = np.left_shift(mantissa, places) // totals
    return np.ldexp(factor.astype(np.float64), -(shift + places)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class NormNumbers:
    """The numbers by which rows are normalised, as the machine has them: see `isa.rows.row_norm.RowNorm`.

    Attributes
    ----------
    squares, products : int64 (256,)
        The two parts of the table's words.
    gains, shifts : int64 (length,)
    extra, offset : int
    centred, fine : bool
    """

    squares: Int64
    products: Int64
    gains: Int64
    shifts: Int64
    extra: int
    offset: int
    centred: bool
    fine: bool

    @classmethod
    def of(cls, norm: RowNorm) -> "NormNumbers":
        """Return the numbers of ``norm``."""
        squares, products = _parts(np.array(norm.table, np.uint32))
        return cls(squares, products, np.array(norm.gains, np.int64), np.array(norm.shifts, np.int64), norm.extra,
                   norm.offset, norm.centred, norm.fine)

    @classmethod
    def of_state(cls, state: CoprocessorState, words: NDArray[np.uint32], length: int) -> "NormNumbers":
        """Return those of a state, for rows of ``length``."""
        settings = state.settings["act"]
        first = settings["parameter_base"]
        if length > MAX_NORM_LENGTH:
            raise RowNormError(length)
        halves = state.parameters[8 * first:8 * (first + length)].view("<i4").reshape(-1, 2)
        if len(halves) != length:
            raise OutsideBufferError("parameters of channel", first + length - 1, state.machine.parameter_channels)
        unread = 32 - GAIN_BITS
        gains, shifts = (halves << unread >> unread).astype(np.int64).T
        return cls(*_parts(words), gains, shifts, settings["extra"], settings["offset"], bool(settings["centred"]),
                   bool(settings["fine"]))


def _parts(words: NDArray[np.uint32]) -> tuple[Int64, Int64]:
    """Return x² and n x, or half of it, of a table's words."""
    return ((words & np.uint32((1 << SQUARE_BITS) - 1)).astype(np.int64),
            (words.view(np.int32) >> 32 - PRODUCT_BITS).astype(np.int64))


def norm_rows(levels: Int8, norm: NormNumbers, one: tuple[int, int], clamp: _Clamp) -> Int8:
    """Return ``isa.rows.row_norm.norm_row`` of each row of int8 (rows, length).

    Parameters
    ----------
    levels : int8 (rows, length)
    norm : NormNumbers
    one, clamp
        As `softmax_rows` takes them.

    Raises
    ------
    RowNormError
        If a spread is negative, or so large that its root has no room.
    """
    words, length = -levels.astype(np.int16) % TABLE_WORDS, levels.shape[1]
    sums = levels.sum(axis=1, keepdims=True, dtype=np.int64)
    half = int(length > LONG_TERMS)
    centre = sums >> half if norm.centred else np.full_like(sums, norm.offset)
    odd = sums & half * norm.centred
    spread = length * norm.squares[words].sum(axis=1, keepdims=True) + (norm.extra << 2 * half) - sums * (
        sums if norm.centred else 2 * norm.offset << half)
    digits = root_digits(length, fine=norm.fine)
    bad = (spread < 0) | (spread >= 1 << 2 * (ROOT_BITS - digits))
    if bad.any():
        raise RowNormError(length, int(spread[bad][0]))
    # Below 2**48 a root of float64, cut off, is that of integers: a square less one is further off than it rounds.
    root = np.maximum(np.sqrt(np.ldexp(spread.astype(np.float64), 2 * digits)).astype(np.int64), LEAST_ROOT)
    total = ((norm.products[words] - centre) * norm.gains + (norm.shifts * root >> SHIFT_PLACES)) >> SUM_PLACES
    total -= odd * norm.gains >> SUM_PLACES + 1
    return requantise(total.astype(np.int32), np.zeros(1, np.int32), _factors(root << ROOT_PLACES, one), *clamp)
