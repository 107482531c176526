"""The coprocessor's integer arithmetic, one reference function per behaviour.

Everything here is exact and uses integers only; ``rtl/`` and ``sim/`` are held to it bit for bit, and it
is itself held to ONNX Runtime.  The real numbers are float32 ones, and a float32 operation is the exact
operation on integers followed by rounding to 24 significant bits, half to even::

    requantise      clamp(rne(fl32(fl32(acc + bias) · scale)) + zero_point)
    residual add    clamp(rne(fl32(a · scale_a + fl32(b · scale_b + offset))))
    its offset      fl32(zero_out - fl32(zero_a · scale_a + fl32(zero_b · scale_b)))

The residual add follows ``mlas/lib/intrinsics/avx2/qladd_avx2.cpp`` of ONNX Runtime, whose fused multiply-adds
round once and whose zero points are folded into one constant: halves go to even *after* the zero point. Which
of the constant's products is fused is the choice of the compiler that built the x86-64 wheels; found by trial.

Scales are ``mantissa · 2**-shift`` with a mantissa of 24 bits whose top bit is set and a shift of 7 bits:
every sum and product is then a multiple of 2**-127, which no subnormal has to round.

Winograd's F(2×2, 3×3) is exact in integers because the weight transform is doubled on both sides::

    Y = Aᵀ [(2G g 2Gᵀ) ⊙ (Bᵀ d B)] A  =  4 · (d ∗ g)

The division by four is exact for every input channel by itself, so the channels may be summed after it.
int8 data gives 10 bits in Bᵀ d B, 12 in 2G g 2Gᵀ, 21 in their product.

Arguments are Python integers: NumPy scalars would wrap silently.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

__all__ = [
    "MANTISSA_BITS", "Matrix", "ResidualSettings", "add_residual", "clamp", "conv23_tile", "inverse_transform",
    "pack_scale", "requantise", "residual_offset", "round_float32", "round_shift", "transform_input",
    "transform_weight", "wrap",
]

MANTISSA_BITS = 24
"""Significant bits of a float32, and width of a scale's mantissa."""

_SHIFT_BITS = 7
"""Width of a scale's shift."""

Matrix = tuple[tuple[int, ...], ...]
_Rows = Sequence[Sequence[int]]

_B_TRANSPOSED: Matrix = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
"""Input transform of F(2, 3)."""

_G_DOUBLED: Matrix = ((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2))
"""Weight transform of F(2, 3), times two."""

_A_TRANSPOSED: Matrix = ((1, 1, 1, 0), (0, 1, -1, -1))
"""Inverse transform of F(2, 3)."""


def pack_scale(scale: float) -> tuple[int, int]:
    """Split a float32 scale into ``(mantissa, shift)``, with ``scale == mantissa * 2**-shift``.

    Parameters
    ----------
    scale : float
        A value that float32 represents, from 2**-104 up to and including 2**24 - 1.

    Returns
    -------
    mantissa : int
        In 2**23 .. 2**24 - 1.
    shift : int
        In 0 .. 127.

    Raises
    ------
    ValueError
        If the scale is not such a value.
    """
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"Scale must be positive and finite, not {scale!r}")
    fraction, exponent = math.frexp(scale)
    mantissa, shift = fraction * (1 << MANTISSA_BITS), MANTISSA_BITS - exponent
    if not mantissa.is_integer():
        raise ValueError(f"Scale must be a float32 value, not {scale!r}; round it to float32 first")
    if not 0 <= shift < 1 << _SHIFT_BITS:
        raise ValueError(f"Scale must be in 2**-104 .. 2**24 - 1, not {scale!r}")
    return int(mantissa), shift


