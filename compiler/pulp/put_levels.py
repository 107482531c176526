"""Sums written as ONNX's own quantised operators, with numbers that give the same levels."""

from fractions import Fraction
from itertools import product

import numpy as np

from tilewright.compiler.network.integer_scale import IntegerScale
from tilewright.compiler.network.layers import Residual
from tilewright.compiler.network.reference import residual_table
from tilewright.compiler.pulp.exact_scale import ExactScale, exact_scale
from tilewright.compiler.pulp.level_values import ByteLevels, ConstantProduct, LevelTerms, PendingSums
from tilewright.compiler.pulp.pulp_node import PulpNode
from tilewright.compiler.pulp.shifted_levels import ShiftRequantisation

__all__ = ["put_levels", "put_sums"]

_MOST_BITS = 47
"""Of products and shifts, so that all that is compared here fits 64 bits."""
_EXACT, _WHOLE = 1 << 24, 1 << 31
"""Of sums that float32 and int32 hold."""
_FIRST, _LAST = 10, 24
"""Steps of 2**-n of its ratio by which a scale is moved to bring halves to the other side."""
_SHIFTED = 3
"""So many other zero points of a sum are tried."""


def put_levels(node: PulpNode, sums: PendingSums, requantisation: ShiftRequantisation,
               target: ByteLevels) -> ByteLevels:
    """Write the levels of some sums as ``target``, and return it.

    Raises
    ------
    UnsupportedNodeError
        If no scales give these levels for all sums, or products or the shift are too large.
    """
    bound = max(max(abs(low), abs(high)) for low, high in sums.source.reach)
    if requantisation.largest(bound).bit_length() > _MOST_BITS or requantisation.shift > _MOST_BITS:
        raise node.refusal(f"its products may leave {_MOST_BITS} bits, or its shift is {requantisation.shift}",
                           "use smaller factors")
    clipped = (requantisation.low, requantisation.high) != target.bounds
    levels = target.named(f"{target.name}:unbounded") if clipped else target
    source = sums.source
    if isinstance(source, ConstantProduct):
        _put_product(node, source, requantisation, levels)
    elif len(source.terms) == 1:
        _put_table(node, source, requantisation, levels)
    else:
        _put_sum(node, source, requantisation, levels)
    if clipped:
        bounds = [node.made.constant(f"{target.name}:{what}", np.array(value + target.zero, target.dtype))
                  for what, value in (("low", requantisation.low), ("high", requantisation.high))]
        node.made.node("Clip", [levels.name, *bounds], target.name)
    return target


def put_sums(node: PulpNode, sums: PendingSums, output: str) -> None:
    """Write sums that the network hands out as they are, in float32.

    Raises
    ------
    UnsupportedNodeError
        If they are no plain sums of a product, or float32 does not hold them.
    """
    source = sums.source
    if not isinstance(source, ConstantProduct) or sums.shift or set(sums.multipliers) != {1}:
        raise node.refusal("the network hands out what is not bounded to 8 bits", "end it with levels, or with sums")
    bound = max(max(abs(low + addend), abs(high + addend))
                for (low, high), addend in zip(source.reach, sums.addends, strict=True))
    if bound >= (_WHOLE if source.dense else _EXACT):
        raise node.refusal(f"the sums that it hands out reach {bound:,}, which float32 does not hold",
                           "end the network with levels")
    made = node.made.real_product if bound < _EXACT else node.made.whole_product
    made(source, (node.label, output), np.array(sums.addends))


def _put_product(node: PulpNode, source: ConstantProduct, requantisation: ShiftRequantisation,
                 levels: ByteLevels) -> None:
    zero, found = _scales(requantisation, source.reach, levels)
    if found is None:
        _put_shifted(node, source, requantisation, levels)
        return
    biases, scales = zip(*found, strict=True)
    node.made.product(source, (node.label, levels.name), np.array(biases, np.int32), np.array(scales, np.float32),
                      zero + levels.zero)


def _put_shifted(node: PulpNode, source: ConstantProduct, requantisation: ShiftRequantisation,
                 levels: ByteLevels) -> None:
    """Write the levels of a product for which there are no float32 scales, as what they are."""
    bound = max(max(abs(low), abs(high)) for low, high in source.reach)
    if bound >= _EXACT:
        raise node.refusal(f"no float32 scales give its levels for every sum, and its sums reach {bound:,}, which "
                           "float32 does not hold", "use fewer input channels, or smaller weights")
    try:
        IntegerScale.of(requantisation.multipliers, requantisation.addends, requantisation.shift)
    except ValueError as error:
        raise node.refusal(f"no float32 scales give its levels for every sum, and {error}",
                           "use smaller factors") from error
    node.made.shifted_product(source, (node.label, levels.name), requantisation, levels)


