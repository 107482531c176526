"""Whole sums to levels of 8 bits, by a scale that is computed: ``quantise(g(sums · factor + bias))`` in one loop.

g is a Relu, a Clip, a LeakyRelu, a HardSwish or nothing.

What ONNX rounds four times in float32 is one product of integers, in levels of 2⁻¹², with a mantissa that is the same
for all sums. It is at most `_DOUBT` of these steps off where the bias is at most `_MOST_BIAS` levels; a level whose
rounding this could change is computed in floats, as is everything odd. So every result is the floats' own.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.compiler.kernels.language.checked import Refused, attribute
from tilewright.compiler.kernels.language.expression import (
    Expression,
    binary,
    both,
    compare,
    constant,
    equal,
    high,
    nodes,
    where,
)
from tilewright.compiler.kernels.language.float_functions import DIVIDED_LEVELS, INFINITY, clipped, hard_swish, leaky
from tilewright.compiler.kernels.operators.elementwise import Elementwise
from tilewright.isa.program import Call

__all__ = ["LEVELS_OF_SUMS", "LevelsOfSums"]

_FLOAT = ("float32",)
_FRACTION = 12
_DOUBT = 8
_MOST_BIAS = 1 << 10
"""In levels. Each of the floats' roundings is at most 2⁻²⁴ of a value of at most 2 · 2¹⁰ levels, or the level is a
bound by far: less than 4 steps of 2⁻¹² in all, besides 3 for what the integers cut off."""

_GATE, _GATED_DOUBT, _MOST_GATED_BIAS = 22, 24, 32.0
"""Of a HardSwish: bits of x / 6 + 1/2, three steps of which may be wrong; of at most 2^11 levels that it multiplies
this is 6 steps of 2⁻¹². And the largest bias, so that the difference of a product and that has so many bits."""

_MOST_GATED = 1 << 23

_FAR = 1 << 17
"""Levels that are beyond all bounds, and whose steps fit int32."""

_LEAST_EXPONENT = 75
"""Of factor / scale, that of a quotient that is a normal number by far; 150 is that of a mantissa as it is."""

_ROOM = 18
"""Bits of levels below which products fit int32: sums of ``bits`` bits are less than 2^bits. Both factors have 31, and
the upper word of their product is shifted right."""

_CYCLES = 36
"""Of a level besides its loop and accesses, measured in RTL: product, shift, sum, bounds."""

_GATED_CYCLES = 40
"""Cycles that a HardSwish adds to it, measured in RTL."""


class LevelsOfSums(Elementwise):
    """Inputs: int32 sums, their float32 factor, perhaps a float32 bias, the levels' scale and zero point.

    Attribute ``bits`` bounds the sums, |sum| < 2^bits. Floats below 0 are multiplied by ``alpha``, which is below 1/2,
    and all are bounded by ``low`` and ``high``, where these are given; with ``hard_swish`` it is that function of them.
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
        bits = int(attribute(call, "bits", 31))
        given = {name: float(call.attrs[name]) for name in ("low", "high", "alpha", "hard_swish") if name in call.attrs}
        real = sums.cast("float32") * factor
        if bias and bias[0] is not None:
            real = real + bias[0]
        if "alpha" in given:
            real = leaky(real, given["alpha"])
        if "hard_swish" in given:
            real = hard_swish(real)
        if "low" in given or "high" in given:
            real = clipped(real, given.get("low", -INFINITY), given.get("high", INFINITY))
        divided = DIVIDED_LEVELS[zero.dtype](real, scale, zero.cast("float32"))
        return _quick(sums, (factor, bias[0] if bias else None, scale, zero), divided, given, bits)

    def formula_cycles(self, call: Call, part: Expression) -> float:
        if not any(node.op == "call" for node in nodes(part)):
            return super().formula_cycles(call, part)
        return _CYCLES + (_GATED_CYCLES if "hard_swish" in call.attrs else 0)


