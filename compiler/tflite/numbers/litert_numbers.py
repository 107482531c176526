"""LiteRT's integer arithmetic where it is not ONNX Runtime's: sums of two tensors, and functions of one.

It is that of LiteRT's default session, which leaves to XNNPACK what XNNPACK has and computes the rest by its own
kernels. Each function gives levels as int64, before saturation.
"""

import math

import numpy as np

__all__ = [
    "LEVELS", "eighths", "fixed_point", "hard_swish", "rounded", "rounded_away", "rounded_behind", "sum_of_levels",
]

LEVELS = np.arange(-128, 128)
"""Every int8."""

_SUM_BITS = 20
_EXPONENT_BIAS = 127
_MANTISSA_BITS = 23


def sum_of_levels(ratio_a: np.float32, ratio_b: np.float32, zeros: tuple[int, int, int],
                  sign: int = 1) -> np.ndarray:
    """Return a + b, or a - b where ``sign`` is -1, for all pairs of int8: of shape (256, 256), row 128 + a.

    Both factors are rounded to integers, the larger to one of 21 bits; the sum of the products is shifted, halves up.
    Source: ``xnn_init_qs8_add_minmax_scalar_params`` in XNNPACK's ``src/microparams-init.c``.

    Parameters
    ----------
    ratio_a, ratio_b : float32
        Scale of the operand / scale of the result.
    zeros : tuple of int
        Zero points of a, b and the result.
    """
    exponent = (int(np.float32(max(ratio_a, ratio_b)).view(np.uint32)) >> _MANTISSA_BITS) - _EXPONENT_BIAS
    shift = _SUM_BITS - exponent
    factors = [int(np.rint(np.ldexp(np.float64(ratio), shift))) for ratio in (ratio_a, ratio_b)]
    a, b = (LEVELS[:, None] - zeros[0]).astype(np.int64), (LEVELS[None] - zeros[1]).astype(np.int64)
    return ((a * factors[0] + sign * b * factors[1] + (1 << (shift - 1))) >> shift) + zeros[2]


def eighths(levels: np.ndarray, ratio: float | np.float32, zero: int) -> np.ndarray:
    """Return ``levels``, less their zero point, times a ratio of 8 bits behind the point, halves up.

    Source: ``xnn_init_qs8_cvt_scalar_params`` and ``xnn_init_qs8_lrelu_scalar_params`` in XNNPACK's
    ``src/microparams-init.c``.
    """
    factor = int(np.rint(np.float32(256) * np.float32(ratio)))
    return ((levels.astype(np.int64) * factor + (zero << 8) + 128) >> 8).astype(np.int64)


def rounded(values: np.ndarray, inverse_scale: np.float32, zero: int) -> np.ndarray:
    """Return the levels of float32 values, halves to even: ``lrintf`` of XNNPACK's tables of functions."""
    scaled = np.clip(values.astype(np.float32) * inverse_scale, -1e9, 1e9)
    return np.rint(scaled).astype(np.int64) + zero


def rounded_behind(values: np.ndarray, inverse_scale: np.float32, zero: int) -> np.ndarray:
    """Return the same, halves to even once the zero point is added: XNNPACK's conversion of float32."""
    scaled = np.clip(values.astype(np.float32) * inverse_scale, -1e9, 1e9)
    return np.rint(scaled + np.float32(zero)).astype(np.int64)


def rounded_away(values: np.ndarray, inverse_scale: np.float32, zero: int) -> np.ndarray:
    """Return the same, halves away from zero: ``TfLiteRound`` of the kernels' tables of functions."""
    scaled = np.clip(values.astype(np.float32) * inverse_scale, -1e9, 1e9)
    return (np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))).astype(np.int64) + zero


def fixed_point(real: float) -> tuple[int, int]:
    """Return (multiplier, shift) with real = multiplier · 2**(shift - 31), the multiplier of 31 bits.

    Source: ``QuantizeMultiplier`` in TensorFlow Lite's ``kernels/internal/quantization_util.cc``.
    """
    if real == 0:
        return 0, 0
    fraction, shift = math.frexp(real)
    multiplier = round_half_away(fraction * (1 << 31))
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    return (0, 0) if shift < -31 else (multiplier, shift)


def round_half_away(value: float) -> int:
    """Return the nearest integer, halves away from zero: C's ``round``."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def hard_swish(levels: np.ndarray, scale_in: np.float32, scale_out: np.float32, zero: int) -> np.ndarray:
    """Return the hard swish of ``levels`` less their zero point, in 16 bits.

    Source: ``HardSwish`` in TensorFlow Lite's ``kernels/internal/reference/hard_swish.h`` and ``HardSwishPrepare`` in
    ``kernels/activations.cc``: x in 7 more bits, times relu6(x + 3) / 6 of 15 bits, each product by its own rounding.
    """
    hires = np.float32(1.0 / 128.0) * np.float32(scale_in)
    output_multiplier, output_shift = _half_multiplier(float(hires) / float(np.float32(scale_out)))
    relu_multiplier, relu_shift = _half_multiplier(float(hires) / float(np.float32(3.0 / 32768.0)))
    found = []
    for level in levels.tolist():
        value = _wrapped(level << 7)
        pre_output = _high_product(value, output_multiplier)
        gate = value
        if relu_shift > 0:
            gate = _saturated(gate << (relu_shift - 1))
        gate = _high_product(gate, relu_multiplier)
        if relu_shift > 0:
            gate = _saturated(gate << 1)
        if relu_shift < 0:
            gate = _shifted(gate, -relu_shift)
        gate = (gate + (1 << 15)) >> 1
        product = _truncated_product(gate, pre_output)
        found.append(_shifted(product, -output_shift) + zero)
    return np.array(found, np.int64)


def _half_multiplier(real: float) -> tuple[int, int]:
    """Return a multiplier of 15 bits: the upper half of one of 31, rounded down."""
    multiplier, shift = fixed_point(real)
    return (32767 if multiplier >= (1 << 31) - (1 << 15) else (multiplier + (1 << 15)) >> 16), shift


def _wrapped(value: int) -> int:
    return (value + 32768) % 65536 - 32768


def _saturated(value: int) -> int:
    return max(-32768, min(32767, value))


def _high_product(a: int, b: int) -> int:
    """Return gemmlowp's SaturatingRoundingDoublingHighMul of 16 bits."""
    if a == b == -32768:
        return 32767
    product = a * b
    nudge = 1 << 14 if product >= 0 else 1 - (1 << 14)
    return _divided(product + nudge, 1 << 15)


def _truncated_product(a: int, b: int) -> int:
    """Return SaturatingDoublingHighMul of 16 bits, which cuts its fraction off."""
    return 32767 if a == b == -32768 else _divided(a * b, 1 << 15)


def _divided(value: int, by: int) -> int:
    """Return a quotient cut toward zero, as C divides."""
    return value // by if value >= 0 else -(-value // by)


def _shifted(value: int, by: int) -> int:
    """Return gemmlowp's RoundingDivideByPOT: halves away from zero."""
    if by <= 0:
        return value << -by
    mask = (1 << by) - 1
    return (value >> by) + ((value & mask) > (mask >> 1) + (value < 0))
