"""LogSoftmax of quantised values in whole numbers: a table of distances, and the logarithm of a row's sum.

An element that is ``k`` levels below its row's largest has the result -(k · scale + log Σ exp(-k' · scale)), a sum of
two fixed-point numbers. It is rounded to a float32, or to a level.

The logarithm takes one of 64 points near the sum, whose own is known, and three terms of the series of what is left::

    log(m) = log(c) + r - r² / 2 + r³ / 3        r = m / c - 1, at most 1/128

What is left out is below 2**-29, and all roundings together below 2**-25.
"""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_array
from tilewright.compiler.kernels.language.c_loops import INDENT
from tilewright.compiler.kernels.language.checked import Dims, Refused
from tilewright.compiler.kernels.language.core_cycles import ROW
from tilewright.compiler.kernels.levels.softmax.softmax_kernel import LONGEST, ONE, SoftmaxKernel
from tilewright.isa.program import Call

__all__ = ["LOG_SOFTMAX_OF_LEVELS"]

_POINTS = 64
_SUM_BITS, _SERIES_BITS = 27, 30
"""Fractional bits of a sum's logarithm, which is below 16, and of the series."""

_LN_2 = round(math.log(2) * (1 << _SUM_BITS))
_THIRD = (1 << 32) // 3
"""Of r · r² / 2 two thirds are r³ / 3."""

_LEAST_BITS = 22
"""Fractional bits of a float result before it is rounded, and of a level 12 fewer."""

_SIGN, _BIAS, _MANTISSA = 1 << 31, 127, 23

_FLOAT, _LEVEL, _LOGARITHM = 33, 13, 60
"""Cycles of an element's result, and of the logarithm of a row's sum, measured in RTL."""


@dataclass(frozen=True, slots=True)
class _LogNumbers:
    """Distances by levels below the largest with ``bits`` fractional bits, and what a logarithm is multiplied by."""

    distances: np.ndarray
    factor: int
    bits: int

    @classmethod
    def of(cls, call: Call) -> "_LogNumbers":
        """Return those of a call, whose results are counted in levels or in ones."""
        scale, unit = float(call.attrs["scale_value"]), 1.0
        if call.output.dtype != "float32":
            unit = 1 / float(call.attrs["y_scale"])
        largest = (255 * scale + math.log(LONGEST) + 0.1) * unit
        bits = min(30, 31 - math.frexp(largest)[1])
        distances = np.rint(np.ldexp(np.arange(256) * scale * unit, bits)).astype(np.uint32)
        return cls(distances, round(math.ldexp(unit, bits + 32 - _SUM_BITS)), bits)


