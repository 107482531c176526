"""A normalisation's parameters of requantisation, from the sums of its channels, in integers.

A normalised channel is a line, and so is a requantisation: with the mean and the deviation of a row, K x + bias is
what its scale makes levels of. Rows are images of one channel, or of several that lie side by side::

    spread   N Σ x² - (Σ x)² + extra                 N² · (variance + epsilon), epsilon in squares of levels
    scale    |gain| N / (K √spread)                  24 bits
    bias     ± K Σ x / N + shift / scale             rounded once

A square has 15 bits; its sum is 128 Σ (x² / 128 - 64) + Σ (x² mod 128) + 8192 N. One reciprocal root a row, by a table
and three of Newton's steps, has 28 bits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_array
from tilewright.compiler.kernels.language.c_loops import INDENT
from tilewright.compiler.kernels.language.checked import CheckedKernel, Dims, Refused, at_most, required
from tilewright.compiler.kernels.language.core_cycles import LOOP, START, access_cycles
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.numerics import MANTISSA_BITS
from tilewright.isa.program import Call

__all__ = ["HALVES", "LONGEST_ROW", "PARAMETERS_OF_SUMS", "ParametersOfSums", "halves_of_squares"]

LONGEST_ROW = 1 << 16
"""Elements of a row, so that its sum of squares has 31 bits."""

HALVES = 3
"""Sums of a channel: of its levels, and of both halves of their squares."""

_HALF_BITS, _HALF_ZERO = 7, 64
_FRACTION = 8
"""Binary digits of a bias before it is rounded."""

_WORD, _TOP = 32, 30
_ROOT = 46
"""2**46 over the root of a number of 32 bits, whose upper two are not both 0, has 31 bits."""

_NEWTON, _STEPS = 28, 3
_FIRST = tuple(round(2.0**_ROOT / math.sqrt((each + 0.5) * 2.0**26)) if each >= 16 else 0
               for each in range(64))
"""By the upper six bits, of which the least that occur are 16."""

_MOST_SPREAD, _MOST_BIAS = 1 << 60, 1 << 30
_LEAST_GAIN = 2.0**-12
"""Levels that take the place of a gain of 0."""

_CALL, _ROW, _CHANNEL = 800, 136, 56
"""Cycles of a call, a row and a channel, besides accesses and loops, measured in RTL.

A call behind layers of the datapath takes up to 1,140, and one between calls of the core next to nothing.
"""


def halves_of_squares() -> tuple[np.ndarray, np.ndarray]:
    """Return the two value tables of squares, int8 of (256,), by 128 + x: the upper half less 64, and the lower."""
    squares = np.arange(-128, 128) ** 2
    return ((squares >> _HALF_BITS) - _HALF_ZERO).astype(np.int8), (squares & (1 << _HALF_BITS) - 1).astype(np.int8)


@dataclass(frozen=True, slots=True)
class _LineNumbers:
    """Constants of a call: rows and their length, the mean's factor, and mantissas and shifts of each channel."""

    rows: int
    length: int
    extra: int
    mean: int
    mean_shift: int
    negative: np.ndarray
    scales: np.ndarray
    scale_shifts: np.ndarray
    offsets: np.ndarray
    offset_shifts: np.ndarray


