"""Sums of tensors of levels: an addition whose scales are proved for all pairs, or a product of all side by side."""

from fractions import Fraction
from itertools import product

import numpy as np

from tilewright.compiler.network.layers import Residual
from tilewright.compiler.network.reference import residual_table
from tilewright.compiler.pulp.level_values import ByteLevels, ConstantProduct, LevelTerms, PendingSums
from tilewright.compiler.pulp.pulp_node import PulpNode
from tilewright.compiler.pulp.shifted_levels import ShiftRequantisation

__all__ = ["as_product", "put_sum"]

_FIRST, _LAST = 10, 24
"""Steps of 2**-n of its ratio by which a scale is moved to bring halves to the other side."""
_SHIFTED = 3
"""So many other zero points of a sum are tried."""
_LARGEST_WEIGHT, _MOST_COPIES = 127, 64
"""Of a product's weights, and of how many tensors may stand side by side in it."""


def as_product(node: PulpNode, sums: PendingSums, target: str) -> PendingSums:
    """Return a sum of tensors as a product with constant weights, of 0 but for a channel's own numbers.

    They stand side by side, as its input channels, and more than once where factors are above 127. Small factors are
    multiplied by a power of two, which makes biases finer than one step of the sum: so halves may all go up.

    Raises
    ------
    UnsupportedNodeError
        If shapes or factors are not those of such a product.
    """
    source = sums.source
    assert isinstance(source, LevelTerms)
    shape, (tensors, factors) = source.shape, zip(*source.terms, strict=True)
    numbers = f"{', '.join(map(str, factors))}, times {sums.multipliers[0]}, plus {sums.addends[0]}, shift {sums.shift}"
    why = f"the residual adder does not give its levels for all operands (factors {numbers})"
    if len(shape) not in (2, 3, 4) or shape[1] < 1 or len({each.dtype for each in tensors}) > 1:
        raise node.refusal(f"{why}, and they are not of one type, or of one shape of 2 to 4 dimensions",
                           "add tensors of one shape and one type")
    largest = max(factors)
    finer = max((_LARGEST_WEIGHT // largest).bit_length() - 1, 0)
    parts = [(levels, part) for levels, factor in source.terms for part in _parts(factor << finer)]
    if len(parts) > _MOST_COPIES:
        raise node.refusal(f"{why}, and its factors are too large for weights of 8 bits", "use smaller factors")
    name = node.made.node("Concat", [levels.name for levels, _ in parts], f"{target}:terms", axis=1)
    weights = np.concatenate([part * np.eye(shape[1], dtype=np.int64) for _, part in parts], axis=1)
    # All levels are read with the first tensor's zero point.
    first, dense = tensors[0], len(shape) == 2
    weights = weights.reshape(*weights.shape, *(1,) * (len(shape) - 2)).astype(np.int8)
    beside = sum(part * (first.zero - levels.zero) for levels, part in parts)
    made = ConstantProduct(first.named(name), weights, dense)
    multipliers, addends = sums.multipliers * shape[1], ((sums.addends[0] << finer) + sums.multipliers[0] * beside,)
    return PendingSums(made, multipliers, addends * shape[1], sums.shift + finer, sums.cut, sums.divisor)


def _parts(factor: int) -> list[int]:
    """Return weights whose sum is a factor."""
    whole, rest = divmod(factor, _LARGEST_WEIGHT)
    return [_LARGEST_WEIGHT] * whole + [rest] * (rest > 0)


def put_sum(node: PulpNode, source: LevelTerms, requantisation: ShiftRequantisation, levels: ByteLevels) -> bool:
    """Write the levels of a sum of two tensors as QLinearAdd, with scales proved for all 65,536 pairs.

    Returns
    -------
    bool
        False if no scales do, or there are more tensors, and nothing is written.
    """
    if len(source.terms) != 2:
        return False
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
            return True
    return False


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
