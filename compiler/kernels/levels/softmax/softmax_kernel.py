"""The part that softmaxes of levels share: a row is loaded once, and the exponentials of its elements are added.

An element is one of 256 values below the row's largest, ``k`` levels lower: its exponential is exp(-k · scale), of
which there is a table with 31 fractional bits. What becomes of a row of two is told by the difference of its elements,
one of 511. Other rows are loaded by words where they can be.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_array
from tilewright.compiler.kernels.language.c_loops import INDENT
from tilewright.compiler.kernels.language.checked import CheckedKernel, Dims, Refused, at_most, attribute, required
from tilewright.compiler.kernels.language.core_cycles import ROW, START
from tilewright.compiler.kernels.language.look_up_run import FloatTable
from tilewright.compiler.kernels.language.rows import Rows
from tilewright.compiler.kernels.levels.softmax.softmax_rows import (
    c_loaded,
    c_pairs,
    c_stored,
    load_cycles,
    pairs_by_words,
    pairs_cycles,
    store_cycles,
)
from tilewright.compiler.kernels.operators.softmax import rows_of
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["BYTES", "LONGEST", "ONE", "RowNumbers", "SoftmaxKernel", "exponentials"]

BYTES = ("int8", "uint8")
ONE = 31
"""Fractional bits of an exponential."""

LONGEST = 1 << 13
"""Elements of a row, so that 18 bits or more of a sum are left."""

_LARGEST_SCALE, _SMALLEST_SCALE = 2.0**40, 2.0**-20
_LONG_ROW = 400
"""From here on the results of all 256 levels cost less than those of all elements."""

_SHORT_ROW = 64
"""Up to here terms of 31 bits less those of the row's length give a sum within one in a million."""

_LARGER, _ADD, _ADD_WIDE, _LOOK_UP = 3, 5, 8, 6
"""Cycles of an element, measured in RTL: the larger of two, a term and the sum of 32 or of 64 bits, an entry of a
table."""

_UNROLLED = 32
"""Longest row whose loops the compiler unrolls as it thinks best."""

_PAIR, _MOST = 2, 255
"""Elements of a row whose results are tabulated, and their greatest difference."""


def exponentials(scale: float) -> np.ndarray:
    """Return exponentials as uint32, by how many levels an element is below the largest."""
    return np.rint(np.ldexp(np.exp(-np.arange(256) * scale), ONE)).astype(np.uint32)


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """The rows of a call, and what an element adds to a sum by its level below the largest: uint32 of (256,)."""

    rows: Rows
    terms: np.ndarray

    @property
    def shift(self) -> int:
        """The bits that a sum is shifted by, so that it has no more than a term."""
        return max(self.rows.length - 1, 0).bit_length()

    @property
    def long(self) -> bool:
        """Whether the results of all levels are computed before those of the elements."""
        return self.rows.length >= _LONG_ROW

    @property
    def short(self) -> bool:
        """Whether terms are shifted before they are added, so that their sum has 32 bits."""
        return self.rows.length <= _SHORT_ROW

    @property
    def summed(self) -> np.ndarray:
        """The terms as they are added."""
        if not self.short or self.shift == 0:
            return self.terms
        half = np.uint64(1 << self.shift - 1)
        return ((self.terms.astype(np.uint64) + half) >> np.uint64(self.shift)).astype(np.uint32)

    def sums(self, below: np.ndarray) -> np.ndarray:
        """Return the sums, uint64 (count,), of rows of (length, count), by how far elements are below the largest."""
        return np.asarray(self.summed[below].sum(axis=0, dtype=np.uint64))


