"""The datapath's numbers of an average pooling of ONNX Runtime, where there are such; a helper of build_layers.

Global averages are integer sums in ONNX Runtime, times x_scale / (y_scale · count). Others are float32: each x is
dequantised, the sum in the window's order is divided by the count and by y_scale, the zero point is added, and only
then it is rounded to an integer, halves to even. The datapath rounds before it adds the zero point, so a half goes the
other way if that is odd: then part of the zero point is added to the sum, with the bias. Numbers are taken if
every sum that a window can have gives ONNX Runtime's integer, whatever the order of its elements. Where some do not,
the result may be one level off. Source: ``qlinear_pool.cc`` of ONNX Runtime.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.network.layers import TensorInfo

__all__ = ["AverageNumbers", "average_numbers"]

_HALF_ULP = 2.0**-24

_MOST_SUMS = 1 << 22
"""Sums of larger windows are not tried one by one."""

_NEIGHBOURS = 2
"""Float32 values above and below the ratio that are tried as scales."""


@dataclass(frozen=True, slots=True)
class AverageNumbers:
    """Scale, what is added to the sum of x less its zero point, zero point behind; and whether they are always right.

    If ``exact``, ``clip(rint((sum + offset) · scale) + zero_point)`` is ONNX Runtime's integer of every window.
    """

    scale: np.float32
    offset: int
    zero_point: int
    exact: bool


def average_numbers(count: int, x: TensorInfo, y: TensorInfo, is_global: bool) -> AverageNumbers:
    """Return the numbers with which sums of ``count`` integers x become ONNX Runtime's averages y."""
    scale = np.float32(x.scale / np.float32(y.scale * np.float32(count)))
    plain = AverageNumbers(scale, 0, y.zero_point, True)
    if is_global:
        return plain
    first, last = count * (-128 - x.zero_point), count * (127 - x.zero_point)
    if last - first < _MOST_SUMS:
        sums = np.arange(first, last + 1)
        low, high = _theirs(sums, count, x, y)
        if np.array_equal(low, high):
            for numbers in _candidates(plain):
                if np.array_equal(_ours(sums, numbers), low):
                    return numbers
    return AverageNumbers(scale, 0, y.zero_point, False)


def _candidates(plain: AverageNumbers) -> Iterator[AverageNumbers]:
    """Yield ways to compute an average: all of the zero point behind the rounding, less of it by one, or none."""
    scales = [plain.scale]
    for end in (np.float32(0), np.float32(np.inf)):
        near = plain.scale
        for _ in range(_NEIGHBOURS):
            scales.append(near := np.nextafter(near, end))
    for levels in dict.fromkeys((0, 1, -1, plain.zero_point)):
        offset = round(levels / float(plain.scale))
        if -128 <= plain.zero_point - levels <= 127 and abs(offset) < 1 << 24:
            for scale in scales:
                yield AverageNumbers(scale, offset, plain.zero_point - levels, True)


def _ours(sums: np.ndarray, numbers: AverageNumbers) -> np.ndarray:
    """Return the datapath's int8 of each sum."""
    product = (sums + numbers.offset).astype(np.float32) * numbers.scale
    return np.clip(np.rint(product) + np.float32(numbers.zero_point), -128, 127)


def _theirs(sums: np.ndarray, count: int, x: TensorInfo, y: TensorInfo) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest int8 that ONNX Runtime makes of windows with each sum.

    Every step rounds a number to float32, so it keeps the order of numbers: what becomes of the bounds of the
    float32 sum bounds the result.
    """
    exact = sums * float(x.scale)
    error = _error_of_sum(count, x)
    bounds = exact.astype(np.float32), exact.astype(np.float32)
    if error:
        bounds = (np.nextafter((exact - error).astype(np.float32), np.float32(-np.inf)),
                  np.nextafter((exact + error).astype(np.float32), np.float32(np.inf)))
    zero = 128 * y.unsigned
    low, high = (np.clip(np.rint(each / np.float32(count) / y.scale + np.float32(y.zero_point + zero)) - zero,
                         -128, 127) for each in bounds)
    return low, high


def _error_of_sum(count: int, x: TensorInfo) -> float:
    """Return by how much a sum of ``count`` dequantised x can be off in float32, in any order; 0 if none rounds."""
    mantissa = int(math.frexp(float(x.scale))[0] * 2**24)
    significant_bits = (mantissa // (mantissa & -mantissa)).bit_length()
    largest = max(128 + x.zero_point, 127 - x.zero_point)
    if significant_bits + (count * largest).bit_length() <= 24:
        return 0.0
    # Of each element, and of count - 1 partial sums of 2, 3, … elements; a little more, as those are off already.
    elements = count + (count + 2) * (count - 1) / 2
    return 1.001 * _HALF_ULP * float(x.scale) * largest * elements
