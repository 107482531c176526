"""The integer arithmetic of TensorFlow Lite's reference kernels and of TensorFlow Lite Micro, as levels and numbers.

Both requantise by a multiplier of 31 bits and gemmlowp's two roundings (`isa.integers.gemmlowp`), but for dense layers
of the reference kernels, which round once.
"""

import math
from collections.abc import Iterable

import numpy as np

from tilewright.compiler.tflite.numbers.litert_numbers import LEVELS, fixed_point
from tilewright.isa.integers.gemmlowp import divide_by_power, high_product, twice_rounded
from tilewright.isa.integers.long_requantise import LONG_BITS

__all__ = ["gated", "long_numbers", "scaled_levels", "softmax_terms", "sum_of_levels", "tanh_levels"]

_SUM_BITS = 20
_INPUT_BITS, _SOFTMAX_BITS, _LARGEST = 4, 5, (1 << 31) - 1
_EXPONENTS = ((-2, 1672461947), (-1, 1302514674), (0, 790015084), (1, 290630308), (2, 39332535), (3, 720401), (4, 242))
"""exp(-2**k) of each exponent k, in 31 bits."""


def scaled_levels(levels: np.ndarray, real: float) -> np.ndarray:
    """Return ``levels`` times a real number, rounded twice."""
    multiplier, shift = fixed_point(real)
    return np.array([twice_rounded(int(each), multiplier, shift) for each in levels.reshape(-1)],
                    np.int64).reshape(levels.shape)


def sum_of_levels(scales: tuple[np.float32, np.float32, np.float32], zeros: tuple[int, int, int],
                  sign: int = 1) -> np.ndarray:
    """Return a + b, or a - b where ``sign`` is -1, for all pairs of int8: of shape (256, 256), row 128 + a.

    Both get 20 bits more and their share of twice the larger scale; the sum is scaled to the result.
    Source: ``PrepareGeneralSubOp`` and ``AddElementwise`` in TensorFlow Lite's ``kernels/add.cc``, ``sub.cc`` and
    ``kernels/internal/reference/add.h``.

    Parameters
    ----------
    scales : tuple of float32
        Of a, b and the result.
    zeros : tuple of int
        Zero points of the same.
    """
    top = 2 * max(float(scales[0]), float(scales[1]))
    a, b = (scaled_levels((LEVELS - zero).astype(np.int64) << _SUM_BITS, float(scale) / top)
            for scale, zero in zip(scales[:2], zeros[:2], strict=True))
    sums = a[:, None] + sign * b[None]
    return scaled_levels(sums, top / (1 << _SUM_BITS) / float(scales[2])) + zeros[2]


def long_numbers(real: Iterable[float]) -> tuple[list[int], list[int]]:
    """Return multipliers of 31 bits, or 0, and shifts for real numbers, one for each channel."""
    multipliers, shifts = zip(*(fixed_point(float(each)) for each in real), strict=True)
    return list(multipliers), [LONG_BITS - shift for shift in shifts]


def gated(levels: np.ndarray, scale: np.float32) -> np.ndarray:
    """Return TensorFlow Lite Micro's logistic of ``levels`` less their zero point, as levels of 1 / 256 from -128 on.

    Source: ``Logistic`` in ``kernels/internal/reference/integer_ops/logistic.h``; gemmlowp's ``logistic``.
    """
    def of(value: int) -> int:
        if value == 0:
            return 1 << 30
        positive = _reciprocal(_exponential(-abs(value), _INPUT_BITS))
        return positive if value > 0 else _LARGEST - positive

    return _in_range(levels, scale, of, 23, (-128, 127), -128)


def softmax_terms(scale: float, beta: float) -> np.ndarray:
    """Return exponentials of 31 bits by how many levels below the largest an element is, int64 of (256,).

    Source: ``PreprocessSoftmaxScaling`` and ``CalculateInputRadius`` in ``kernels/internal/quantization_util.cc``.
    """
    multiplier, left = fixed_point(min(beta * scale * (1 << 31 - _SOFTMAX_BITS), float(_LARGEST)))
    radius = math.floor(((1 << _SOFTMAX_BITS) - 1) * (1 << 31 - _SOFTMAX_BITS) / math.ldexp(1, left))
    return np.array([_exponential(twice_rounded(-below, multiplier, left), _SOFTMAX_BITS) if below <= radius else 0
                     for below in range(256)], np.int64)


def tanh_levels(levels: np.ndarray, scale: np.float32) -> np.ndarray:
    """Return TensorFlow Lite Micro's tanh of ``levels`` less their zero point, as levels of 1 / 128.

    Source: ``Tanh`` in ``kernels/internal/reference/integer_ops/tanh.h``; gemmlowp's ``tanh``.
    """
    def of(value: int) -> int:
        power = _exponential(-abs(value), _INPUT_BITS + 1)
        found = 0 if value == 0 else _by_power(_newton(power) - (1 << 29), 2)
        return found if value > 0 else -found

    return _in_range(levels, scale, of, 24, (-128, 127), 0)


def _in_range(levels: np.ndarray, scale: np.float32, of: "object", shift: int, ends: tuple[int, int],
              zero: int) -> np.ndarray:
    """Return a function of numbers with four bits before the point, beyond which it has its ends."""
    assert callable(of)
    fraction, left = math.frexp(float(scale) * (1 << 31 - _INPUT_BITS))
    multiplier = math.floor(fraction * (1 << 31) + 0.5)
    radius = math.floor(((1 << _INPUT_BITS) - 1) * (1 << 31 - _INPUT_BITS) / math.ldexp(1, left))
    found = []
    for level in levels.tolist():
        if abs(level) >= radius:
            found.append(ends[level > 0])
            continue
        value = of(twice_rounded(level, multiplier, left))
        found.append(max(ends[0], min(ends[1], divide_by_power(value, shift) + zero)))
    return np.array(found, np.int64)


def _exponential(a: int, integer_bits: int) -> int:
    """Return exp of a <= 0 with so many bits before the point, as a fraction of 31 bits."""
    if a == 0:
        return _LARGEST
    fraction = 31 - integer_bits
    rest = (a & (1 << fraction - 2) - 1) - (1 << fraction - 2)
    x = (rest << integer_bits) + (1 << 28)
    square = high_product(x, x)
    third = high_product(square, x)
    terms = divide_by_power(
        high_product(divide_by_power(high_product(square, square), 2) + third, 715827883) + square, 1)
    result = 1895147668 + high_product(1895147668, x + terms)
    for exponent, factor in _EXPONENTS:
        if integer_bits > exponent and rest - a & 1 << fraction + exponent:
            result = high_product(result, factor)
    return result


def _newton(a: int) -> int:
    """Return 2 / (1 + a) of a fraction with two bits before the point, by three steps."""
    half = (a + (1 << 31)) >> 1
    x = 1515870810 + high_product(half, -1010580540)
    for _ in range(3):
        x += _by_power(high_product(x, (1 << 29) - high_product(half, x)), 2)
    return x


def _reciprocal(a: int) -> int:
    return _by_power(_newton(a), 1)


def _by_power(x: int, exponent: int) -> int:
    return max(-(1 << 31), min(_LARGEST, x << exponent))
