"""Sums written as ONNX's own quantised operators, with numbers that give the same levels."""

import numpy as np

from tilewright.compiler.network.integer_scale import IntegerScale
from tilewright.compiler.pulp.exact_scale import ExactScale, exact_scale
from tilewright.compiler.pulp.fitted_shift import narrowed
from tilewright.compiler.pulp.level_sums import as_product, put_sum
from tilewright.compiler.pulp.level_values import ByteLevels, ConstantProduct, LevelTerms, PendingSums, stored_levels
from tilewright.compiler.pulp.pulp_node import PulpNode
from tilewright.compiler.pulp.shifted_levels import ShiftRequantisation
from tilewright.isa.integers.shift_requantise import MULTIPLIER_BITS

__all__ = ["put_sums", "requantised", "whole_levels"]

_MOST_BITS = 47
"""Of products and shifts, so that all that is compared here fits 64 bits."""
_BYTE = 255
_EXACT, _WHOLE = 1 << 24, 1 << 31
"""Of sums that float32 and int32 hold."""


def requantised(node: PulpNode, sums: PendingSums, low: int, high: int) -> ByteLevels:
    """Write the levels of sums within ``low`` and ``high``, and return them."""
    levels = stored_levels(low, high, sums.source.dtype)
    if levels is None:
        raise node.refusal(f"its levels reach from {low} to {high}", "bound levels to 8 bits")
    return _put_levels(node, sums, _requantisation(node, sums, low, high), levels.named(node.target))


def whole_levels(node: PulpNode, sums: PendingSums) -> tuple[ByteLevels, bool]:
    """Write sums that were cut to whole numbers, and that nothing bounds, as the levels that they may be.

    Returns
    -------
    ByteLevels
    bool
        Whether they may be more, and are the largest then: averages of NEMO, which saturate in DORY's kernels.

    Raises
    ------
    UnsupportedNodeError
        If 8 bits do not hold them.
    """
    low, high = sums.reach
    mean = isinstance(sums.source, ConstantProduct) and sums.source.mean
    largest = high if low < 0 or not mean else min(high, _BYTE)
    if sums.cut == "to zero" and low < 0:
        raise node.refusal("what it divides is not cut down to whole numbers", "put Floor behind it")
    return requantised(node, sums, low, largest), largest < high


def _requantisation(node: PulpNode, sums: PendingSums, low: int, high: int) -> ShiftRequantisation:
    """Return what makes levels of sums within ``low`` and ``high``.

    Raises
    ------
    UnsupportedNodeError
        If they are divided by what no power of two equals.
    """
    try:
        return sums.bounded(low, high)
    except ValueError as error:
        raise node.refusal(str(error), "export the network with divisors that are powers of two") from error


def _put_levels(node: PulpNode, sums: PendingSums, requantisation: ShiftRequantisation,
               target: ByteLevels) -> ByteLevels:
    """Write the levels of some sums as ``target``, and return it.

    Raises
    ------
    UnsupportedNodeError
        If no scales give these levels for all sums, or products or the shift are too large.
    """
    _check_widths(node, sums, requantisation)
    clipped = (requantisation.low, requantisation.high) != target.bounds
    levels = target.named(f"{target.name}:unbounded") if clipped else target
    source = sums.source
    if isinstance(source, ConstantProduct):
        _put_product(node, source, requantisation, levels)
    elif len(source.terms) == 1:
        _put_table(node, source, requantisation, levels)
    elif not put_sum(node, source, requantisation, levels):
        product = as_product(node, sums, levels.name)
        requantisation = _requantisation(node, product, requantisation.low, requantisation.high)
        _check_widths(node, product, requantisation)
        assert isinstance(product.source, ConstantProduct)
        _put_product(node, product.source, requantisation, levels)
    if clipped:
        bounds = [node.made.constant(f"{target.name}:{what}", np.array(value + target.zero, target.dtype))
                  for what, value in (("low", requantisation.low), ("high", requantisation.high))]
        node.made.node("Clip", [levels.name, *bounds], target.name)
    return target


def _check_widths(node: PulpNode, sums: PendingSums, requantisation: ShiftRequantisation) -> None:
    bound = max(max(abs(low), abs(high)) for low, high in sums.source.reach)
    if requantisation.largest(bound).bit_length() > _MOST_BITS or requantisation.shift > _MOST_BITS:
        raise node.refusal(f"its products may leave {_MOST_BITS} bits, or its shift is {requantisation.shift}",
                           "use smaller factors")


def put_sums(node: PulpNode, sums: PendingSums, output: str) -> None:
    """Write sums that the network hands out as they are, in float32.

    Raises
    ------
    UnsupportedNodeError
        If they are no plain sums of a product, or float32 does not hold them.
    """
    source = sums.source
    if not isinstance(source, ConstantProduct) or sums.shift or sums.divisor > 1 or set(sums.multipliers) != {1}:
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
    if requantisation.stands_for and max(requantisation.multipliers) >> MULTIPLIER_BITS:
        requantisation, wrong, count = narrowed(requantisation, source.reach, MULTIPLIER_BITS)
        node.made.notes.append(f"{node.label!r} divides by {requantisation.stands_for:,}, here by a power of two: "
                               f"{wrong:,} of {count:,} levels begin at another sum")
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
