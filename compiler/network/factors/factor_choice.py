"""Which of two vectors that are multiplied becomes the weights: the one that is there first, so that nothing waits.

Of a factor whose partner has a zero point, parameters are written too; that decides before all else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.compiler.network.layer_uses import NO_WORDS
from tilewright.compiler.network.layers import (
    NEGATED_ZERO,
    AnyLayer,
    ChannelFactor,
    Layer,
    TensorInfo,
)
from tilewright.compiler.network.layout import layout_of
from tilewright.compiler.network.memory_map import root_of

__all__ = ["TensorMakers", "with_early_factors"]


@dataclass(frozen=True, slots=True)
class TensorMakers:
    """The layers that write to each tensor that lies in no other, by number, and the bytes of it that they write."""

    layers: Sequence[AnyLayer]
    tensors: Mapping[str, TensorInfo]
    found: dict[str, list[tuple[int, range]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for index, layer in enumerate(self.layers):
            for name in layer.writes:
                info = self.tensors[name]
                self.found.setdefault(root_of(info), []).append((index, _bytes(info)))

    def last(self, info: TensorInfo) -> int:
        """Return the number of the last layer that writes to a tensor of int8; -1 if none does."""
        read = _bytes(info)
        return max((index for index, written in self.found.get(root_of(info), ())
                    if max(read.start, written.start) < min(read.stop, written.stop)), default=-1)


def _bytes(info: TensorInfo) -> range:
    """Return the bytes from the first to the last that a tensor takes of what it lies in."""
    start = 0 if info.place is None else info.place.offset
    return range(start, start + layout_of(info).span)


def with_early_factors(layers: Sequence[AnyLayer], tensors: Mapping[str, TensorInfo]) -> tuple[AnyLayer, ...]:
    """Return ``layers`` with the operands of products of two vectors in the better order; the bits are the same."""
    makers = TensorMakers(layers, tensors)
    return tuple(_chosen(layer, tensors, makers) for layer in layers)


def _chosen(layer: AnyLayer, tensors: Mapping[str, TensorInfo], makers: TensorMakers) -> AnyLayer:
    if not isinstance(layer, Layer) or not isinstance(layer.factor, ChannelFactor) or layer.factor.images \
            or layer.in_shape[1:] != (1, 1) or layer.images > 1 or layer.words != NO_WORDS:
        return layer
    x, vector = tensors[layer.input], tensors[layer.factor.tensor]
    if x.shape != vector.shape or NEGATED_ZERO in (x.zero_point, vector.zero_point):
        return layer

    def price(info: TensorInfo) -> tuple[bool, int]:
        """Return what a factor costs: parameters for the other's zero point, and the layer to wait for."""
        other = vector if info is x else x
        return other.zero_point != 0, makers.last(info)
    return layer if price(vector) <= price(x) else _swapped(layer, x, vector)


def _swapped(layer: Layer, x: TensorInfo, vector: TensorInfo) -> Layer:
    """Return a product whose weights are ``x``."""
    factor = ChannelFactor(tensor=x.name, zero_point=x.zero_point)
    return replace(layer, input=vector.name, factor=factor, kernel=(1, factor.halves),
                   dilations=(1, 1 if factor.halves == 1 else 0), pad_value=vector.zero_point)
