"""Softmax of quantised values and its logarithm: a table of exponentials, and their sum in integers.

An element is one of 256 values below the row's largest, ``k`` levels lower: its exponential is exp(-k · scale), of
which there are tables in float32 and with 31 fractional bits. A float result takes one soft product per element, in a
long row one per level; a quantised one takes an integer product. What becomes of a row of two is told by the difference
of its elements, one of 511.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language import float_functions as f
from tilewright.compiler.kernels.language.c_expression import c_array, c_constant, ctype
from tilewright.compiler.kernels.language.c_helpers import helper_names
from tilewright.compiler.kernels.language.c_loops import INDENT
from tilewright.compiler.kernels.language.checked import CheckedKernel, Dims, Refused, at_most, attribute, required
from tilewright.compiler.kernels.language.core_cycles import LOOP, ROW, SINGLE, START, access_cycles, expression_cycles
from tilewright.compiler.kernels.language.expression import evaluate, variable
from tilewright.compiler.kernels.operators.rows import Rows
from tilewright.compiler.kernels.operators.softmax import rows_of
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call, Operand

__all__ = ["LOG_SOFTMAX_OF_LEVELS", "SOFTMAX_OF_LEVELS", "SoftmaxOfLevels"]

_BYTES = ("int8", "uint8")
_ONE = 31
"""Fractional bits of an exponential."""

_LEVEL_BITS = 8
"""Fractional bits of a quantised result before it is rounded."""

_LONGEST = 1 << 13
"""Elements of a row, so that 18 bits or more of a sum are left."""

_LARGEST_SCALE, _SMALLEST_SCALE = 2.0**40, 2.0**-20
_LONG_ROW = 400
"""From here on the results of all 256 levels cost less than those of all elements."""

_TOTAL = variable("total", "float32")
_LOG = f.log(_TOTAL)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Parameters of a call: the rows, the bits that a sum is shifted by, what its reciprocal is multiplied by.

    ``terms`` is what an element adds to the sum by its level below the largest, ``values`` what its result is made of.
    """

    rows: Rows
    shift: int
    unit: np.float32
    terms: np.ndarray
    values: np.ndarray

    @property
    def long(self) -> bool:
        """Whether the results of all levels are computed before those of the elements."""
        return self.rows.length >= _LONG_ROW


