"""Softmax of words of 16 bits: exponentials of two tables, and their sum in integers.

An element is ``256 h + l`` levels below the row's largest: its exponential is exp(-256 h · scale) · exp(-l · scale),
tables of 256 entries with 31 fractional bits each. A result is an integer product of that and of the sum's reciprocal,
a float32: three roundings of 2⁻²⁴ and the product's bits are within a twentieth of a level before it is rounded.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_array, c_constant, ctype
from tilewright.compiler.kernels.language.c_loops import INDENT
from tilewright.compiler.kernels.language.checked import CheckedKernel, Dims, Refused, at_most, required
from tilewright.compiler.kernels.language.core_cycles import ROW, SINGLE, START, access_cycles
from tilewright.compiler.kernels.language.rows import Rows
from tilewright.compiler.kernels.operators.softmax import rows_of
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["SOFTMAX_OF_WORDS", "SoftmaxOfWords"]

_WORDS = ("int16", "uint16")
_ONE = 31
_BYTE = 256
_LONGEST = 1 << 10
_MOST_BITS = 22
_LARGEST_SCALE, _SMALLEST_SCALE = 2.0**10, 2.0**-17
_ELEMENT, _UNROLLED_ELEMENT, _UNROLLED = 52, 37, 8
"""Cycles of an element besides its accesses, measured in RTL, and in rows of up to so many, whose loops the compiler
unrolls."""

_ROW_WORK = ROW + SINGLE["divide"] + 40


@dataclass(frozen=True, slots=True)
class _WordNumbers:
    """The rows, both tables, what a reciprocal is multiplied by, and fractional bits of a level before its rounding."""

    rows: Rows
    high: np.ndarray
    low: np.ndarray
    unit: np.float32
    bits: int


class SoftmaxOfWords(CheckedKernel):
    """Softmax of ``scale_value`` · x by ``y_scale`` and ``y_zero_point``, in the type of x."""

    op = "SoftmaxOfWords"
    limits = "int16 uint16; rows of up to 1024 elements"
    exactness = "within one level"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source, scale, levels = required(call, 0, _WORDS), call.attrs["scale_value"], call.attrs["y_scale"]
        if not 0 < scale <= _LARGEST_SCALE or rows_of(call).length > _LONGEST:
            raise Refused(f"{self.op} must have a positive scale and rows of up to {_LONGEST} elements, not {scale!r} "
                          f"and {rows_of(call).length}")
        if not _SMALLEST_SCALE <= levels <= 1 or call.output.dtype not in _WORDS:
            raise Refused(f"{self.op} is quantised to {' '.join(_WORDS)} by a scale from {_SMALLEST_SCALE} to 1, "
                          f"not to {call.output.dtype} by {levels!r}")
        if not np.iinfo(call.output.dtype).min <= call.attrs["y_zero_point"] <= np.iinfo(call.output.dtype).max:
            raise Refused(f"{self.op} must have a zero point that is {call.output.dtype}, "
                          f"not {call.attrs['y_zero_point']!r}")
        return call.output.dtype, source.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array = arrays[0]
        assert array is not None
        numbers = _numbers(call)
        split = numbers.rows.split(array).astype(np.int64)
        below = split.max(axis=0) - split
        terms = numbers.high[below >> 8].astype(np.uint64) * numbers.low[below & 255].astype(np.uint64)
        terms >>= np.uint64(_ONE)
        total = terms.sum(axis=0, dtype=np.uint64) >> np.uint64(_shift(numbers.rows))
        factor = (numbers.unit / total.astype(np.uint32).astype(np.float32)).astype(np.int32).astype(np.uint64)
        scaled = (terms * factor >> np.uint64(32)).astype(np.int32)
        level = (scaled + (1 << numbers.bits - 1) >> numbers.bits) + call.attrs["y_zero_point"]
        found = np.minimum(level, np.iinfo(call.output.dtype).max).astype(call.output.dtype)
        return np.ascontiguousarray(numbers.rows.joined(found))

    def c_body(self, call: Call, function: str) -> list[str]:
        del function
        numbers = _numbers(call)
        rows, source, length = numbers.rows, call.inputs[0], numbers.rows.length
        kind, least, most = ctype(source.dtype), np.iinfo(source.dtype).min, np.iinfo(call.output.dtype).max
        bits, zero = numbers.bits, call.attrs["y_zero_point"]
        each = f"for (uint32_t k = 0; k < {length}; k++) {{"

        def row(indices: list[str]) -> list[str]:
            def load(inner: list[str]) -> list[str]:
                return [f"const int32_t each = {rows.element('in0', source, indices, inner)};",
                        "*next++ = each, top = each > top ? each : top;"]

            def store(inner: list[str]) -> list[str]:
                return ["const int32_t scaled = (int32_t)((uint64_t)terms[k++] * factor >> 32);",
                        f"const int32_t level = ((scaled + {1 << bits - 1}) >> {bits}) + {zero};",
                        f"{rows.element('out', call.output, indices, inner)} = level < {most} ? level : {most};"]

            return [f"int32_t top = {least}; {kind} *next = x;", *rows.each_element(load),
                    "uint64_t sum = 0;", each, *(INDENT + line for line in (
                        "const uint32_t below = (uint32_t)(top - x[k]);",
                        f"const uint32_t term = (uint32_t)((uint64_t)high[below >> 8] * low[below & 255] >> {_ONE});",
                        "terms[k] = term, sum += term;")), "}",
                    f"const float total = (float)(uint32_t)(sum >> {_shift(rows)});",
                    f"const uint32_t factor = (uint32_t)(int32_t)({c_constant(numbers.unit)} / total);",
                    "uint32_t k = 0;", *rows.each_element(store)]

        return [*c_array("high", numbers.high), *c_array("low", numbers.low), f"static {kind} x[{length}];",
                f"static uint32_t terms[{length}];", *rows.each_row(row)]

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        rows = rows_of(call)
        element = _UNROLLED_ELEMENT if rows.length <= _UNROLLED else _ELEMENT
        element += access_cycles(memory) + access_cycles(memory, 0, 1)
        return START + rows.count * (_ROW_WORK + rows.length * element)


def _shift(rows: Rows) -> int:
    """Return by how many bits a sum is shifted, so that it has 32."""
    return max(rows.length - 1, 0).bit_length()


def _numbers(call: Call) -> _WordNumbers:
    rows, scale = rows_of(call), float(call.attrs["scale_value"])
    high, low = (np.rint(np.ldexp(np.exp(-np.arange(_BYTE) * each), _ONE)).astype(np.uint32)
                 for each in (_BYTE * scale, scale))
    steps = 1 / np.float64(np.float32(call.attrs["y_scale"]))
    # A factor is at most twice `steps` of this many more bits, and an int32.
    bits = min(_MOST_BITS, math.floor(math.log2(((1 << 31) - 1) / steps)) - 1)
    return _WordNumbers(rows, high, low, np.float32(math.ldexp(steps, bits + 32 - _shift(rows))), bits)


SOFTMAX_OF_WORDS = SoftmaxOfWords()