def _scales(requantisation: ShiftRequantisation, reach: tuple[tuple[int, int], ...],
            levels: ByteLevels) -> tuple[int, list[ExactScale] | None]:
    """Return a zero point with which every channel has a scale, and these; None if there is no such zero point.

    A zero point moves the sums at which levels begin by parts of a sum, and brings halves to where all go up.
    """
    low, high = levels.bounds
    for zero in dict.fromkeys((0, *range(low, high + 1))):
        found: list[ExactScale] = []
        for channel, bounds in enumerate(reach):
            scale = exact_scale(requantisation, channel, bounds, zero)
            if scale is None:
                break
            found.append(scale)
        else:
            return zero, found
    return 0, None


def _put_table(node: PulpNode, source: LevelTerms, requantisation: ShiftRequantisation, levels: ByteLevels) -> None:
    """Write levels of levels: a list of 256, whose last places are those of numbers below 0."""
    (x, factor), = source.terms
    made, name = node.made, levels.name
    low, high = x.bounds
    numbers = np.arange(low, high + 1)
    table = np.zeros(numbers.size, np.float32)
    table[numbers % numbers.size] = requantisation.levels(numbers * factor, 0)
    place = made.node("Cast", [made.real(x, f"{name}:x")], f"{name}:place", to=6)
    found = made.node("Gather", [made.constant(f"{name}:table", table), place], f"{name}:real", axis=0)
    made.node("QuantizeLinear", [found, *made.numbers(f"{name}:numbers", levels.dtype, levels.zero)], name, node.label)


def _put_sum(node: PulpNode, source: LevelTerms, requantisation: ShiftRequantisation, levels: ByteLevels) -> None:
    """Write the levels of a sum of two tensors as QLinearAdd, with scales proved for all 65,536 pairs."""
    (a, factor_a), (b, factor_b) = source.terms
    down = 128 if levels.dtype == "uint8" else 0
    zeros = tuple(each.zero - down for each in (a, b, levels))
    values = np.arange(-128, 128)
    sums = (values - zeros[0])[:, None] * factor_a + (values - zeros[1]) * factor_b
    wanted = requantisation.levels(sums, 0) + zeros[2]
    ratio = Fraction(requantisation.multipliers[0], 1 << requantisation.shift)
    bounds = requantisation.low + zeros[2], requantisation.high + zeros[2]
    for moved, read in product(_near(float(ratio)), _zeros(ratio, (factor_a, factor_b), zeros)):
        operands = [(np.float32(factor_a * moved), read[0]), (np.float32(factor_b * moved), read[1])]
        try:
            found = [_pairs(each, read[2], bounds, unsigned=down != 0) for each in (operands, operands[::-1])]
        except ValueError:
            continue    # too far apart for the datapath's numbers
        # The datapath's first operand is the layer's own value, whichever that will be.
        if np.array_equal(found[0], wanted) and np.array_equal(found[1], wanted.T):
            given = [(each.name, *node.made.numbers(f"{levels.name}:{name}", each.dtype, zero + down, scale))
                     for name, each, (scale, zero) in zip("ab", (a, b), operands, strict=True)]
            own = node.made.numbers(f"{levels.name}:numbers", levels.dtype, read[2] + down)
            node.made.node("QLinearAdd", [*given[0], *given[1], *own], levels.name, node.label)
            return
    raise node.refusal(f"no scales of the residual adder give its levels for all pairs (factors {factor_a} and "
                       f"{factor_b}, times {requantisation.multipliers[0]}, plus {requantisation.addends[0]}, shift "
                       f"{requantisation.shift})", "train the network with unsigned sums, or with factors that halve "
                       "them at least")


def _zeros(ratio: Fraction, factors: tuple[int, int], zeros: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Return zero points by which to read two operands and the result, int8: their own, and some below.

    With those below, halves of numbers below 0 are above 0, and all go up.
    """
    found = [(zeros[0], zeros[1], zeros[2])]
    rooms = zeros[0] + 128, zeros[1] + 128
    for moved in range(zeros[2] + 128, 0, -1):
        total = moved / ratio
        for first in range(rooms[0], -1, -1):
            second = (total - first * factors[0]) / factors[1]
            if total.denominator == 1 and second.denominator == 1 and 0 <= second <= rooms[1]:
                found.append((zeros[0] - first, zeros[1] - int(second), zeros[2] - moved))
                break
        if len(found) > _SHIFTED:
            break
    return found


def _pairs(operands: list[tuple[np.float32, int]], zero: int, bounds: tuple[int, int], *, unsigned: bool) -> np.ndarray:
    """Return the datapath's sum of every pair of bytes, (256, 256), for scale and zero point of both operands."""
    (scale_a, zero_a), (scale_b, zero_b) = operands
    return residual_table(Residual(tensor="", scale_a=scale_a, scale_b=scale_b, zero_a=zero_a, zero_b=zero_b,
                                   zero_out=zero, low=bounds[0], high=bounds[1], unsigned=unsigned))


def _near(ratio: float) -> list[float]:
    """Return a ratio and those near it, the nearest first."""
    steps = [2.0**-power for power in range(_LAST, _FIRST, -1)]
    return [ratio, *(ratio * (1 + sign * step) for step in steps for sign in (1, -1))]