class SoftmaxOfLevels(CheckedKernel):
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
        total = numbers.terms[below].sum(axis=0, dtype=np.uint64) >> np.uint64(numbers.shift)
        return self._last(call, numbers, below, total.astype(np.uint32).astype(np.float32))

    def _last(self, call: Call, numbers: _Numbers, below: np.ndarray, total: np.ndarray) -> np.ndarray:
        if self.logarithm:
            return np.asarray(numbers.values[below] - evaluate(_LOG, {"total": total * numbers.unit}))
        factor = numbers.unit / total
        if call.output.dtype == "float32":
            return np.asarray(numbers.values[below] * factor)
        product = numbers.terms[below].astype(np.uint64) * factor.astype(np.int32).astype(np.uint64)
        level = ((product >> np.uint64(32)).astype(np.int32) + (1 << _LEVEL_BITS - 1)) >> _LEVEL_BITS
        level += np.int32(call.attrs["y_zero_point"])
        return np.minimum(level, np.iinfo(call.output.dtype).max).astype(call.output.dtype)

    def c_body(self, call: Call, function: str) -> list[str]:
        numbers = self._numbers(call)
        rows, source = numbers.rows, call.inputs[0]
        floats = call.output.dtype == "float32"
        if rows.length == _PAIR:
            return self._c_pairs(call, numbers)
        tables = [*c_array("terms", numbers.terms), *(c_array("values", numbers.values) if floats else [])]
        if numbers.long and floats:
            tables.append("static float results[256];")

        def row(indices: list[str]) -> list[str]:
            def load(inner: list[str]) -> str:
                return f"const int32_t x = {rows.element('in0', source, indices, inner)};"

            def last(inner: list[str]) -> list[str]:
                target = rows.element("out", call.output, indices, inner)
                return [load(inner), *self._c_element(call, numbers, target)]

            lowest = np.iinfo(source.dtype).min
            lines = [f"int32_t top = {lowest};",
                     *rows.each_element(lambda inner: [load(inner), "top = x > top ? x : top;"]),
                     "uint64_t sum = 0;", *rows.each_element(lambda inner: [load(inner), "sum += terms[top - x];"]),
                     f"const float total = (float)(uint32_t)(sum >> {numbers.shift});", *self._c_factor(call, numbers)]
            return [*lines, *rows.each_element(last)]

        return [*tables, *rows.each_row(row)]

    def _c_pairs(self, call: Call, numbers: _Numbers) -> list[str]:
        """Return the C of rows of two: a table by the first element less the second."""
        rows, source = numbers.rows, call.inputs[0]
        differences = np.arange(-_MOST, _MOST + 1)
        table = self._results(call, numbers, np.stack([np.maximum(-differences, 0), np.maximum(differences, 0)]))[0]

        def row(indices: list[str]) -> list[str]:
            def pair(pointer: str, operand: Operand) -> list[str]:
                places = [[str(k) if rows.dims[axis] == _PAIR else "0" for axis in rows.along] for k in range(_PAIR)]
                return [rows.element(pointer, operand, indices, each) for each in places]

            first, second = pair("in0", source)
            targets = zip(pair("out", call.output), ("first", "second"), strict=True)
            return [f"const int32_t x = {first}, y = {second};",
                    f"const {ctype(table.dtype.name)} first = pairs[{_MOST} + x - y], second = pairs[{_MOST} + y - x];",
                    *(f"{target} = {result};" for target, result in targets)]

        return [*c_array("pairs", table), *rows.each_row(row, unrolled=_ROWS)]

    def _c_factor(self, call: Call, numbers: _Numbers) -> list[str]:
        """Return the lines between the sum of a row and its results."""
        unit = c_constant(numbers.unit)
        if self.logarithm:
            lines = [f"const float factor = tw_log(total * {unit});"]
        elif call.output.dtype == "float32":
            lines = [f"const float factor = {unit} / total;"]
        else:
            return [f"const uint32_t factor = (uint32_t)(int32_t)({unit} / total);"]
        if numbers.long:
            lines += ["for (int32_t k = 0; k < 256; k++)",
                      f"{INDENT}results[k] = values[k] {'-' if self.logarithm else '*'} factor;"]
        return lines

    def _c_element(self, call: Call, numbers: _Numbers, target: str) -> list[str]:
        """Return the lines that store the result of level ``x``."""
        if call.output.dtype == "float32":
            value = "results[top - x]" if numbers.long else f"values[top - x] {'-' if self.logarithm else '*'} factor"
            return [f"{target} = {value};"]
        half, zero, most = 1 << _LEVEL_BITS - 1, call.attrs["y_zero_point"], np.iinfo(call.output.dtype).max
        return ["const int32_t scaled = (int32_t)((uint64_t)terms[top - x] * factor >> 32);",
                f"const int32_t level = ((scaled + {half}) >> {_LEVEL_BITS}) + {zero};",
                f"{target} = level < {most} ? level : {most};"]

    def helpers(self, call: Call) -> tuple[str, ...]:
        return helper_names(_LOG) if self.logarithm else ()

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        numbers = self._numbers(call)
        rows = numbers.rows
        if rows.length == _PAIR:
            return START + rows.count * (_PAIR_WORK + access_cycles(memory, 2) + access_cycles(memory, 2))
        # Short rows are unrolled, so that two loads are under way together.
        load = LOOP + access_cycles(memory) if rows.length > _UNROLLED else 1 + access_cycles(memory, 2) / 2
        stored = access_cycles(memory, 0, 1)
        product = _DIFFERENCE if self.logarithm else SINGLE["multiply"]
        row = ROW + _RECIPROCAL + self.logarithm * expression_cycles(_LOG)
        if call.output.dtype != "float32":
            last, row = _LEVEL, row + 20
        elif numbers.long:
            last, row = _LOOK_UP, row + 256 * (product + _LOOK_UP + ROW)
        else:
            last = _LOOK_UP + product
        return START + int(rows.count * (rows.length * (3 * load + _LARGER + _ADD + last + stored) + row))

    def _numbers(self, call: Call) -> _Numbers:
        rows = rows_of(call)
        shift = max(rows.length - 1, 0).bit_length()
        values, terms = _tables(float(call.attrs["scale_value"]), self.logarithm)
        one = math.ldexp(1.0, _ONE - shift)
        if self.logarithm:
            one = 1 / one
        elif call.output.dtype != "float32":
            one *= 2.0 ** (_LEVEL_BITS + 1) / call.attrs["y_scale"]
        return _Numbers(rows, shift, np.float32(one), terms, values)


_LARGER, _ADD, _LEVEL, _LOOK_UP, _DIFFERENCE = 2, 9, 14, 6, SINGLE["subtract"] - 8
"""Cycles of an element, measured in RTL: the larger of two, a term and the sum of 64 bits, a quantised result, an entry
of a table, a difference of negative numbers."""

_PAIR_WORK = 10
"""Of a row of two besides its accesses, measured in RTL."""

_RECIPROCAL = SINGLE["divide"] + 30
"""Of a row's sum as a float, and its reciprocal."""

_PAIR, _MOST, _ROWS = 2, 255, 4
"""Elements of a row whose results are tabulated, their greatest difference, and how many such rows a step takes."""

_UNROLLED = 16
"""The longest loop that clang unrolls wholly."""


def _tables(scale: float, logarithm: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return values in float32 and exponentials in integers, by how many levels an element is below the largest."""
    exponents = -np.arange(256) * scale
    powers = np.exp(exponents)
    return (exponents if logarithm else powers).astype(np.float32), np.rint(np.ldexp(powers, _ONE)).astype(np.uint32)


SOFTMAX_OF_LEVELS = SoftmaxOfLevels("SoftmaxOfLevels", logarithm=False)
LOG_SOFTMAX_OF_LEVELS = SoftmaxOfLevels("LogSoftmaxOfLevels", logarithm=True)
