"""Softmax of quantised values and its logarithm: a table of exponentials, and their sum in integers.

An element is one of 256 values below the row's largest, ``k`` levels lower: its exponential is exp(-k · scale), of
which there are tables in float32 and with 31 fractional bits. A float result takes one product per element, in a long
row one per level, made of integers (`scaled_table.py`); a quantised one takes an integer product. What becomes of a row
of two is told by the difference of its elements, one of 511. Other rows are loaded once, by words where they can be.

ONNX Runtime makes one operator of a softmax and its quantisation (QLinearSoftmax), which multiplies by the whole part
of 1 / y_scale: 254 for a scale of 1/255. So does this one. Source: ``qlinear_softmax.cc`` of ONNX Runtime.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language import float_functions as f
from tilewright.compiler.kernels.language.c_expression import c_array, c_constant
from tilewright.compiler.kernels.language.c_helpers import helper_names
from tilewright.compiler.kernels.language.c_loops import INDENT
from tilewright.compiler.kernels.language.checked import CheckedKernel, Dims, Refused, at_most, attribute, required
from tilewright.compiler.kernels.language.core_cycles import ROW, SINGLE, START, expression_cycles
from tilewright.compiler.kernels.language.expression import evaluate, variable
from tilewright.compiler.kernels.language.look_up_run import FloatTable
from tilewright.compiler.kernels.language.rows import Rows
from tilewright.compiler.kernels.levels.scaled_table import ScaledTable
from tilewright.compiler.kernels.levels.softmax_rows import (
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

__all__ = ["LOG_SOFTMAX_OF_LEVELS", "SOFTMAX_OF_LEVELS", "SoftmaxOfLevels"]

_BYTES = ("int8", "uint8")
_ONE = 31
"""Fractional bits of an exponential."""

_MOST_LEVEL_BITS = 22
"""Fractional bits of a quantised result before it is rounded, at most: then a reciprocal of 255 steps has 31 bits."""

_LONGEST = 1 << 13
"""Elements of a row, so that 18 bits or more of a sum are left."""

_LARGEST_SCALE, _SMALLEST_SCALE = 2.0**40, 2.0**-20
_LONG_ROW = 400
"""From here on the results of all 256 levels cost less than those of all elements."""

_SHORT_ROW = 64
"""Up to here terms of 31 bits less those of the row's length give a sum within one in a million."""

