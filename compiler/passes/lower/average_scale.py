"""The single scale of an average pooling of ONNX Runtime, where there is one; a helper of build_layers.

Global averages are integer sums in ONNX Runtime, times x_scale / (y_scale · count). Others are float32: each x is
dequantised, the sum is divided by the count and quantised, with a rounding at every step. They are taken where
every possible sum gives the same integer either way: because it is nowhere near a rounding boundary, or because no
step rounds at all. Where some do not, the result may be one level off. Source: ``qlinear_pool.cc`` of ONNX Runtime.
"""

import math

import numpy as np

from tilewright.compiler.network.layers import TensorInfo

__all__ = ["average_scale"]

_HALF_ULP = 2.0**-24


def average_scale(count: int, x: TensorInfo, y: TensorInfo, is_global: bool) -> tuple[np.float32, bool]:
    """Return the float32 scale of the sum of ``count`` integers x, to integers y.

    And whether ONNX Runtime's result is that of this scale, always; else it depends on its float32 roundings.
    """
    if is_global:
        return np.float32(x.scale / np.float32(y.scale * np.float32(count))), True
    scale = np.float32(x.scale / np.float32(y.scale * np.float32(count)))
    return scale, _is_far_from_boundaries(x, y, count) or _is_exact(x, y, count, scale)


def _sums(x: TensorInfo, count: int) -> np.ndarray:
    return np.arange(count * (-128 - x.zero_point), count * (127 - x.zero_point) + 1)


def _is_far_from_boundaries(x: TensorInfo, y: TensorInfo, count: int) -> bool:
    """Tell whether no sum is within the error of float32 of a half, and so of a rounding boundary."""
    ratio = float(x.scale) / float(y.scale)
    values = _sums(x, count) * (ratio / count)
    largest = max(128 + x.zero_point, 127 - x.zero_point)
    zero = y.zero_point + 128 * y.unsigned
    # Dequantised values, count - 1 partial sums in any order, division, division, zero point; and our own two.
    error = _HALF_ULP * (ratio * largest * (1 + (count + 1) / 2) + 5 * np.abs(values) + 2 * abs(zero))
    saturated = (values < -130 - y.zero_point) | (values > 130 - y.zero_point)
    return bool(np.all(saturated | (np.abs(values - np.floor(values) - 0.5) > error)))


def _is_exact(x: TensorInfo, y: TensorInfo, count: int, scale: np.float32) -> bool:
    """Tell whether sums are exact in float32 and all of them give the same integer as ``scale`` does."""
    mantissa = int(math.frexp(float(x.scale))[0] * 2**24)
    significant_bits = (mantissa // (mantissa & -mantissa)).bit_length()
    sums = _sums(x, count)
    largest = count * max(128 + x.zero_point, 127 - x.zero_point)
    if significant_bits + largest.bit_length() > 24:
        return False
    zero = y.zero_point + 128 * y.unsigned
    mean = sums.astype(np.float32) * x.scale / np.float32(count)
    theirs = np.rint(mean / y.scale + np.float32(zero)) - 128 * y.unsigned
    ours = np.rint(sums.astype(np.float32) * scale) + y.zero_point
    return bool(np.array_equal(np.clip(theirs, -128, 127), np.clip(ours, -128, 127)))