def wrap(value: int, bits: int) -> int:
    """Return the two's complement value of the lowest ``bits`` bits of ``value``."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def clamp(value: int, low: int, high: int) -> int:
    """Return the value nearest to ``value`` in ``low .. high``."""
    return max(low, min(value, high))


def round_shift(value: int, shift: int) -> int:
    """Return ``value * 2**-shift`` rounded to an integer, halves to even; ``shift`` is not negative."""
    if shift == 0:
        return value
    quotient, remainder = value >> shift, value & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    return quotient + (remainder > half or (remainder == half and quotient & 1 == 1))


def round_float32(value: int) -> int:
    """Return ``value`` rounded to 24 significant bits, halves to even, as float32 does."""
    excess = max(0, abs(value).bit_length() - MANTISSA_BITS)
    return round_shift(value, excess) << excess


def requantise(
    acc: int, *, bias: int, mantissa: int, shift: int, zero_point: int, low: int, high: int
) -> int:
    """Bring an accumulator to int8, exactly as ONNX Runtime's QLinearConv and QGemm do.

    Parameters
    ----------
    acc, bias : int
        int32; their sum wraps to int32.
    mantissa, shift : int
        The scale, float32(x_scale · w_scale) / y_scale, as :func:`pack_scale` gives it.
    zero_point : int
        int8, of the output.
    low, high : int
        int8 bounds of the output, ``low <= high``; a ReLU is ``low = zero_point``.

    Returns
    -------
    int
        In ``low .. high``.
    """
    product = round_float32(round_float32(wrap(acc + bias, 32)) * mantissa)
    return clamp(round_shift(product, shift) + zero_point, low, high)


def _multiply_add(factor: int, mantissa: int, shift: int, addend: tuple[int, int]) -> tuple[int, int]:
    """Return ``factor * scale + addend``, rounded once to float32: a fused multiply-add.

    Real numbers are pairs ``(value, shift)`` that stand for ``value * 2**-shift``.
    """
    value, point = addend
    common = max(shift, point)
    product = factor * mantissa
    return round_float32((product << (common - shift)) + (value << (common - point))), common


def residual_offset(
    *, mantissa_a: int, shift_a: int, mantissa_b: int, shift_b: int, zero_a: int, zero_b: int, zero_out: int
) -> tuple[bool, int, int]:
    """Return the constant that carries the zero points of :func:`add_residual`.

    Parameters
    ----------
    mantissa_a, shift_a, mantissa_b, shift_b : int
        As in :class:`ResidualSettings`.
    zero_a, zero_b, zero_out : int
        Zero points as the model has them: int8, or uint8 when the add is ``unsigned``.

    Returns
    -------
    negative : bool
    mantissa : int
        In 2**23 .. 2**24 - 1, or 0 for a constant of zero.
    shift : int
        In 0 .. 127.

    Raises
    ------
    ValueError
        If the constant is outside what a mantissa and a shift can express.
    """
    product_b = round_float32(zero_b * mantissa_b), shift_b
    value, point = _multiply_add(zero_a, mantissa_a, shift_a, product_b)
    value = round_float32((zero_out << point) - value)
    if value == 0:
        return False, 0, 0
    excess = abs(value).bit_length() - MANTISSA_BITS
    mantissa = abs(value) >> excess if excess > 0 else abs(value) << -excess
    if not 0 <= point - excess < 1 << _SHIFT_BITS:
        raise ValueError(
            f"Offset of a residual add must be 0 or of magnitude 2**-104 .. 2**24 - 1, not {value} * 2**-{point}"
        )
    return value < 0, mantissa, point - excess


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualSettings:
    """Scales, zero points and bounds of a residual add, as the operands of ``act.set_residual_*`` hold them.

    Attributes
    ----------
    mantissa_a, shift_a, mantissa_b, shift_b : int
        The scales float32(a_scale / y_scale) and float32(b_scale / y_scale), as :func:`pack_scale` gives them.
    offset_negative, offset_mantissa, offset_shift : bool, int, int
        The zero points, as :func:`residual_offset` gives them.
    unsigned : bool
        The model's tensors are uint8, and the operands and the result here are 128 less than theirs.
    low, high : int
        int8 bounds of the output, ``low <= high``.
    """

    mantissa_a: int
    shift_a: int
    mantissa_b: int
    shift_b: int
    offset_negative: bool
    offset_mantissa: int
    offset_shift: int
    unsigned: bool
    low: int
    high: int

    @classmethod
    @lru_cache(maxsize=1024)
    def of(cls, scale_a: float, scale_b: float, zeros: tuple[int, int, int], *, unsigned: bool, low: int,
           high: int) -> "ResidualSettings":
        """Return the settings for two scales, and zero points of a, b and the output in int8.

        Raises
        ------
        ValueError
            If a scale or the offset is outside what a mantissa and a shift can express.
        """
        bias = 128 if unsigned else 0
        (mantissa_a, shift_a), (mantissa_b, shift_b) = pack_scale(scale_a), pack_scale(scale_b)
        zero_a, zero_b, zero_out = (zero + bias for zero in zeros)
        negative, mantissa, shift = residual_offset(
            mantissa_a=mantissa_a, shift_a=shift_a, mantissa_b=mantissa_b, shift_b=shift_b,
            zero_a=zero_a, zero_b=zero_b, zero_out=zero_out)
        return cls(mantissa_a=mantissa_a, shift_a=shift_a, mantissa_b=mantissa_b, shift_b=shift_b,
                   offset_negative=negative, offset_mantissa=mantissa, offset_shift=shift, unsigned=unsigned,
                   low=low, high=high)

    @property
    def signed_offset(self) -> int:
        """The mantissa of the offset with its sign."""
        return -self.offset_mantissa if self.offset_negative else self.offset_mantissa


def add_residual(a: int, b: int, settings: ResidualSettings) -> int:
    """Add two quantised values, exactly as ONNX Runtime's QLinearAdd does on x86-64.

    Parameters
    ----------
    a, b : int
        int8: the first and the second operand of the operator; they are not interchangeable.
    settings : ResidualSettings
        Constant that follows from the operator's scales and zero points.

    Returns
    -------
    int
        In ``settings.low .. settings.high``.
    """
    bias = 128 if settings.unsigned else 0
    offset = settings.signed_offset, settings.offset_shift
    partial = _multiply_add(b + bias, settings.mantissa_b, settings.shift_b, offset)
    total, shift = _multiply_add(a + bias, settings.mantissa_a, settings.shift_a, partial)
    return clamp(round_shift(total, shift) - bias, settings.low, settings.high)


def transform_input(patch: _Rows) -> Matrix:
    """Return Bᵀ d B of a (4, 4) input patch d: (4, 4), 10 bits for int8."""
    return _sandwich(_B_TRANSPOSED, patch)


def transform_weight(kernel: _Rows) -> Matrix:
    """Return 2G g 2Gᵀ of a (3, 3) kernel g: (4, 4), 12 bits for int8."""
    return _sandwich(_G_DOUBLED, kernel)


def inverse_transform(product: _Rows) -> Matrix:
    """Return Aᵀ m A / 4 of a (4, 4) product m: (2, 2).

    Raises
    ------
    ValueError
        If m is no product of transforms, which shows in a remainder of the division.
    """
    quadrupled = _sandwich(_A_TRANSPOSED, product)
    if any(value & 3 for row in quadrupled for value in row):
        raise ValueError(f"Inverse transform must be a multiple of 4 everywhere, not {quadrupled!r}")
    return tuple(tuple(value >> 2 for value in row) for row in quadrupled)


def conv23_tile(patch: _Rows, kernel: _Rows) -> Matrix:
    """Correlate a (4, 4) patch with a (3, 3) kernel by F(2×2, 3×3): (2, 2), exact."""
    data, weights = transform_input(patch), transform_weight(kernel)
    product = [[d * w for d, w in zip(*rows, strict=True)] for rows in zip(data, weights, strict=True)]
    return inverse_transform(product)


def _matmul(left: _Rows, right: _Rows) -> Matrix:
    columns = tuple(zip(*right, strict=True))
    return tuple(tuple(sum(x * y for x, y in zip(row, col, strict=True)) for col in columns) for row in left)


def _sandwich(outer: Matrix, inner: _Rows) -> Matrix:
    """Return ``outer @ inner @ outer.T``."""
    return _matmul(_matmul(outer, inner), tuple(zip(*outer, strict=True)))
