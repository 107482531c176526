"""Products of an image and a vector of its channels, one of them or both of words, as layers of the datapath.

A vector of words is 256 u + l + 128, and less its zero point ``256 (u - upper) + (l - lower)`` for bytes ``upper`` and
``lower``. Each half multiplies the image as a vector of bytes does (`ChannelFactor`), and a sum of words joins them.
The upper half's products are kept at a scale a little above the result's, so that none saturates whose sum does not,
and are 0.52 levels off at most; the lower half's are 0.07. The sum adds its own bound (`word_sums`). So a result is the
next level of the real product, or the one beside it.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.network.layers import NEGATED_ZERO, ChannelFactor, CoreLayer, Layer, Requantisation
from tilewright.compiler.words.word_graph import WordGraph
from tilewright.compiler.words.word_group import WordOperand, WordResult
from tilewright.compiler.words.word_moves import Moved
from tilewright.compiler.words.word_sums import sum_layer
from tilewright.compiler.words.word_tensors import lower_name, upper_name
from tilewright.isa.numerics import pack_scale
from tilewright.isa.words.word_planes import LOWER_OFFSET

__all__ = ["scaled_by_vector"]

_BYTE = 256
_WIDER = 1.03
"""Scale of the upper half's products, in that of the result."""

_FINEST = 1 / 8
_MOST = 32_000
"""Levels that the lower half's products take."""


def scaled_by_vector(graph: WordGraph, operator: CoreLayer, operands: tuple[WordOperand, WordOperand],
                     y: WordResult) -> Moved | None:
    """Return the layers of the product of an image and a vector of its channels; None if it is none."""
    x, vector = sorted(operands, key=lambda each: each.info.shape[1:] == (1, 1))
    if vector.info.shape != (x.info.shape[0], 1, 1) or x.info.shape != y.operand.info.shape:
        return None
    found, name = Moved(), operator.name
    scale = float(np.float64(x.scale) * np.float64(vector.scale))
    if not vector.words:
        if vector.zero == NEGATED_ZERO:     # whose products would be negative
            return Moved(reason="its vector of bytes has no negative values")
        found.add(_product(operator, x, ChannelFactor(tensor=vector.info.name, zero_point=vector.zero), scale, y), name)
        return found
    upper = vector.zero // _BYTE
    lower = vector.zero - _BYTE * upper - LOWER_OFFSET
    level = float(y.operand.scale)
    span = max(abs(edge - x.zero) for edge in x.bounds) * (_BYTE - 1) * scale / level
    halves = []
    for which, zero, unit, rest in (("upper", upper, _BYTE * scale, _WIDER),
                                    ("lower", lower, scale, max(_FINEST, span / _MOST))):
        negated = zero == NEGATED_ZERO
        middle = round(y.operand.zero / rest) if which == "upper" else 0
        half = replace(found.word(f"{name}: {which}", y.operand, x.info.shape, -1 - middle if negated else middle),
                       scale=np.float32(level * rest))
        plane = (upper_name if which == "upper" else lower_name)(vector.info.name)
        found.add(_product(operator, x, ChannelFactor(tensor=plane, zero_point=zero, negated=negated), unit,
                           WordResult(graph, half, None)), f"{name}, {which} half")
        halves.append((half, -1 if negated else 1))
    (first, sign), (second, other) = halves
    if sign == other == -1:
        found.add(_turned(sum_layer(operator, (first, second), (1, 1), y)), name)
    else:
        found.add(sum_layer(operator, (first, second), (sign, other), y), name)
    return found


def _product(operator: CoreLayer, x: WordOperand, factor: ChannelFactor, unit: float, y: WordResult) -> Layer | str:
    """Return the layer that multiplies ``x`` by a factor, a level of both being ``unit``; or why there is none."""
    scale = np.float32(unit / np.float64(y.operand.scale))
    try:
        pack_scale(float(scale))
    except ValueError as error:
        return f"its scales are too far apart: {error}"
    (channels, *_), (low, high) = x.info.shape, y.bounds
    return Layer(
        name=operator.name, kind="conv", onnx_nodes=operator.onnx_nodes, input=x.info.name, output=y.operand.info.name,
        in_shape=x.info.shape, conv_shape=x.info.shape, out_shape=x.info.shape, weights=None,
        bias=np.zeros(channels, np.int32), kernel=(1, factor.halves), dilations=(1, 1 if factor.halves == 1 else 0),
        pad_value=x.zero, groups=channels, factor=factor, exact=False, requantisation=Requantisation(
            scale=np.full(channels, scale, np.float32), zero_point=y.operand.zero, low=low, high=high))


def _turned(layer: Layer | str) -> Layer | str:
    """Return a sum of two tensors with the sign of the sum changed."""
    if isinstance(layer, str):
        return layer
    assert layer.weights is not None
    assert layer.words.addend is not None
    added = replace(layer.words.addend, weights=tuple(-each for each in layer.words.addend.weights))
    return replace(layer, weights=-layer.weights, bias=-layer.bias, words=replace(layer.words, addend=added))
