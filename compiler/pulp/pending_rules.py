"""The effect of each operator of an integer network on levels and sums: products begin sums, and bounds end them."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from onnx import TensorProto

from tilewright.compiler.pulp.level_values import ByteLevels, ConstantProduct, LevelTerms, PendingSums
from tilewright.compiler.pulp.pulp_node import PulpNode, Value
from tilewright.compiler.pulp.put_levels import requantised
from tilewright.compiler.pulp.window_rules import average, padded

__all__ = ["MOVES", "RULES"]

MOVES = ("Concat", "Dropout", "Flatten", "Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators that move or compare levels, and leave their type."""

_WINDOW = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_WIDEST = 255


def _convolution(node: PulpNode) -> PendingSums:
    weights = _weights(node)
    if weights.ndim not in (3, 4):
        raise node.refusal(f"its weights have the shape {list(weights.shape)}",
                           "use convolutions over one or two dimensions")
    attributes = {name: value for name in _WINDOW if (value := node.attribute(name)) is not None}
    return _with_bias(node, ConstantProduct(*_operands(node, weights), dense=False, attributes=attributes))


def _matrix_product(node: PulpNode) -> PendingSums:
    if node.number("transA", 0) or node.number("alpha", 1) != 1 or node.number("beta", 1) != 1:
        raise node.refusal("it has factors, or its input is transposed", "use a product without them")
    weights = _weights(node)
    if weights.ndim != 2:
        raise node.refusal(f"its weights have the shape {list(weights.shape)}", "use weights of two dimensions")
    turned = weights if node.number("transB", 0) else weights.T
    return _with_bias(node, ConstantProduct(*_operands(node, np.ascontiguousarray(turned)), dense=True))


def _operands(node: PulpNode, weights: np.ndarray) -> tuple[ByteLevels, np.ndarray]:
    """Return levels and weights of a product, output channels first.

    A sum of tensors that 8 bits may not hold is not bounded: its product is that of all of them side by side.
    """
    given = node.given[0]
    if not isinstance(given, PendingSums) or not isinstance(given.source, LevelTerms) or given.shift \
            or given.divisor > 1 or (given.multipliers, given.addends) != ((1,), (0,)) or node.number("group", 1) != 1:
        return node.levels(), weights
    levels, factors = zip(*given.source.terms, strict=True)
    joined = np.concatenate([weights.astype(np.int64) * factor for factor in factors], axis=1)
    if len({each.named("") for each in levels}) != 1 or joined.min() < -128 or joined.max() > 127:
        raise node.refusal("its input is a sum that 8 bits may not hold, of tensors of unlike types or large factors",
                           "bound the sum to 8 bits")
    name = node.made.node("Concat", [each.name for each in levels], f"{node.target}:terms", axis=1)
    return levels[0].named(name), joined.astype(np.int8)


def _weights(node: PulpNode) -> np.ndarray:
    """Return constant weights as int8; MATCH stores them as uint8, which no Conv of ONNX takes otherwise."""
    given = node.given[1] if len(node.given) > 1 else None
    if isinstance(given, np.ndarray) and given.dtype == np.uint8:
        return given.view(np.int8)
    weights = node.constant(1, "weight")
    if weights.min() < -128 or weights.max() > 127:
        raise node.refusal(f"its weights reach from {weights.min()} to {weights.max()}", "use weights of 8 bits")
    return weights.astype(np.int8)


def _with_bias(node: PulpNode, product: ConstantProduct) -> PendingSums:
    ones, zeros = (1,) * product.channels, (0,) * product.channels
    sums = PendingSums(product, ones, zeros)
    if len(node.given) < 3 or node.given[2] is None:
        return sums
    bias = node.constant(2, "bias").reshape(-1)
    if bias.size not in (1, product.channels):
        raise node.refusal(f"its bias has {bias.size} elements and its sums {product.channels} channels",
                           "export the network again")
    return sums.plus(bias)


def _other(node: PulpNode) -> tuple[PendingSums, np.ndarray]:
    """Return the computed and the constant operand of a node of two, in whichever order."""
    if len(node.given) != 2 or not any(isinstance(each, np.ndarray) for each in node.given):
        raise node.refusal("it combines two computed tensors", "cut the network before this node")
    at = 1 if isinstance(node.given[1], np.ndarray) else 0
    sums = _uncut(node, node.pending(1 - at))
    return sums, node.per_channel(sums, node.constant(at, "constant"), "constant")


def _uncut(node: PulpNode, sums: PendingSums) -> PendingSums:
    if sums.cut:
        raise node.refusal("it follows a division before the bounds", "multiply and add before dividing")
    return sums


