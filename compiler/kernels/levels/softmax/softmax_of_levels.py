"""Softmax of quantised values: a table of exponentials, and their sum in integers.

A float result takes one product per element, in a long row one per level, made of integers (`scaled_table.py`); a
quantised one takes an integer product.

ONNX Runtime makes one operator of a softmax and its quantisation (QLinearSoftmax), which multiplies by the whole part
of 1 / y_scale: 254 for a scale of 1/255. So does this one. Source: ``qlinear_softmax.cc`` of ONNX Runtime.
"""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_array, c_constant
from tilewright.compiler.kernels.language.core_cycles import ROW, SINGLE
from tilewright.compiler.kernels.levels.scaled_table import ScaledTable
from tilewright.compiler.kernels.levels.softmax.softmax_kernel import ONE, SoftmaxKernel
from tilewright.isa.program import Call

__all__ = ["SOFTMAX_OF_LEVELS", "SoftmaxOfLevels"]

_MOST_LEVEL_BITS = 22
"""Fractional bits of a quantised result before it is rounded, at most: then a reciprocal of 255 steps has 31 bits."""

_LEVEL, _LOOK_UP = 17, 6
"""Cycles of an element, measured in RTL: a quantised result, an entry of a table."""

_RECIPROCAL = SINGLE["divide"] + 30
"""Of a row's sum as a float, and its reciprocal."""


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The factor of a sum's reciprocal, and the terms of results by how far an element's level is below the largest.

    Quantised results have ``level_bits`` fractional bits before they are rounded.
    """

    unit: np.float32
    values: np.ndarray
    level_bits: int = 0


class SoftmaxOfLevels(SoftmaxKernel):
    """Softmax of ``scale_value`` · x, in float32, or by ``y_scale`` and ``y_zero_point`` in the type of x."""

    op = "SoftmaxOfLevels"
    limits = "int8 uint8 to float32, int8 or uint8; rows of up to 8192 elements"
    exactness = "relative 1e-5, quantised within one level"

    def _last(self, call: Call, below: np.ndarray, sums: np.ndarray) -> np.ndarray:
        numbers = self._numbers(call)
        total = (sums >> np.uint64(self._shift(call))).astype(np.uint32)
        factor = numbers.unit / total.astype(np.float32)
        if call.output.dtype == "float32":
            return ScaledTable(numbers.values).times(below, factor)
        terms = self._row_numbers(call).terms
        product = terms[below].astype(np.uint64) * factor.astype(np.int32).astype(np.uint64)
        bits = numbers.level_bits
        level = ((product >> np.uint64(32)).astype(np.int32) + (1 << bits - 1)) >> bits
        level += np.int32(call.attrs["y_zero_point"])
        return np.minimum(level, np.iinfo(call.output.dtype).max).astype(call.output.dtype)

    def _c_tables(self, call: Call) -> list[str]:
        if call.output.dtype != "float32":
            return c_array("terms", self._row_numbers(call).terms)
        return ScaledTable(self._numbers(call).values).c_tables()

    def _c_row(self, call: Call) -> list[str]:
        factor = f"{c_constant(self._numbers(call).unit)} / (float)(uint32_t)(sum >> {self._shift(call)})"
        if call.output.dtype != "float32":
            return [f"const uint32_t factor = (uint32_t)(int32_t)({factor});"]
        return [f"const float factor = {factor};", *ScaledTable.c_factor()]

    def _c_result(self, call: Call, index: str, target: str) -> list[str]:
        numbers = self._numbers(call)
        if call.output.dtype == "float32":
            return ScaledTable(numbers.values).c_times(index, target)
        bits, zero, most = numbers.level_bits, call.attrs["y_zero_point"], np.iinfo(call.output.dtype).max
        return [f"const int32_t scaled = (int32_t)((uint64_t)terms[{index}] * factor >> 32);",
                f"const int32_t level = ((scaled + {1 << bits - 1}) >> {bits}) + {zero};",
                f"{target} = level < {most} ? level : {most};"]

    def helpers(self, call: Call) -> tuple[str, ...]:
        pairs = self._row_numbers(call).rows.length == 2
        return () if pairs or call.output.dtype != "float32" else ScaledTable.helpers()

    def _cycles(self, call: Call) -> tuple[float, float]:
        if call.output.dtype != "float32":
            return _LEVEL, ROW + _RECIPROCAL + 20
        return _LOOK_UP + ScaledTable.cycles(), ROW + _RECIPROCAL

    def _shift(self, call: Call) -> int:
        """Return by how many bits a sum is shifted, so that it has 32."""
        numbers = self._row_numbers(call)
        return 0 if numbers.short else numbers.shift

    def _numbers(self, call: Call) -> _Numbers:
        values = np.exp(-np.arange(256) * float(call.attrs["scale_value"])).astype(np.float32)
        one, bits = math.ldexp(1.0, ONE - self._row_numbers(call).shift), 0
        if call.output.dtype != "float32":
            steps = int(np.floor(np.float32(1) / np.float32(call.attrs["y_scale"])))
            bits = min(_MOST_LEVEL_BITS, (((1 << 31) - 1) // max(steps, 1)).bit_length() - 2)
            one *= math.ldexp(steps, bits + 1)
        return _Numbers(np.float32(one), values, bits)


SOFTMAX_OF_LEVELS = SoftmaxOfLevels()
