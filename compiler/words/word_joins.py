"""A line or a curve of words is merged into the layer that makes its input, if nothing else reads that input.

``t = clip((x - 128 + b) s + z)`` of ``x = clip(sum S + Z)`` becomes one scale, one zero point and one pair of bounds,
so x is not rounded between. What is left of the zero point goes into the biases, in whole sums.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilewright.compiler.network.layers import CoreLayer, Layer
from tilewright.compiler.words.word_graph import WordGraph
from tilewright.compiler.words.word_group import WordGroup
from tilewright.compiler.words.word_tensors import WORDS, WordPart
from tilewright.isa.numerics import pack_scale
from tilewright.isa.words.word_planes import LOWER_OFFSET

__all__ = ["joined"]

_LEAST, _MOST = -32_768, 32_767
_SUMS = 2.0**31


def joined(graph: WordGraph, makers: Sequence[WordGroup], reader: WordGroup) -> WordGroup | None:
    """Return ``reader`` merged with those of ``makers`` whose result nothing else reads; None if there are none."""
    found = reader
    for maker in makers:
        found = _joined(graph, maker, found) or found
    return None if found is reader else found


def _joined(graph: WordGraph, maker: WordGroup, reader: WordGroup) -> WordGroup | None:
    """Return both groups as one; None if they cannot be merged."""
    name = maker.target
    if name not in reader.sources or graph.tensors[name].dtype not in WORDS or _read_elsewhere(graph, name, reader):
        return None
    uses = [layer for layer in reader.layers if name in _reads(layer)]
    last = uses[0] if len(uses) == 1 else None
    if not isinstance(last, Layer) or last.kind != "pass" or last.input != name or any(
            part.parent == name for part in reader.parts):
        return None
    own = {part.name for part in maker.parts if part.parent == name} | {name}
    if any(set(_reads(layer)) & own for layer in maker.layers):
        return None
    target = next((part for part in reader.parts if part.name == last.output), None)
    if target is not None and (target.row, target.column, target.row_step, target.column_step) != (0, 0, 1, 1):
        return None
    layers = [_moved(layer, last) if layer.writes[0] in own else layer for layer in maker.layers]
    if any(layer is None for layer in layers):
        return None
    kept = [layer for layer in layers if layer is not None]
    at = reader.layers.index(last)
    whole = reader.target if target is None else target.parent
    parts = [_placed(part, whole, target) if part.parent == name else part for part in maker.parts]
    return replace(
        reader, members=tuple(sorted({*maker.members, *reader.members})),
        sources=tuple(dict.fromkeys((*maker.sources, *(each for each in reader.sources if each != name)))),
        layers=(*reader.layers[:at], *kept, *reader.layers[at + 1:]), parts=(*parts, *reader.parts),
        inner=(*maker.inner, *reader.inner))


def _reads(layer: Layer | CoreLayer) -> tuple[str, ...]:
    return tuple(layer.reads)


def _read_elsewhere(graph: WordGraph, name: str, reader: WordGroup) -> bool:
    """Tell whether something besides the layers of a group needs a tensor, or its real numbers."""
    kept, wanted = {info.name for info in graph.network.outputs}, [name]
    while wanted:
        each = wanted.pop()
        if each in kept:
            return True
        for number in graph.readers.get(each, ()):
            if number in reader.members:
                continue
            layer = graph.core(number, "DequantizeLinear")
            if layer is None:
                return True
            wanted.append(layer.output)
    return False


def _placed(part: WordPart, whole: str, target: WordPart | None) -> WordPart:
    """Return ``part`` as a part of tensor ``whole``, in which its parent is part ``target``, or all of it if None."""
    return replace(part, parent=whole, channel=part.channel + (0 if target is None else target.channel))


def _moved(layer: Layer | CoreLayer, line: Layer) -> Layer | None:
    """Return ``layer`` with ``line`` applied to its results; None if its numbers do not allow that."""
    if not isinstance(layer, Layer) or layer.table is not None or layer.factor is not None or layer.whole:
        return None
    own, next_ = layer.requantisation, line.requantisation
    slope, offset = np.float64(next_.scale[0]), float(line.bias[0]) - LOWER_OFFSET
    if np.ptp(line.bias) or np.ptp(next_.scale) or not slope > 0 or own.integers is not None:
        return None
    wanted = (own.zero_point + offset) * slope + next_.zero_point
    zero = int(np.clip(np.rint(wanted), _LEAST, _MOST))
    scale = (own.scale.astype(np.float64) * slope).astype(np.float32)
    with np.errstate(all="ignore"):
        bias = layer.bias + np.rint((wanted - zero) / scale.astype(np.float64))
    if not (np.isfinite(bias).all() and (np.abs(bias) + _most(layer)).max() < _SUMS):
        return None
    try:
        for each in scale:
            pack_scale(float(each))
    except ValueError:
        return None
    low, high = (int(np.clip(np.rint((bound + offset) * slope) + next_.zero_point, next_.low, next_.high))
                 for bound in (own.low, own.high))
    return replace(layer, output=line.output if layer.output == line.input else layer.output,
                   bias=bias.astype(np.int32), table=line.table, exact=False, requantisation=replace(
                       own, scale=scale, zero_point=zero, low=low, high=high))


def _most(layer: Layer) -> np.ndarray:
    """Return the greatest magnitude of a layer's sums without biases, by channel."""
    if layer.words.addend is not None:
        return np.full(len(layer.bias), 65_536.0 * (1 + np.abs(layer.words.addend.weights).sum()))
    if layer.weights is None:
        return np.full(len(layer.bias), 65_536.0 * layer.kernel[0] * layer.kernel[1])
    return 65_536.0 * np.abs(layer.weights.astype(np.float64)).sum(axis=(1, 2, 3))