def _times(node: PulpNode) -> PendingSums:
    sums, factors = _other(node)
    if factors.min() < 1:
        raise node.refusal(f"it multiplies by {factors.min()}", "fold factors below 1 into the weights")
    return sums.times(factors)


def _plus(node: PulpNode) -> Value:
    if len(node.given) == 2 and not any(isinstance(each, np.ndarray) for each in node.given):
        return _sum(node)
    sums, addends = _other(node)
    return sums.plus(addends)


def _sum(node: PulpNode) -> PendingSums:
    """Return the sum of tensors of levels, each maybe times a number."""
    terms: list[tuple[ByteLevels, int]] = []
    addend, shapes = 0, set[tuple[int, ...]]()
    for position in (0, 1):
        sums = _uncut(node, node.pending(position))
        if not isinstance(sums.source, LevelTerms) or sums.divisor > 1 or sums.shift:
            raise node.refusal("it adds sums before they are bounded to 8 bits", "requantise before it")
        terms += [(levels, factor * sums.multipliers[0]) for levels, factor in sums.source.terms]
        addend += sums.addends[0]
        shapes.add(node.made.shapes.get(node.proto.input[position], ()))
    return PendingSums(LevelTerms(tuple(terms), shapes.pop() if len(shapes) == 1 else ()), (1,), (addend,))


def _divided(node: PulpNode) -> PendingSums:
    sums, divisor = node.pending(), int(node.constant(1, "divisor").reshape(-1)[0])
    if node.constant(1, "divisor").size != 1 or divisor < 1:
        raise node.refusal("its divisor is not one number above 0", "export the network with such divisors")
    given = node.given[1]
    whole = isinstance(given, np.ndarray) and given.dtype.kind in "iu"
    return sums.divided(divisor, "to zero" if whole else sums.cut)


def _floor(node: PulpNode) -> PendingSums:
    sums = node.pending()
    return sums.divided(1, sums.cut or "down") if sums.shift or sums.divisor > 1 else sums


def _cast(node: PulpNode) -> Value:
    given = node.given[0]
    if isinstance(given, ByteLevels):
        return given
    sums = node.pending()
    floats = node.number("to") in (TensorProto.FLOAT, TensorProto.DOUBLE)
    cut = "to zero" if (sums.shift or sums.divisor > 1) and not sums.cut and not floats else sums.cut
    return replace(sums, cut=cut)


def _bounded(node: PulpNode) -> ByteLevels:
    def bound(position: int, name: str, otherwise: float) -> float:
        if len(node.given) > position and node.given[position] is not None:
            return float(node.constant(position, name).reshape(-1)[0])
        return float(np.asarray(node.attribute(name, otherwise)).reshape(-1)[0])

    low, high = bound(1, "min", -np.inf), bound(2, "max", np.inf)
    if not np.isfinite(low) or not np.isfinite(high) or low > high or low != np.rint(low) or high != np.rint(high):
        raise node.refusal(f"its bounds are {low} and {high}", "bound levels to 8 bits")
    sums = node.pending()
    if (sums.shift or sums.divisor > 1) and (not sums.cut or (sums.cut == "to zero" and low < 0)):
        raise node.refusal("what it bounds is not cut down to whole numbers", "put Floor before it")
    return requantised(node, sums, int(low), int(high))


def _requant_shift(node: PulpNode) -> ByteLevels:
    """Return the levels of Deeploy's RequantShift, halves up."""
    sums = _uncut(node, node.pending())
    factors, addends = (node.per_channel(sums, node.constant(at, what), what) for at, what in ((1, "mul"), (2, "add")))
    divisor, levels, signed = node.number("div"), node.number("n_levels_out", 256), node.number("signed", 1)
    shift = divisor.bit_length() - 1
    if factors.min() < 1 or divisor < 1 or divisor != 1 << shift or not 2 <= levels <= _WIDEST + 1 or levels % 2:
        raise node.refusal(f"its mul reaches down to {factors.min()}, its div is {divisor}, its n_levels_out {levels}",
                           "export the network with factors above 0, a power of two, and levels of 8 bits")
    half = np.array([divisor >> 1])
    low = -(levels // 2) if signed else 0
    scaled = sums.times(factors).plus(addends).plus(half)
    return requantised(node, replace(scaled, shift=scaled.shift + shift, cut="down"), low, low + levels - 1)


RULES: dict[str, Callable[[PulpNode], Value]] = {
    "Add": _plus, "AveragePool": average, "Cast": _cast, "Clip": _bounded, "Conv": _convolution, "Div": _divided,
    "Floor": _floor, "Gemm": _matrix_product, "GlobalAveragePool": average, "MatMul": _matrix_product, "Mul": _times,
    "Pad": padded, "RequantShift": _requant_shift,
}
"""Of each operator, what it makes of its inputs."""
