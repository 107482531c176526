"""Sums of two tensors of words, and single ones that are scaled anew, as layers of the datapath.

A sum of two has weights in the ratio of their scales, and what is left of the scales is that of its channels. An int8
weight would be too coarse for one of the two. It has a finer digit, in units of 1/256, by which its upper byte alone is
multiplied, so that a sum is within half of that digit, in units, of the real one:

    256 (w u_a + v u_b) + w l_a + v l_b + d u_b  =  w a + (v + d / 256) b - d / 256 l_b  + constant,   |l_b| <= 128

`weigh` takes the weights of the least bound. Of 3,000 pairs of scales up to sixteen times apart the median of the bound
is 0.04 levels, and the largest is 0.4; from `MOST_ERROR` on there is no layer.
"""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.network.layer_uses import WordAddend, WordPlanes
from tilewright.compiler.network.layers import CoreLayer, Kind, Layer, Requantisation
from tilewright.compiler.words.word_group import WordOperand, WordResult
from tilewright.isa.numerics import pack_scale
from tilewright.isa.words.word_planes import LOWER_OFFSET

__all__ = ["MOST_ERROR", "Weighting", "scaled_layer", "sum_layer", "weigh"]

MOST_ERROR = 0.5
"""Levels of a result by which its sum may be off before it is rounded."""

_MOST_WEIGHT = 127
_BYTE = 256
_MOST_BIAS = 2.0**30


@dataclass(frozen=True, slots=True)
class Weighting:
    """Weights of a sum: of the other operand, and of a layer's own with its finer digit.

    ``unit`` is the scale of the sum, in levels of the result, and ``error`` the bound of what it is off, in levels.
    """

    other: int
    coarse: int
    fine: int
    unit: float
    error: float

    @property
    def weights(self) -> tuple[int, ...]:
        """The int8 weights in the order in which they meet planes."""
        return (self.fine, self.other, self.coarse) if self.fine else (self.other, self.coarse)


def weigh(other: float, own: float, own_span: float, *, own_words: bool) -> Weighting | None:
    """Return the weights for ``other * a + own * b``, in levels of the result; None if there are none.

    Parameters
    ----------
    other, own : float
        Scales of the operands over that of the result; ``other`` is positive.
    own_span : float
        The largest distance of a level of the layer's own operand from its zero point.
    own_words : bool
        Whether this is one of words, whose lower bytes the finer digit does not meet.
    """
    weights = np.arange(1, _MOST_WEIGHT + 1)
    wanted = own / other * weights
    weights, wanted = weights[np.abs(wanted) <= _MOST_WEIGHT], wanted[np.abs(wanted) <= _MOST_WEIGHT]
    found: list[Weighting] = []
    for digits in (1, _BYTE) if weights.size else ():
        levels = np.rint(wanted * digits) * (_BYTE // digits)
        coarse = np.rint(levels / _BYTE)
        fine = levels - _BYTE * coarse
        kept = np.abs(fine) <= _MOST_WEIGHT
        unit = other / weights
        error = np.where(kept, unit * (np.abs(fine) / 2 * own_words + np.abs(wanted - levels / _BYTE) * own_span + 0.5),
                         np.inf)
        best = int(error.argmin())
        found.append(Weighting(int(weights[best]), int(coarse[best]), int(fine[best]), float(unit[best]),
                               float(error[best])))
    # Without a finer digit there is a step less.
    return next((each for each in found if each.error < MOST_ERROR / 4),
                min(found, key=lambda each: each.error, default=None))


def sum_layer(operator: CoreLayer, operands: tuple[WordOperand, WordOperand], signs: tuple[int, int],
              y: WordResult) -> Layer | str:
    """Return the layer that adds two tensors, each times its sign, by plain names; or why there is none."""
    if operands[0].info.shape != operands[1].info.shape or _lies(operands[0]) != _lies(operands[1]):
        return "its inputs have different shapes"
    choices = []
    for own, other in ((1, 0), (0, 1)):
        a, b = operands[other], operands[own]
        levels = [float(np.float64(each.scale) / np.float64(y.operand.scale)) / (1 if each.words else _BYTE)
                  for each in (a, b)]
        span = (1 if b.words else _BYTE) * max(abs(edge - b.zero) for edge in b.bounds)
        found = weigh(levels[0], levels[1] * signs[0] * signs[1], span, own_words=b.words)
        if found is not None and signs[other] > 0:
            choices.append((found, a, b))
    if not choices:
        return "its scales are too far apart"
    chosen, a, b = min(choices, key=lambda each: each[0].error)
    if chosen.error >= MOST_ERROR:
        return "its scales are too far apart"
    weight = chosen.coarse + chosen.fine / _BYTE
    bias = _offset(a) * chosen.other + _offset(b) * weight
    made = _layer(operator, b, y, "conv", (np.float32(chosen.unit), bias))
    if isinstance(made, str):
        return made
    taps = np.array(chosen.weights, np.int8)[None, None, :, None]
    return replace(made, weights=np.ascontiguousarray(np.broadcast_to(taps, (made.groups, 1, len(chosen.weights), 1))),
                   words=WordPlanes(addend=WordAddend(upper=a.info.name, lower="", weights=chosen.weights)))


def scaled_layer(operator: CoreLayer, x: WordOperand, y: WordResult, factor: float = 1.0,
                 offset: float = 0.0) -> Layer | str:
    """Return the layer that computes ``factor * x + offset``, by plain names; or why there is none."""
    if x.info.shape != y.operand.info.shape:
        return "its input has another shape"
    scale = np.float64(x.scale) * factor
    shift = offset / scale + (LOWER_OFFSET if x.words else 0) - x.zero
    return _layer(operator, x, y, "pass", (np.float32(scale / np.float64(y.operand.scale)), shift))


def _lies(operand: WordOperand) -> bool:
    """Tell whether a tensor lies as an image does, and not row by row."""
    return operand.info.dims is None or len(operand.info.dims) == 4


def _offset(operand: WordOperand) -> float:
    """Return what the planes of an operand are less than its level above the zero point, in levels of words."""
    return LOWER_OFFSET - operand.zero if operand.words else -_BYTE * operand.zero


def _layer(operator: CoreLayer, x: WordOperand, y: WordResult, kind: Kind,
           line: tuple[np.float32, float]) -> Layer | str:
    """Return a layer of one pixel in and out, of the scale and the bias of ``line``."""
    (scale, bias), shape = line, x.info.shape
    if not abs(bias) < _MOST_BIAS:
        return "its sums may leave 32 bits"
    try:
        pack_scale(float(scale))
    except ValueError as error:
        return f"its scales are too far apart: {error}"
    low, high = y.bounds
    return Layer(
        name=operator.name, kind=kind, onnx_nodes=operator.onnx_nodes, input=x.info.name, output=y.operand.info.name,
        in_shape=shape, conv_shape=shape, out_shape=shape, weights=None, groups=shape[0],
        bias=np.full(shape[0], round(bias), np.int32), pad_value=x.zero,
        requantisation=Requantisation(scale=np.full(shape[0], scale, np.float32), zero_point=y.operand.zero, low=low,
                                      high=high), exact=False)
