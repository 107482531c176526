"""Softmax of quantised values as TensorFlow Lite's kernels compute it, in whole numbers; see `softmax_steps`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_array
from tilewright.compiler.kernels.language.c_loops import INDENT
from tilewright.compiler.kernels.language.checked import CheckedKernel, Dims, Refused, at_most, required
from tilewright.compiler.kernels.language.core_cycles import ROW, START
from tilewright.compiler.kernels.language.rows import Rows
from tilewright.compiler.kernels.levels.softmax.softmax_rows import c_loaded, c_stored, load_cycles, store_cycles
from tilewright.compiler.kernels.levels.softmax.softmax_steps import NEWTON_SLOPE, NEWTON_START
from tilewright.compiler.kernels.operators.softmax import rows_of
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["SOFTMAX_IN_INTEGERS"]

_LONGEST = 1 << 12
"""Elements of a row, so that a sum has 32 bits."""

_NUDGE, _ONE = 1 << 30, 1 << 31

_ELEMENT, _RECIPROCAL = 30, 150
"""Cycles of an element's term and result, and of a row's reciprocal, besides accesses."""

_C_RECIPROCAL = (
    "const int32_t zeros = __builtin_clz(sum);",
    "const int64_t half = (uint32_t)(sum << zeros) >> 1;",
    f"int64_t near = {NEWTON_START} - ((half * {NEWTON_SLOPE} + {_NUDGE - 1}) >> 31);",
    "for (int32_t step = 0; step < 3; step++) {",
    f"{INDENT}const int64_t wrong = near * ({1 << 29} - ((half * near + {_NUDGE}) >> 31));",
    f"{INDENT}near += 4 * ((wrong + {_NUDGE}) >> 31);", "}",
    f"const uint32_t scale = near >= {_NUDGE} ? {_ONE - 1}u : (uint32_t)(2 * near);",
    "const int32_t down = 35 - zeros;",
    "const uint32_t rounding = 1u << (down - 1);",
)


@dataclass(frozen=True, slots=True)
class _Terms:
    """The rows of a call, and its terms by how many levels an element is below the largest: uint32 of (256,)."""

    rows: Rows
    terms: np.ndarray

    @property
    def summed(self) -> np.ndarray:
        """The terms as they are added."""
        return ((self.terms.astype(np.uint64) + (1 << 11)) >> np.uint64(12)).astype(np.uint32)


class SoftmaxInIntegers(CheckedKernel):
    """Softmax by the ``terms`` of an element, by how many levels it is below its row's largest."""

    op = "SoftmaxInIntegers"
    limits = "int8 with the zero point -128; rows of up to 4096 elements"
    exactness = "exact"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source, terms = required(call, 0, ("int8",)), call.attrs["terms"]
        if rows_of(call).length > _LONGEST or len(terms) != 256 or not all(0 <= each < _ONE for each in terms) \
                or terms[0] != _ONE - 1:
            raise Refused(f"{self.op} must have rows of up to {_LONGEST} elements, and 256 terms of 31 bits, of which "
                          "the first is the largest")
        return "int8", source.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array = arrays[0]
        assert array is not None
        numbers = _numbers(call)
        split = numbers.rows.split(array).astype(np.int64)
        below = split.max(axis=0) - split
        total = numbers.summed[below].sum(axis=0, dtype=np.int64)
        zeros = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
        half = (total << zeros) >> 1
        near = NEWTON_START - ((half * NEWTON_SLOPE + _NUDGE - 1) >> 31)
        for _ in range(3):
            near += 4 * ((near * ((1 << 29) - ((half * near + _NUDGE) >> 31)) + _NUDGE) >> 31)
        product = (numbers.terms.astype(np.int64)[below] * np.minimum(2 * near, _ONE - 1) + _NUDGE) >> 31
        shift = 35 - zeros
        levels = np.minimum(((product + (np.int64(1) << shift - 1)) >> shift) - 128, 127).astype(np.int8)
        return np.ascontiguousarray(numbers.rows.joined(levels))

    def c_body(self, call: Call, function: str) -> list[str]:
        numbers = _numbers(call)
        rows, source = numbers.rows, call.inputs[0]

        def row(indices: list[str]) -> list[str]:
            each = f"for (uint32_t k = 0; k < {rows.length}; k++)"
            return [*c_loaded(rows, source, indices), "int32_t top = -128;",
                    each, f"{INDENT}top = x[k] > top ? x[k] : top;",
                    "uint32_t sum = 0;", each, f"{INDENT}sum += summed[top - x[k]];", *_C_RECIPROCAL,
                    *c_stored(rows, call, indices, [
                        f"const uint32_t part = (uint32_t)(((uint64_t)terms[top - x[k]] * scale + {_NUDGE}) >> 31);",
                        "const int32_t level = (int32_t)((part + rounding) >> down) - 128;",
                        "y = level < 127 ? level : 127;"])]

        return [*c_array("summed", numbers.summed), *c_array("terms", numbers.terms), *rows.each_row(row)]

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        rows = _numbers(call).rows
        row = ROW + _RECIPROCAL + load_cycles(rows, call.inputs[0], memory) + store_cycles(rows, call.output, memory)
        return START + int(rows.count * (rows.length * _ELEMENT + row))


def _numbers(call: Call) -> _Terms:
    return _Terms(rows_of(call), np.array(call.attrs["terms"], np.uint32))


SOFTMAX_IN_INTEGERS = SoftmaxInIntegers()
