"""Sums written as ONNX's own quantised operators, with numbers that give the same levels."""

import numpy as np

from tilewright.compiler.network.layers import Residual
from tilewright.compiler.network.reference import residual_table
from tilewright.compiler.pulp.exact_scale import exact_scale
from tilewright.compiler.pulp.level_values import ByteLevels, ConstantProduct, LevelTerms, PendingSums
from tilewright.compiler.pulp.pulp_node import PulpNode
from tilewright.compiler.pulp.shifted_levels import ShiftRequantisation

__all__ = ["put_levels", "put_sums"]

_WORD = 1 << 31
_EXACT = 1 << 24
_FIRST, _LAST = 10, 24
"""Steps of 2**-n of its ratio by which a scale is moved to bring halves to the other side."""


def put_levels(node: PulpNode, sums: PendingSums, requantisation: ShiftRequantisation,
               target: ByteLevels) -> ByteLevels:
    """Write the levels of some sums as ``target``, and return it.

    Raises
    ------
    UnsupportedNodeError
        If no scales give these levels for all sums, or these leave 32 bits.
    """
    bound = max(max(abs(low), abs(high)) for low, high in sums.source.reach)
    if requantisation.largest(bound) >= _WORD * (1 << 16):
        raise node.refusal("its products may leave 48 bits", "use smaller factors")
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
    if bound >= _EXACT:
        raise node.refusal(f"the sums that it hands out reach {bound:,}, which float32 does not hold",
                           "end the network with levels")
    node.made.real_product(source, (node.label, output), np.array(sums.addends))


def _put_product(node: PulpNode, source: ConstantProduct, requantisation: ShiftRequantisation,
                 levels: ByteLevels) -> None:
    for zero in dict.fromkeys((0, levels.bounds[0])):
        found = [exact_scale(requantisation, channel, reach, zero) for channel, reach in enumerate(source.reach)]
        if all(each is not None for each in found):
            break
    lost = [channel for channel, scale in enumerate(found) if scale is None]
    if lost:
        raise node.refusal(
            f"no float32 scale gives its levels for every sum, in {len(lost)} of {len(found)} channels, {lost[0]} "
            f"first (multiplier {requantisation.multipliers[lost[0]]}, addend {requantisation.addends[lost[0]]}, shift "
            f"{requantisation.shift})",
            "train the network without addends of its own, or give its float form with --calibrate")
    biases, scales = zip(*(each for each in found if each is not None), strict=True)
    node.made.product(source, (node.label, levels.name), np.array(biases, np.int32), np.array(scales, np.float32),
                      zero + levels.zero)


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
    ratio = requantisation.multipliers[0] / 2.0**requantisation.shift
    bounds = requantisation.low + zeros[2], requantisation.high + zeros[2]
    for moved in _moved(ratio):
        scales = np.float32(factor_a * moved), np.float32(factor_b * moved)
        operands = list(zip(scales, zeros, strict=False))
        try:
            found = [_pairs(operands, zeros[2], bounds, unsigned=down != 0),
                     _pairs(operands[::-1], zeros[2], bounds, unsigned=down != 0)]
        except ValueError:
            break       # too far apart for the datapath's numbers
        # The datapath's first operand is the layer's own value, whichever that will be.
        if np.array_equal(found[0], wanted) and np.array_equal(found[1], wanted.T):
            given = [(each.name, *node.made.numbers(f"{levels.name}:{name}", each.dtype, each.zero, scale))
                     for name, each, scale in (("a", a, scales[0]), ("b", b, scales[1]))]
            own = node.made.numbers(f"{levels.name}:numbers", levels.dtype, levels.zero)
            node.made.node("QLinearAdd", [*given[0], *given[1], *own], levels.name, node.label)
            return
    raise node.refusal(f"no scales of the residual adder give its levels for all pairs (factors {factor_a} and "
                       f"{factor_b}, times {requantisation.multipliers[0]}, plus {requantisation.addends[0]}, shift "
                       f"{requantisation.shift})", "train the network with an addend of 0")


def _pairs(operands: list[tuple[np.float32, int]], zero: int, bounds: tuple[int, int], *, unsigned: bool) -> np.ndarray:
    """Return the datapath's sum of every pair of bytes, (256, 256), for scale and zero point of both operands."""
    (scale_a, zero_a), (scale_b, zero_b) = operands
    return residual_table(Residual(tensor="", scale_a=scale_a, scale_b=scale_b, zero_a=zero_a, zero_b=zero_b,
                                   zero_out=zero, low=bounds[0], high=bounds[1], unsigned=unsigned))


def _moved(ratio: float) -> list[float]:
    """Return a ratio and those near it, the nearest first."""
    steps = [2.0**-power for power in range(_LAST, _FIRST, -1)]
    return [ratio, *(ratio * (1 + sign * step) for step in steps for sign in (1, -1))]