class ParametersOfSums(CheckedKernel):
    """The parameters of ``rows`` rows of ``length`` elements: int32 of (channels, 2), as ``ldw.parameters`` loads them.

    Input: int32 sums of (3 parts, channels), parts of the three sums of a channel one behind the other. ``gains`` and
    ``shifts`` are levels of the result, one each for a channel; ``weight`` is K, ``extra`` the spread's.
    """

    op = "ParametersOfSums"
    limits = "int32 sums of channels"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, ("int32",))
        if len(source.dims) != 2 or source.dims[0] % HALVES:
            raise Refused(f"{self.op} must have {HALVES} sums of each channel, not {source.dims!r}")
        self._numbers(call)
        return "int32", (source.dims[1], 2)

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        sums, numbers = arrays[0], self._numbers(call)
        assert sums is not None
        each = numbers.scales.size // numbers.rows
        found = sums.reshape(HALVES, -1, numbers.rows, each).astype(np.int64).sum(axis=(1, 3))
        squares = (found[1] + _HALF_ZERO * numbers.length << _HALF_BITS) + found[2]
        spread = (squares * numbers.length - found[0] * found[0] + numbers.extra).astype(np.uint64)
        root, top, half = _reciprocal_roots(spread)
        mean = found[0] * numbers.mean >> numbers.mean_shift
        width = (top * root >> np.uint64(_WORD)).astype(np.int64)
        root, half, mean, width = (np.repeat(each_row, each) for each_row in (root, half, mean, width))
        product = (numbers.scales.astype(np.uint64) * root >> np.uint64(_WORD)).astype(np.int64)
        wide = product >> _TOP - 1
        mantissa = product >> _TOP - 1 - MANTISSA_BITS + wide
        right = np.clip(numbers.offset_shifts - half, 0, 62)
        offset = numbers.offsets.astype(np.int64) * width >> right
        bias = np.where(numbers.negative, offset + mean, offset - mean) + (1 << _FRACTION - 1) >> _FRACTION
        scale = mantissa | numbers.scale_shifts + half - wide << MANTISSA_BITS
        return np.stack([bias, scale], axis=1).astype(np.uint32).view(np.int32)

    def c_body(self, call: Call, function: str) -> list[str]:
        numbers, (count, channels) = self._numbers(call), call.inputs[0].dims
        parts, each = count // HALVES, channels // numbers.rows
        (row, column), (pair, word) = call.inputs[0].strides, call.output.strides
        place = f"(part * {row} + c * {column})"
        adds = [f"{name} += in0[{index * parts * row} + {place}];"
                for index, name in enumerate(("sum", "upper", "lower"))]
        minus = "negative[c] ? offset + mean : offset - mean" if numbers.negative.any() else "offset - mean"
        newton = [(f"root = (uint32_t)((uint64_t)root * ({3 << _NEWTON}u - (uint32_t)((uint64_t)(uint32_t)("
                  f"(uint64_t)root * root >> {_WORD}) * top >> {_WORD})) >> {_NEWTON + 1});")] * _STEPS
        channel = [
            f"const uint32_t product = (uint32_t)((uint64_t)scales[c] * root >> {_WORD});",
            f"const uint32_t wide = product >> {_TOP - 1};",
            "int32_t right = offset_shifts[c] - half;",
            "right = right < 0 ? 0 : right > 62 ? 62 : right;",
            "const int64_t offset = (int64_t)offsets[c] * width >> right;",
            f"out[c * {pair}] = (int32_t)((({minus}) + {1 << _FRACTION - 1}) >> {_FRACTION});",
            (f"out[c * {pair} + {word}] = (int32_t)(product >> ({_TOP - 1 - MANTISSA_BITS} + wide) | "
            f"(uint32_t)(scale_shifts[c] + half - (int32_t)wide) << {MANTISSA_BITS});")]
        tables = {"scales": numbers.scales, "scale_shifts": numbers.scale_shifts, "offsets": numbers.offsets,
                  "offset_shifts": numbers.offset_shifts, "first": np.array(_FIRST, np.uint32)}
        if numbers.negative.any():
            tables["negative"] = numbers.negative.astype(np.uint8)
        loop = f"for (int32_t c = first_channel; c < first_channel + {each}; c++) {{"
        return [
            *(line for name, values in tables.items() for line in c_array(name, values)),
            f"for (int32_t first_channel = 0; first_channel < {channels}; first_channel += {each}) {{",
            *(INDENT + line for line in [
                "int32_t sum = 0, upper = 0, lower = 0;", loop,
                f"{INDENT}for (int32_t part = 0; part < {parts}; part++) {{",
                *(2 * INDENT + line for line in adds), f"{INDENT}}}", "}",
                (f"const uint32_t squares = ((uint32_t)(upper + {_HALF_ZERO * numbers.length}) << {_HALF_BITS}) + "
                "(uint32_t)lower;"),
                (f"const uint64_t spread = (uint64_t)squares * {numbers.length} - (uint64_t)((int64_t)sum * sum) + "
                f"{numbers.extra}ull;"),
                "uint32_t top = (uint32_t)(spread >> 32), rest = (uint32_t)spread;", "int32_t half = 16;",
                "if (top == 0) {", f"{INDENT}top = rest;", f"{INDENT}rest = 0;", f"{INDENT}half = 0;", "}",
                f"while (top < {1 << _TOP}u) {{", f"{INDENT}top = top << 2 | rest >> 30;", f"{INDENT}rest <<= 2;",
                f"{INDENT}half--;", "}",
                "uint32_t root = first[top >> 26];", *newton,
                f"root = root < {1 << _TOP}u ? {1 << _TOP}u : root > {1 << _TOP + 1}u ? {1 << _TOP + 1}u : root;",
                f"const int32_t width = (int32_t)((uint64_t)top * root >> {_WORD});",
                f"const int64_t mean = (int64_t){numbers.mean} * sum >> {numbers.mean_shift};",
                loop, *(INDENT + line for line in channel), "}"]), "}"]

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        numbers, (count, channels) = self._numbers(call), call.inputs[0].dims
        sums = count * channels * access_cycles(memory)
        return START + _CALL + sums + numbers.rows * _ROW + channels * (access_cycles(memory, 0, 2) + LOOP + _CHANNEL)

    def _numbers(self, call: Call) -> _LineNumbers:
        channels = call.inputs[0].dims[1]
        rows, length, extra = (int(call.attrs[name]) for name in ("rows", "length", "extra"))
        weight = int(call.attrs["weight"])
        gains, shifts = (np.array(call.attrs[name], np.float64) for name in ("gains", "shifts"))
        if gains.shape != (channels,) or shifts.shape != (channels,) or channels % rows \
                or not 0 < length <= LONGEST_ROW:
            raise Refused(f"{self.op} must have {channels} gains and shifts, and rows of up to {LONGEST_ROW} elements, "
                          f"not {gains.size}, {shifts.size} and {length}")
        if not (np.isfinite(gains).all() and np.isfinite(shifts).all() and 0 < extra < _MOST_SPREAD):
            raise Refused(f"{self.op} must have finite gains and shifts, and an epsilon that counts, not {extra}")
        size = np.where(gains == 0, _LEAST_GAIN, np.abs(gains))
        # A deviation is half of int8 at most, and what epsilon adds.
        most = weight * math.sqrt(127.5**2 + extra / length**2)
        if (np.abs(shifts) / size * most + 128 * weight).max() >= _MOST_BIAS:
            raise Refused(f"{self.op} must have gains that are not small beside its shifts")
        scales, scale_shifts = _mantissas(size / weight * length)
        offsets, offset_shifts = _mantissas(shifts / size * weight / length)
        mean_shift = _TOP - math.frexp(weight / length)[1]
        if not (scale_shifts > -20).all() or not (scale_shifts < 90).all() or not (offset_shifts > 12).all():
            raise Refused(f"{self.op} must have gains and shifts of some levels")
        return _LineNumbers(rows, length, extra, round(math.ldexp(weight / length, mean_shift)), mean_shift - _FRACTION,
                        gains < 0, scales.astype(np.uint32), scale_shifts + _TOP + 2 - _ROOT + 23, offsets,
                        offset_shifts + 14 - _FRACTION)


