"""Whole sums to levels of 8 bits, by a scale that is computed: ``quantise(relu(sums · factor + bias))`` in one loop.

What ONNX rounds four times in float32 is one product of integers, in levels of 2⁻¹², with a mantissa that is the same
for all sums. It is at most `_DOUBT` of these steps off where the bias is at most `_MOST_BIAS` levels; a level whose
rounding this could change is computed in floats, as is everything odd. So every result is the floats' own.
"""

from collections.abc import Sequence

import numpy as np

from tilewright.compiler.kernels.language.checked import Refused, attribute
from tilewright.compiler.kernels.language.expression import Expression, both, constant, high, nodes, where
from tilewright.compiler.kernels.language.float_functions import DIVIDED_LEVELS, rectified
from tilewright.compiler.kernels.operators.elementwise import Elementwise
from tilewright.isa.program import Call

__all__ = ["LEVELS_OF_SUMS", "LevelsOfSums"]

_FLOAT = ("float32",)
_FRACTION = 12
_DOUBT = 8
_MOST_BIAS = 1 << 10
"""In levels. Each of the floats' roundings is at most 2⁻²⁴ of a value of at most 2 · 2¹⁰ levels, or the level is a
bound by far: less than 4 steps of 2⁻¹² in all, besides 3 for what the integers cut off."""

_LEAST_EXPONENT = 75
"""Of factor / scale, that of a quotient that is a normal number by far; 150 is that of a mantissa as it is."""

_ROOM = 18
"""Bits of levels below which products fit int32: sums of ``bits`` bits are less than 2^bits. Both factors have 31, and
the upper word of their product is shifted right."""

_CYCLES = 36
"""Of a level besides its loop and accesses, measured in RTL: product, shift, sum, bounds."""


class LevelsOfSums(Elementwise):
    """Inputs: int32 sums, their float32 factor, perhaps a float32 bias, the levels' scale and zero point.

    Attribute ``bits`` bounds the sums, |sum| < 2^bits, and with ``relu`` nothing is below the zero point.
    """

    def __init__(self) -> None:
        super().__init__("LevelsOfSums", self._levels, [("int32",), _FLOAT, _FLOAT, (*_FLOAT, *DIVIDED_LEVELS),
                                                        tuple(DIVIDED_LEVELS)],
                         inputs=(4, 5), same=False, limits="int32 sums, and one scale that is computed")

    def _levels(self, call: Call, sums: Expression | None, factor: Expression | None,
                *rest: Expression | None) -> Expression:
        *bias, scale, zero = rest
        if sums is None or factor is None or scale is None or zero is None or zero.dtype not in DIVIDED_LEVELS:
            raise Refused(f"{self.op} must have sums, a factor, a scale and a zero point of 8 bits")
        if scale.dtype != "float32" or any(np.prod(each.dims) != 1 for each in call.inputs[-2:]):
            raise Refused(f"{self.op} must have one scale and one zero point")
        relu, bits = bool(attribute(call, "relu", 0)), int(attribute(call, "bits", 31))
        real = sums.cast("float32") * factor
        if bias and bias[0] is not None:
            real = real + bias[0]
        if relu:
            real = rectified(real)
        divided = DIVIDED_LEVELS[zero.dtype](real, scale, zero.cast("float32"))
        return _quick(sums, (factor, bias[0] if bias else None, scale, zero), divided, relu=relu, bits=bits)

    def formula_cycles(self, call: Call, part: Expression) -> float:
        return _CYCLES if any(node.op == "call" for node in nodes(part)) else super().formula_cycles(call, part)


def _quick(sums: Expression, numbers: Sequence[Expression | None], divided: Expression, *, relu: bool,
           bits: int) -> Expression:
    """Return the level of a sum in integers where it is known to be that, else ``divided``."""
    factor, bias, scale, zero = numbers
    assert factor is not None
    assert scale is not None
    assert zero is not None
    word = (factor / scale).view("int32").named("word")
    exponent = (word >> 23).named("exponent")
    most = 126 + _ROOM - bits
    known = both(exponent >= _LEAST_EXPONENT, exponent <= most).named("known")
    shift = (constant(most, "int32") - where(known, exponent, constant(most, "int32"))).named("shift")
    right = where(shift < 31, shift, constant(31, "int32")).named("right")     # by more, a product is 0 or -1 as well
    mantissa = (((word & 0x7F_FFFF) | 0x80_0000) << 7).named("mantissa")
    fixed = high(sums << 31 - bits, mantissa) >> right
    if bias is not None:
        offset = (bias / scale).named("offset")
        fits = both(offset > -_MOST_BIAS, offset < _MOST_BIAS)
        steps = where(fits, offset * (1 << _FRACTION), constant(0, "float32")).cast("int32").named("steps")
        fixed, known = fixed + steps, both(known, fits).named("near")
    bounds = np.iinfo(zero.dtype)
    rounded = (fixed + (1 << _FRACTION - 1)).named("rounded")
    base = zero.cast("int32")
    level = ((rounded >> _FRACTION) + base).named("level")
    low = base if relu else constant(int(bounds.min), "int32")
    bounded = where(level > int(bounds.max), constant(int(bounds.max), "int32"),
                    where(level < low, low, level)).cast(zero.dtype)
    apart = ((rounded + _DOUBT) & ((1 << _FRACTION) - 1)) >= 2 * _DOUBT
    return where(both(known, apart), bounded, divided)      # used once, so that C computes in floats where it must


LEVELS_OF_SUMS = LevelsOfSums()