def _quick(sums: Expression, numbers: Sequence[Expression | None], divided: Expression, given: Mapping[str, float],
           bits: int) -> Expression:
    """Return the level of a sum in integers where it is known to be that, else ``divided``."""
    factor, bias, scale, zero = numbers
    assert factor is not None
    assert scale is not None
    assert zero is not None
    fixed, known = _product(sums, factor / scale, bits, _FRACTION, "")
    if bias is not None:
        offset = (bias / scale).named("offset")
        fits = both(offset > -_MOST_BIAS, offset < _MOST_BIAS)
        steps = where(fits, offset * (1 << _FRACTION), constant(0, "float32")).cast("int32").named("steps")
        fixed, known = fixed + steps, both(known, fits).named("near")
    fixed, doubt = _bent(fixed, scale, given), _DOUBT
    if given.get("hard_swish"):
        fixed, fits = _gated(fixed, sums, factor, bias, bits)
        known, doubt = both(known, fits).named("certain"), _GATED_DOUBT
    bounds = np.iinfo(zero.dtype)
    rounded = (fixed + (1 << _FRACTION - 1)).named("rounded")
    level = ((rounded >> _FRACTION) + zero.cast("int32")).named("level")
    if given.get("low") != 0:
        level = where(level < int(bounds.min), constant(int(bounds.min), "int32"), level).named("raised")
    bounded = where(level > int(bounds.max), constant(int(bounds.max), "int32"), level).cast(zero.dtype)
    apart = ((rounded + doubt) & ((1 << _FRACTION) - 1)) >= 2 * doubt
    return where(both(known, apart), bounded, divided)      # used once, so that C computes in floats where it must


def _product(sums: Expression, ratio: Expression, bits: int, fraction: int, name: str) -> tuple[Expression, Expression]:
    """Return sums times a float in steps of 2^-fraction, cut off, and whether they are known to be that."""
    word = ratio.view("int32").named(f"{name}word")
    exponent = (word >> 23).named(f"{name}exponent")
    most = 126 + _ROOM - bits - (fraction - _FRACTION)
    known = both(exponent >= _LEAST_EXPONENT - (fraction - _FRACTION), exponent <= most).named(f"{name}known")
    shift = (constant(most, "int32") - where(known, exponent, constant(most, "int32"))).named(f"{name}shift")
    right = where(shift < 31, shift, constant(31, "int32")).named(f"{name}right")  # by more, a product is 0 or -1 too
    mantissa = (((word & 0x7F_FFFF) | 0x80_0000) << 7).named(f"{name}mantissa")
    return high(sums << 31 - bits, mantissa) >> right, known


def _gated(fixed: Expression, sums: Expression, factor: Expression, bias: Expression | None,
           bits: int) -> tuple[Expression, Expression]:
    """Return steps of levels times x / 6 + 1/2, from 0 to 1, of the floats x, and whether they are known."""
    line, known = _product(sums, (factor * (1 / 6)).named("sixth"), bits, _GATE, "gate_")
    half = constant(1 << _GATE - 1, "int32")
    if bias is not None:
        fits = both(bias > -_MOST_GATED_BIAS, bias < _MOST_GATED_BIAS)
        half = (where(fits, bias * ((1 << _GATE) / 6), constant(0, "float32")).cast("int32") + half).named("half")
        known = both(known, fits).named("gate_near")
    line = (line + half).named("gate_line")
    one = constant(1 << _GATE, "int32")
    gate = where(line < 0, constant(0, "int32"), where(line > one, one, line)).named("gate")
    fixed = fixed.named("ungated")
    few = binary("bitwise_or", equal(gate, 0), both(fixed > -_MOST_GATED, fixed < _MOST_GATED))
    product = fixed.cast("int64") * gate.cast("int64")
    return (product >> _GATE).cast("int32").named("gated"), both(known, few)


def _bent(fixed: Expression, scale: Expression, given: Mapping[str, float]) -> Expression:
    """Return steps of levels with the slope below 0 and within the bounds that are ``given``."""
    if "alpha" in given:
        fixed = fixed.named("straight")
        slope = constant(round(given["alpha"] * 2.0**32), "int32")
        fixed = where(fixed < 0, high(fixed, slope), fixed)
    for name, beyond in (("low", "less"), ("high", "greater")):
        if name in given:
            fixed, bound = fixed.named(f"before_{name}"), _steps(name, given[name], scale).named(f"{name}est")
            fixed = where(compare(beyond, fixed, bound), bound, fixed)
    return fixed


def _steps(name: str, bound: float, scale: Expression) -> Expression:
    """Return a bound of floats in steps of levels; far off, those of a number that no level comes near."""
    if bound == 0:
        return constant(0, "int32")
    level = (constant(bound, "float32") / scale).named(f"{name}_level")
    most = _FAR << _FRACTION
    below = where(level < float(_FAR), (level * (1 << _FRACTION)).cast("int32"), constant(most, "int32"))
    return where(level > -float(_FAR), below, constant(-most, "int32"))


LEVELS_OF_SUMS = LevelsOfSums()
