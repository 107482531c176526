"""Sums of products of float32 in whole numbers: a mantissa each by the largest of all, and a sum of 64 bits.

A number x becomes the whole number nearest to x · 2^(29 - e), where 2^e is the power of two of the largest, so that
each is off by half at most. A sum of n products of two such numbers is then off by n · 2^30, and is taken if it is
2^17 times that: within 2^-17 of its size, 7.6e-6. Others are summed up in floats, as is everything that is odd:
infinite, no number, or at the ends of float32's range. A product takes a sixth of the cycles of soft floats.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["FIXED_NUMBER_CYCLES", "FIXED_PRODUCT_CYCLES", "FIXED_RESULT_CYCLES", "FIXED_SUM_HELPERS", "UNKNOWN_SUMS",
           "FixedSum", "fixed_numbers", "largest_exponent", "scratch_name"]

FIXED_NUMBER_CYCLES, FIXED_PRODUCT_CYCLES, FIXED_RESULT_CYCLES = 30, 17, 175
"""Of making a number whole, of a product with its loop and loads, and of making a float of a sum."""

UNKNOWN_SUMS = .03
"""Part of the sums that are too small, as of normally distributed numbers."""

_BITS = 30
"""Of a whole number's size."""

_FREE_BITS = 3
"""So many bits are left above a product in 64, for a sum of eight."""

_ACCURACY = 17
"""Bits of a sum that are right."""

_EXPONENTS = range(70, 185)
"""Of the largest number, as float32 has them: products, and what is cut off, are then normal numbers."""

_SCRATCH_WORDS = (1 << 12, 1 << 15)
"""Sizes of memory for whole numbers; all calls share those of a size."""


@dataclass(frozen=True, slots=True)
class FixedSum:
    """A sum of ``count`` products."""

    count: int

    @property
    def shift(self) -> int:
        """Bits that are cut off each product, so that the sum fits 64."""
        return max(0, (self.count - 1).bit_length() - _FREE_BITS)

    @property
    def least(self) -> int:
        """The size of the smallest sum that is accurate."""
        return self.count << max(0, _BITS - self.shift) + _ACCURACY

    @property
    def start(self) -> int:
        """The float32 exponent of a unit, less the exponents of both operands' largest numbers."""
        return self.shift - 2 * (127 + _BITS - 1) + 127

    def floats(self, sums: np.ndarray, exponents: np.ndarray) -> np.ndarray:
        """Return int64 ``sums`` as float32; ``exponents`` are int32, the sums of both operands'."""
        unit = np.asarray((exponents + self.start) << 23, np.int32).view(np.float32)
        with np.errstate(all="ignore"):     # of what is not known
            return sums.astype(np.float32) * unit

    def known(self, sums: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return which ``sums`` are accurate, by the exponents of both operands' largest numbers."""
        inside = [(each >= _EXPONENTS.start) & (each < _EXPONENTS.stop) for each in (left, right)]
        return inside[0] & inside[1] & (np.abs(sums) > self.least)

    def c_result(self, left: str, right: str) -> tuple[str, str]:
        """Return C for whether ``wide`` is accurate, and for its float."""
        inside = [f"(uint32_t)({each} - {_EXPONENTS.start}) < {len(_EXPONENTS)}u" for each in (left, right)]
        known = f"{' && '.join(inside)} && (wide > {self.least}LL || wide < -{self.least}LL)"
        unit = f"tw_float((int32_t)((uint32_t)({left} + {right} - {-self.start}) << 23))"
        return known, f"(float)wide * {unit}"


def largest_exponent(x: np.ndarray, axes: tuple[int, ...] | None = None) -> np.ndarray:
    """Return the largest of the exponents of float32 ``x`` along ``axes``, which stay, as float32 has them: int32."""
    return (x.view(np.int32) >> 23 & 255).max(axis=axes, keepdims=axes is not None, initial=0)


def fixed_numbers(x: np.ndarray, top: np.ndarray) -> np.ndarray:
    """Return float32 ``x`` as whole numbers, int64, by the exponent of the largest; numbers below the normal are 0."""
    bits = x.view(np.int32)
    exponent = bits >> 23 & 255
    mantissa = np.where(exponent > 0, bits & 0x7F_FFFF | 0x80_0000, 0).astype(np.int64)
    right = np.clip(top - exponent - (_BITS - 24), -31, 31)
    size = np.where(right <= 0, mantissa << np.maximum(-right, 0),
                    mantissa + (np.int64(1) << np.maximum(right - 1, 0)) >> np.maximum(right, 0))
    return np.where(bits < 0, -size, size)


def scratch_name(words: int) -> str | None:
    """Return the name of memory, as a C array of int32, that has ``words``; None if there is none so large."""
    return next((f"tw_scratch_{size}" for size in _SCRATCH_WORDS if words <= size), None)


_LARGEST = """\
/* The larger of `top` and the exponent of x. */
static inline int32_t tw_larger_exponent(int32_t top, float x)
{
    const int32_t exponent = tw_bits(x) >> 23 & 255;
    return exponent > top ? exponent : top;
}"""

_FIXED = f"""\
/* x as a whole number of {_BITS} bits, by the exponent of the largest number beside it. */
static inline int32_t tw_fixed(float x, int32_t top)
{{
    const int32_t bits = tw_bits(x), exponent = bits >> 23 & 255, right = top - exponent - {_BITS - 24};
    if (!exponent || right > 24)
        return 0;
    const int32_t mantissa = (bits & 0x7fffff) | 0x800000;
    const int32_t size = right > 0 ? (mantissa + (1 << (right - 1))) >> right : mantissa << -right;
    return bits < 0 ? -size : size;
}}"""

FIXED_SUM_HELPERS = {
    "tw_larger_exponent": _LARGEST, "tw_fixed": _FIXED,
    **{f"tw_scratch_{size}": f"/* Whole numbers of one call. */\n"
                             f'static int32_t tw_scratch_{size}[{size}] __attribute__((section(".noinit")));'
       for size in _SCRATCH_WORDS}}
"""Text by name of the C functions and memory of such sums; the functions need ``tw_bits``."""
