"""Local response normalisation of quantised values in integers: LRN between DequantizeLinear and QuantizeLinear.

Squares of levels are integers, and so is their sum over neighbouring channels, of at most 19 bits or so; it runs along
the channels. The factor (bias + alpha / size · scale² · sum) ** -beta is a smooth function of it: a table of up to 1024
parts, straight within each. How far that is from the true factor is known before anything is compiled.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_array
from tilewright.compiler.kernels.language.c_loops import loops, offset_text
from tilewright.compiler.kernels.language.checked import CheckedKernel, Dims, Refused, at_most, attribute, required
from tilewright.compiler.kernels.language.core_cycles import LOOP, ROW, START, access_cycles
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["RESPONSE_OF_LEVELS", "ResponseOfLevels"]

_BYTES = ("int8", "uint8")
_PARTS = 10
"""The most bits of a part's number."""

_MOST_NEIGHBOURS = 64
_BITS = range(24, 7, -1)
"""Fractional bits of a factor that are tried, best first."""

_CLOSE = 1 / 16
"""Of a level: how far results may be from those of the true factor."""

_CHECKED = 1 << 17
"""Sums that are compared with the true factor."""

_WORK, _CHANGE = 23, 5
"""Cycles of an element besides its accesses and its loop, and of a square that comes to a sum or leaves it; measured in
RTL, of 8 channels or more."""


@dataclass(frozen=True, slots=True)
class _Factors:
    """Factors with ``bits`` fractional bits, of sums in steps of ``1 << step``."""

    table: np.ndarray
    step: int
    bits: int

    def of(self, sums: np.ndarray) -> np.ndarray:
        """Return the factors of int64 ``sums``."""
        table = self.table.astype(np.int64)
        part, rest = sums >> self.step, sums & ((1 << self.step) - 1)
        return table[part] - ((table[part] - table[part + 1]) * rest >> self.step)


class ResponseOfLevels(CheckedKernel):
    """LRN of ``scale_value`` · (x - ``zero_point_value``), quantised by ``y_scale`` and ``y_zero_point``."""

    op = "ResponseOfLevels"
    limits = "int8 uint8, a positive bias, factors that 1024 straight segments approximate"
    exactness = "within one level"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, _BYTES)
        if call.output.dtype not in _BYTES or len(source.dims) < 3:
            raise Refused(f"{self.op} takes tensors of rank 3 or more to {' '.join(_BYTES)}, not {source.dims!r} to "
                          f"{call.output.dtype}")
        if _factors(call) is None:
            raise Refused(f"{self.op} must have factors that the segments of a table approximate")
        return call.output.dtype, source.dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        array, factors = arrays[0], _factors(call)
        assert array is not None
        assert factors is not None
        difference = array.astype(np.int64) - call.attrs["zero_point_value"]
        before, after = _neighbours(call)
        around = [(0, 0)] * array.ndim
        around[1] = before, after
        squares = np.pad(difference * difference, around)
        channels = array.shape[1]
        sums = sum((squares[:, k:k + channels] for k in range(before + after + 1)), np.zeros_like(difference))
        level = (difference * factors.of(sums) + (1 << factors.bits - 1)) >> factors.bits
        level += int(call.attrs["y_zero_point"])
        bounds = np.iinfo(call.output.dtype)
        return np.clip(level, bounds.min, bounds.max).astype(call.output.dtype)

    def c_body(self, call: Call, function: str) -> list[str]:
        source, target, factors = call.inputs[0], call.output, _factors(call)
        assert factors is not None
        before, after = _neighbours(call)
        channels, zero, bounds = source.dims[1], int(call.attrs["zero_point_value"]), np.iinfo(target.dtype)

        def pixel(indices: list[str]) -> list[str]:
            def place(strides: Dims, channel: str) -> str:
                return offset_text(0, strides, [indices[0], channel, *indices[2:]])

            def changed(channel: str, sign: str) -> str:
                return (f"const int32_t d = in0[{place(source.strides, f'({channel})')}] - {zero}; "
                        f"sum {sign}= d * d;")

            x, y = place(source.strides, "c"), place(target.strides, "c")
            part = f"(factors[part] - factors[part + 1]) * rest >> {factors.step}"
            scaled = f"((in0[{x}] - {zero}) * factor + {1 << factors.bits - 1}) >> {factors.bits}"
            return ["int32_t sum = 0;",
                    f"for (int32_t c = 0; c < {min(after, channels)}; c++) {{ {changed('c', '+')} }}",
                    f"for (int32_t c = 0; c < {channels}; c++) {{",
                    f"    if (c < {channels - after}) {{ {changed(f'c + {after}', '+')} }}",
                    f"    if (c > {before}) {{ {changed(f'c - {before + 1}', '-')} }}",
                    f"    const int32_t part = sum >> {factors.step}, rest = sum & {(1 << factors.step) - 1};",
                    f"    const int32_t factor = factors[part] - ({part});",
                    f"    const int32_t level = ({scaled}) + {int(call.attrs['y_zero_point'])};",
                    f"    const int32_t capped = level < {bounds.max} ? level : {bounds.max};",
                    f"    out[{y}] = capped > {bounds.min} ? capped : {bounds.min};",
                    "}"]

        dims = (source.dims[0], 1, *source.dims[2:])
        return [*c_array("factors", factors.table), *loops(dims, pixel)]

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        before, _ = _neighbours(call)
        channels = call.inputs[0].dims[1]
        changes = channels + max(0, channels - before - 1)
        element = access_cycles(memory, 1, 1) + LOOP + _WORK
        pixel = ROW + channels * element + changes * (access_cycles(memory) + _CHANGE)
        return START + call.output.elements // channels * pixel