def _mantissas(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mantissas of 31 bits and a sign, int32, and shifts: values are mantissa · 2**-shift."""
    fractions, exponents = np.frexp(values)
    mantissas = np.clip(np.rint(fractions * 2.0**31), -2**31 + 1, 2**31 - 1)
    return mantissas.astype(np.int32), np.where(values == 0, 62, 31 - exponents).astype(np.int32)


def _reciprocal_roots(spread: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return 2**46 / √top, top and half the exponent of spreads, top · 4**half."""
    top, half = np.array(spread, np.uint64), np.zeros(spread.shape, np.int64)
    while (large := top >= 1 << _WORD).any():
        top, half = np.where(large, top >> np.uint64(2), top), half + large
    while (small := top < 1 << _TOP).any():
        top, half = np.where(small, top << np.uint64(2), top), half - small
    root = np.array(_FIRST, np.uint64)[(top >> np.uint64(26)).astype(np.int64)]
    for _ in range(_STEPS):
        square = (root * root >> np.uint64(_WORD)) * top >> np.uint64(_WORD)
        root = root * (np.uint64(3 << _NEWTON) - square) >> np.uint64(_NEWTON + 1)
    return np.clip(root, 1 << _TOP, 1 << _TOP + 1), top, half


PARAMETERS_OF_SUMS = ParametersOfSums()