class SoftmaxKernel(CheckedKernel, FloatTable):
    """A function of ``scale_value`` · x along rows, in float32, or by ``y_scale`` and ``y_zero_point`` in bytes."""

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, BYTES)
        scale, levels = call.attrs["scale_value"], attribute(call, "y_scale", None)
        if not 0 < scale <= _LARGEST_SCALE or rows_of(call).length > LONGEST:
            raise Refused(f"{self.op} must have a positive scale and rows of up to {LONGEST} elements, not {scale!r} "
                          f"and {rows_of(call).length}")
        if levels is None:
            return "float32", source.dims
        zero, dtype = call.attrs["y_zero_point"], call.output.dtype
        if dtype not in BYTES or not _SMALLEST_SCALE <= levels <= _LARGEST_SCALE:
            raise Refused(f"{self.op} is quantised to {' '.join(BYTES)} by a scale from {_SMALLEST_SCALE}, "
                          f"not to {dtype} by {levels!r}")
        if not np.iinfo(dtype).min <= zero <= np.iinfo(dtype).max:
            raise Refused(f"{self.op} must have a zero point that is {dtype}, not {zero!r}")
        return dtype, source.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array = arrays[0]
        assert array is not None
        numbers = self._row_numbers(call)
        split = numbers.rows.split(array).astype(np.int32)
        below = split.max(axis=0) - split
        return np.ascontiguousarray(numbers.rows.joined(self._last(call, below, numbers.sums(below))))

    def c_body(self, call: Call, function: str) -> list[str]:
        numbers = self._row_numbers(call)
        rows, source = numbers.rows, call.inputs[0]
        if rows.length == _PAIR:
            return c_pairs(call, rows, self._pairs(call, numbers))

        def row(indices: list[str]) -> list[str]:
            unrolled = '_Pragma("clang loop unroll_count(8)") ' if rows.length > _UNROLLED else ""
            each = f"{unrolled}for (uint32_t k = 0; k < {rows.length}; k++)"
            wide = "uint32_t" if numbers.short else "uint64_t"
            return [*c_loaded(rows, source, indices), f"int32_t top = {np.iinfo(source.dtype).min};",
                    each, f"{INDENT}top = x[k] > top ? x[k] : top;",
                    f"{wide} sum = 0;", each, f"{INDENT}sum += summed[top - x[k]];",
                    *self._c_row(call), *self._c_results(call, numbers),
                    *c_stored(rows, call, indices, self._c_last(call, numbers))]

        return [*c_array("summed", numbers.summed), *self._c_tables(call),
                *(["static float results[256];"] if self._by_level(call, numbers) else []), *rows.each_row(row)]

    def float_table(self, call: Call) -> np.ndarray | None:
        numbers = self._row_numbers(call)
        floats = call.output.dtype == "float32" and call.inputs[0].dtype == "int8"
        if not floats or numbers.rows.length != _PAIR or not pairs_by_words(call, numbers.rows):
            return None
        return np.ascontiguousarray(self._pairs(call, numbers)[:, 0])

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        numbers = self._row_numbers(call)
        rows = numbers.rows
        if rows.length == _PAIR:
            return pairs_cycles(call, rows, memory)
        last, row = self._cycles(call)
        if self._by_level(call, numbers):
            last, row = _LOOK_UP, row + 256 * (last + ROW)
        row += load_cycles(rows, call.inputs[0], memory) + store_cycles(rows, call.output, memory)
        return START + int(rows.count * (rows.length * (_LARGER + (_ADD if numbers.short else _ADD_WIDE) + last) + row))

    @abstractmethod
    def _last(self, call: Call, below: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Return the results of rows of (length, count), by how far elements are below the largest, and the sums."""

    @abstractmethod
    def _c_tables(self, call: Call) -> list[str]:
        """Return the tables of which results are made."""

    @abstractmethod
    def _c_row(self, call: Call) -> list[str]:
        """Return the lines between the ``sum`` of a row, uint32 or uint64, and its results."""

    @abstractmethod
    def _c_result(self, call: Call, index: str, target: str) -> list[str]:
        """Return the lines that set ``target`` to the result of an element ``index`` levels below the largest."""

    @abstractmethod
    def _cycles(self, call: Call) -> tuple[float, float]:
        """Return the cycles of the lines of :meth:`_c_result`, and of those of :meth:`_c_row`."""

    def _row_numbers(self, call: Call) -> RowNumbers:
        return RowNumbers(rows_of(call), exponentials(float(call.attrs["scale_value"])))

    def _by_level(self, call: Call, numbers: RowNumbers) -> bool:
        """Tell whether the floats of all levels are computed before those of the elements."""
        return numbers.long and call.output.dtype == "float32"

    def _pairs(self, call: Call, numbers: RowNumbers) -> np.ndarray:
        """Return the results of rows of two, by the first element less the second."""
        differences = np.arange(-_MOST, _MOST + 1)
        below = np.stack([np.maximum(-differences, 0), np.maximum(differences, 0)])
        return np.ascontiguousarray(self._last(call, below, numbers.sums(below)).T)

    def _c_results(self, call: Call, numbers: RowNumbers) -> list[str]:
        """Return the loop over the results of all levels, where these are computed."""
        if not self._by_level(call, numbers):
            return []
        return ["for (uint32_t index = 0; index < 256; index++) {",
                *(INDENT + line for line in self._c_result(call, "index", "results[index]")), "}"]

    def _c_last(self, call: Call, numbers: RowNumbers) -> list[str]:
        """Return the lines that set ``y`` to the result of level ``x[k]``."""
        if self._by_level(call, numbers):
            return ["y = results[top - x[k]];"]
        return ["const int32_t index = top - x[k];", *self._c_result(call, "index", "y")]