def _neighbours(call: Call) -> tuple[int, int]:
    """Return how many channels before and behind an element count."""
    size = int(call.attrs["size"])
    return (size - 1) // 2, size - 1 - (size - 1) // 2


def _factors(call: Call) -> _Factors | None:
    size = int(call.attrs["size"])
    numbers = (float(call.attrs["scale_value"]), float(call.attrs["y_scale"]), float(attribute(call, "alpha", 1e-4)),
               float(attribute(call, "beta", 0.75)), float(attribute(call, "bias", 1.0)))
    if not 1 <= size <= _MOST_NEIGHBOURS or not all(map(math.isfinite, numbers)):
        return None
    bounds, zero = np.iinfo(call.inputs[0].dtype), int(call.attrs["zero_point_value"])
    return _table(numbers, size, max(bounds.max - zero, zero - bounds.min))


@lru_cache(maxsize=256)
def _table(numbers: tuple[float, float, float, float, float], size: int, largest: int) -> _Factors | None:
    """Return factors for levels of up to ``largest`` in size that are close enough, if there are such."""
    scale, y_scale, alpha, beta, bias = numbers
    most = size * largest * largest
    if scale <= 0 or y_scale <= 0 or bias <= 0 or alpha < 0:
        return None

    def true(sums: np.ndarray) -> np.ndarray:
        return np.asarray(scale / y_scale * (bias + alpha / size * scale * scale * sums) ** -beta)

    step = max(0, most.bit_length() - _PARTS)
    ends = true(np.arange((most >> step) + 2, dtype=np.float64) * (1 << step))
    sums = np.unique(np.linspace(0, most, min(most + 1, _CHECKED)).astype(np.int64))
    for bits in _BITS:
        exact = np.rint(np.ldexp(ends, bits))
        if exact.max() * largest >= 2**30 or np.abs(np.diff(exact)).max() * (1 << step) >= 2**31:
            continue
        found = _Factors(exact.astype(np.int32), step, bits)
        off = np.abs(np.ldexp(found.of(sums).astype(np.float64), -bits) - true(sums))
        # A level's own square is part of its sum.
        return found if np.all(off * np.minimum(np.sqrt(sums), largest) <= _CLOSE) else None
    return None


RESPONSE_OF_LEVELS = ResponseOfLevels()