class LogSoftmaxOfLevels(SoftmaxKernel):
    """LogSoftmax of ``scale_value`` · x, in float32, or by ``y_scale`` and ``y_zero_point`` in bytes."""

    op = "LogSoftmaxOfLevels"
    limits = "int8 uint8 to float32, int8 or uint8; rows of up to 8192 elements, levels of up to 1.9"
    exactness = "absolute 1e-6 before rounding, quantised within one level"

    def result(self, call: Call) -> tuple[str, Dims]:
        found = super().result(call)
        least = _LEAST_BITS if call.output.dtype == "float32" else _LEAST_BITS - 12
        if _LogNumbers.of(call).bits < least:
            raise Refused(f"{self.op} must have a scale that leaves {least} fractional bits, not "
                          f"{call.attrs['scale_value']!r}")
        return found

    def _last(self, call: Call, below: np.ndarray, sums: np.ndarray) -> np.ndarray:
        numbers = _LogNumbers.of(call)
        logarithm = _logarithms(sums) - self._one(call) * _LN_2
        sizes = numbers.distances[below].astype(np.int64) + (np.maximum(logarithm, 0) * numbers.factor >> 32)
        if call.output.dtype == "float32":
            return _floats(sizes, numbers.bits)
        kind = np.iinfo(call.output.dtype)
        level = call.attrs["y_zero_point"] - (sizes + (1 << numbers.bits - 1) >> numbers.bits)
        return np.maximum(level, kind.min).astype(kind.dtype)

    def _c_tables(self, call: Call) -> list[str]:
        return [*c_array("inverses", _INVERSES), *c_array("logarithms", _LOGARITHMS),
                *c_array("distances", _LogNumbers.of(call).distances)]

    def _c_row(self, call: Call) -> list[str]:
        wide = [] if self._row_numbers(call).short else ["while (sum >> 32)", f"{INDENT}sum >>= 1, power++;"]
        return ["uint32_t power = 31;", *wide, "uint32_t near = (uint32_t)sum;",
                "while ((int32_t)near > 0)", f"{INDENT}near <<= 1, power--;",
                f"const uint32_t point = near >> 25 & {_POINTS - 1};",
                f"const int32_t left = (int32_t)((uint64_t)near * inverses[point] >> 32) - {1 << _SERIES_BITS};",
                f"const int32_t half = (int32_t)((int64_t)left * left >> {_SERIES_BITS + 1});",
                f"const int32_t cube = (int32_t)((int64_t)half * left >> {_SERIES_BITS});",
                f"const int32_t third = (int32_t)((int64_t)cube * {2 * _THIRD} >> 32);",
                "const int32_t series = logarithms[point] + left - half + third;",
                f"const int32_t whole = ((int32_t)power - {self._one(call)}) * {_LN_2};",
                f"const int32_t found = whole + (series >> {_SERIES_BITS - _SUM_BITS});",
                "const uint64_t above = (uint32_t)(found > 0 ? found : 0);",
                f"const uint32_t offset = (uint32_t)(above * {_LogNumbers.of(call).factor}u >> 32);"]

    def _c_result(self, call: Call, index: str, target: str) -> list[str]:
        bits = _LogNumbers.of(call).bits
        if call.output.dtype == "float32":
            return [f"uint32_t size = distances[{index}] + offset;", "const uint32_t zeros = tw_zeros[size >> 24];",
                    f"uint32_t place = {_place(bits)}u - (zeros << {_MANTISSA});", "size <<= zeros;",
                    "while ((int32_t)size > 0)", f"{INDENT}size <<= 1, place -= {1 << _MANTISSA};",
                    f"{target} = tw_float(size ? (int32_t)(place + (size >> 8) + (size >> 7 & 1)) : 0);"]
        zero, least = call.attrs["y_zero_point"], np.iinfo(call.output.dtype).min
        return [f"const int32_t level = {zero} - (int32_t)((distances[{index}] + offset + {1 << bits - 1}) >> {bits});",
                f"{target} = level > {least} ? level : {least};"]

    def _one(self, call: Call) -> int:
        """Return the power of two that stands for 1 in a sum."""
        numbers = self._row_numbers(call)
        return ONE - numbers.shift if numbers.short else ONE

    def helpers(self, call: Call) -> tuple[str, ...]:
        pairs = self._row_numbers(call).rows.length == 2
        return () if pairs or call.output.dtype != "float32" else ("tw_float", "tw_zeros")

    def _cycles(self, call: Call) -> tuple[float, float]:
        return _FLOAT if call.output.dtype == "float32" else _LEVEL, ROW + _LOGARITHM


def _place(bits: int) -> int:
    """Return sign and exponent of a negative float of a number below 2**32 with ``bits`` fractional bits.

    They are one less, as a mantissa of 24 bits is added.
    """
    return _SIGN + (_BIAS + 31 - bits - 1 << _MANTISSA)


def _logarithms(sums: np.ndarray) -> np.ndarray:
    """Return the logarithms of uint64 above 0, below 2**48, int64 with `_SUM_BITS` fractional bits."""
    wide = sums.astype(np.int64)
    power = np.frexp(wide.astype(np.float64))[1].astype(np.int64) - 1
    near = wide << np.maximum(31 - power, 0) >> np.maximum(power - 31, 0)
    point = near >> 25 & _POINTS - 1
    left = (near * _INVERSES[point].astype(np.int64) >> 32) - (1 << _SERIES_BITS)
    half = left * left >> _SERIES_BITS + 1
    third = (half * left >> _SERIES_BITS) * 2 * _THIRD >> 32
    series = _LOGARITHMS[point].astype(np.int64) + left - half + third
    return np.asarray(power * _LN_2 + (series >> _SERIES_BITS - _SUM_BITS))


def _floats(sums: np.ndarray, bits: int) -> np.ndarray:
    """Return int64 below 2**31 with ``bits`` fractional bits as float32, their signs turned; halves are rounded up."""
    power = np.maximum(np.frexp(sums.astype(np.float64))[1].astype(np.int64) - 1, 0)
    size = sums << 31 - power
    found = _place(bits) - (31 - power << _MANTISSA) + (size >> 8) + (size >> 7 & 1)
    return np.where(sums > 0, found, 0).astype(np.uint32).view(np.float32)


_CENTRES = 1 + (2 * np.arange(_POINTS) + 1) / (2 * _POINTS)
_INVERSES = np.rint(np.ldexp(1 / _CENTRES, 31)).astype(np.uint32)
_LOGARITHMS = np.rint(np.ldexp(-np.log(np.ldexp(_INVERSES.astype(np.float64), -31)), _SERIES_BITS)).astype(np.int32)
"""Of the rounded inverse, so that its rounding counts nothing."""

LOG_SOFTMAX_OF_LEVELS = LogSoftmaxOfLevels()