_TOTAL = variable("total", "float32")
_LOG = f.log(_TOTAL)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Parameters of a call: the rows, the bits that a sum is shifted by, what its reciprocal is multiplied by.

    ``terms`` is what an element adds to the sum by its level below the largest, ``values`` what its result is made of;
    quantised results have ``level_bits`` fractional bits before they are rounded.
    """

    rows: Rows
    shift: int
    unit: np.float32
    terms: np.ndarray
    values: np.ndarray
    level_bits: int = 0

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


class SoftmaxOfLevels(CheckedKernel, FloatTable):
    """Softmax of ``scale_value`` · x, in float32, or by ``y_scale`` and ``y_zero_point`` in the type of x."""

    limits = "int8 uint8 to float32, int8 or uint8; rows of up to 8192 elements"

    def __init__(self, op: str, *, logarithm: bool) -> None:
        self.op = op
        self.logarithm = logarithm
        self.exactness = "absolute 1e-6" if logarithm else "relative 1e-5, quantised within one level"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, _BYTES)
        scale, levels = call.attrs["scale_value"], attribute(call, "y_scale", None)
        if not 0 < scale <= _LARGEST_SCALE or rows_of(call).length > _LONGEST:
            raise Refused(f"{self.op} must have a positive scale and rows of up to {_LONGEST} elements, not {scale!r} "
                          f"and {rows_of(call).length}")
        if levels is None:
            return "float32", source.dims
        zero, dtype = call.attrs["y_zero_point"], call.output.dtype
        if self.logarithm or dtype not in _BYTES or not _SMALLEST_SCALE <= levels <= _LARGEST_SCALE:
            raise Refused(f"{self.op} is quantised to {' '.join(_BYTES)} by a scale from {_SMALLEST_SCALE}, "
                          f"not to {dtype} by {levels!r}")
        if not np.iinfo(dtype).min <= zero <= np.iinfo(dtype).max:
            raise Refused(f"{self.op} must have a zero point that is {dtype}, not {zero!r}")
        return dtype, source.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array = arrays[0]
        assert array is not None
        numbers = self._numbers(call)
        split = numbers.rows.split(array).astype(np.int32)
        return np.ascontiguousarray(numbers.rows.joined(self._results(call, numbers, split.max(axis=0) - split)))

    def _results(self, call: Call, numbers: _Numbers, below: np.ndarray) -> np.ndarray:
        """Return the results of rows, (length, count), by how many levels their elements are below the largest."""
        total = numbers.summed[below].sum(axis=0, dtype=np.uint64)
        if not numbers.short:
            total >>= np.uint64(numbers.shift)
        return self._last(call, numbers, below, total.astype(np.uint32).astype(np.float32))

    def _last(self, call: Call, numbers: _Numbers, below: np.ndarray, total: np.ndarray) -> np.ndarray:
        if self.logarithm:
            return np.asarray(numbers.values[below] - evaluate(_LOG, {"total": total * numbers.unit}))
        factor = numbers.unit / total
        if call.output.dtype == "float32":
            return ScaledTable(numbers.values).times(below, factor)
        product = numbers.terms[below].astype(np.uint64) * factor.astype(np.int32).astype(np.uint64)
        bits = numbers.level_bits
        level = ((product >> np.uint64(32)).astype(np.int32) + (1 << bits - 1)) >> bits
        level += np.int32(call.attrs["y_zero_point"])
        return np.minimum(level, np.iinfo(call.output.dtype).max).astype(call.output.dtype)

    def c_body(self, call: Call, function: str) -> list[str]:
        numbers = self._numbers(call)
        rows, source = numbers.rows, call.inputs[0]
        if rows.length == _PAIR:
            return c_pairs(call, rows, self._pairs(call, numbers))
        tables = [*c_array("summed", numbers.summed), *self._c_tables(call, numbers)]

        def row(indices: list[str]) -> list[str]:
            unrolled = '_Pragma("clang loop unroll_count(8)") ' if rows.length > _UNROLLED else ""
            each = f"{unrolled}for (uint32_t k = 0; k < {rows.length}; k++)"
            wide = "uint32_t" if numbers.short else "uint64_t"
            shifted = "sum" if numbers.short else f"(uint32_t)(sum >> {numbers.shift})"
            return [*c_loaded(rows, source, indices), f"int32_t top = {np.iinfo(source.dtype).min};",
                    each, f"{INDENT}top = x[k] > top ? x[k] : top;",
                    f"{wide} sum = 0;", each, f"{INDENT}sum += summed[top - x[k]];",
                    f"const float total = (float){shifted};", *self._c_factor(call, numbers),
                    *c_stored(rows, call, indices, self._c_element(call, numbers))]

        return [*tables, *rows.each_row(row)]

    def float_table(self, call: Call) -> np.ndarray | None:
        numbers = self._numbers(call)
        floats = call.output.dtype == "float32" and call.inputs[0].dtype == "int8"
        if not floats or numbers.rows.length != _PAIR or not pairs_by_words(call, numbers.rows):
            return None
        return np.ascontiguousarray(self._pairs(call, numbers)[:, 0])

    def _pairs(self, call: Call, numbers: _Numbers) -> np.ndarray:
        """Return the results of rows of two, by the first element less the second."""
        differences = np.arange(-_MOST, _MOST + 1)
        below = np.stack([np.maximum(-differences, 0), np.maximum(differences, 0)])
        return np.ascontiguousarray(self._results(call, numbers, below).T)

    def _c_tables(self, call: Call, numbers: _Numbers) -> list[str]:
        """Return the tables of which results are made."""
        if call.output.dtype != "float32":
            return c_array("terms", numbers.terms)
        tables = c_array("values", numbers.values) if self.logarithm else ScaledTable(numbers.values).c_tables()
        return [*tables, "static float results[256];"] if numbers.long else tables

    def _c_factor(self, call: Call, numbers: _Numbers) -> list[str]:
        """Return the lines between the sum of a row and its results."""
        unit = c_constant(numbers.unit)
        if call.output.dtype != "float32":
            return [f"const uint32_t factor = (uint32_t)(int32_t)({unit} / total);"]
        if self.logarithm:
            lines = [f"const float factor = tw_log(total * {unit});"]
        else:
            lines = [f"const float factor = {unit} / total;", *ScaledTable.c_factor()]
        if numbers.long:
            result = self._c_float(numbers, "index", "results[index]")
            lines += ["for (uint32_t index = 0; index < 256; index++) {", *(INDENT + line for line in result), "}"]
        return lines

    def _c_float(self, numbers: _Numbers, index: str, target: str) -> list[str]:
        if self.logarithm:
            return [f"{target} = values[{index}] - factor;"]
        return ScaledTable(numbers.values).c_times(index, target)

    def _c_element(self, call: Call, numbers: _Numbers) -> list[str]:
        """Return the lines that set ``y`` to the result of level ``x[k]``."""
        if call.output.dtype == "float32":
            if numbers.long:
                return ["y = results[top - x[k]];"]
            return ["const int32_t index = top - x[k];", *self._c_float(numbers, "index", "y")]
        bits, zero, most = numbers.level_bits, call.attrs["y_zero_point"], np.iinfo(call.output.dtype).max
        return ["const int32_t scaled = (int32_t)((uint64_t)terms[top - x[k]] * factor >> 32);",
                f"const int32_t level = ((scaled + {1 << bits - 1}) >> {bits}) + {zero};",
                f"y = level < {most} ? level : {most};"]

    def helpers(self, call: Call) -> tuple[str, ...]:
        if rows_of(call).length == _PAIR or call.output.dtype != "float32":
            return ()
        return helper_names(_LOG) if self.logarithm else ScaledTable.helpers()

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        numbers = self._numbers(call)
        rows = numbers.rows
        if rows.length == _PAIR:
            return pairs_cycles(call, rows, memory)
        product = _DIFFERENCE if self.logarithm else ScaledTable.cycles()
        row: float = ROW + _RECIPROCAL + self.logarithm * expression_cycles(_LOG)
        last: float
        if call.output.dtype != "float32":
            last, row = _LEVEL, row + 20
        elif numbers.long:
            last, row = _LOOK_UP, row + 256 * (product + _LOOK_UP + ROW)
        else:
            last = _LOOK_UP + product
        row += load_cycles(rows, call.inputs[0], memory) + store_cycles(rows, call.output, memory)
        return START + int(rows.count * (rows.length * (_LARGER + (_ADD if numbers.short else _ADD_WIDE) + last) + row))

    def _numbers(self, call: Call) -> _Numbers:
        rows = rows_of(call)
        shift = max(rows.length - 1, 0).bit_length()
        values, terms = _tables(float(call.attrs["scale_value"]), self.logarithm)
        one, bits = math.ldexp(1.0, _ONE - shift), 0
        if self.logarithm:
            one = 1 / one
        elif call.output.dtype != "float32":
            steps = int(np.floor(np.float32(1) / np.float32(call.attrs["y_scale"])))
            bits = min(_MOST_LEVEL_BITS, (((1 << 31) - 1) // max(steps, 1)).bit_length() - 2)
            one *= math.ldexp(steps, bits + 1)
        return _Numbers(rows, shift, np.float32(one), terms, values, bits)


_LARGER, _ADD, _ADD_WIDE, _LEVEL, _LOOK_UP, _DIFFERENCE = 3, 5, 8, 17, 6, SINGLE["subtract"] - 8
"""Cycles of an element, measured in RTL: the larger of two, a term and the sum of 32 or of 64 bits, a quantised result,
an entry of a table, a difference of negative numbers."""

_RECIPROCAL = SINGLE["divide"] + 30
"""Of a row's sum as a float, and its reciprocal."""

_UNROLLED = 32
"""Longest row whose loops the compiler unrolls as it thinks best."""

_PAIR, _MOST = 2, 255
"""Elements of a row whose results are tabulated, and their greatest difference."""


def _tables(scale: float, logarithm: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return values in float32 and exponentials in integers, by how many levels an element is below the largest."""
    exponents = -np.arange(256) * scale
    powers = np.exp(exponents)
    return (exponents if logarithm else powers).astype(np.float32), np.rint(np.ldexp(powers, _ONE)).astype(np.uint32)


SOFTMAX_OF_LEVELS = SoftmaxOfLevels("SoftmaxOfLevels", logarithm=False)
LOG_SOFTMAX_OF_LEVELS = SoftmaxOfLevels("LogSoftmaxOfLevels", logarithm=True)
