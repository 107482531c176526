"""A large network's baseline from small runs: a few output rows and channels of every distinct layer shape.

The programs are loops over output rows and, within a row, over blocks of output channels, so a layer takes::

    cycles(rows, channels) = a + b · rows + c · rows · channels

Three runs give the three numbers: few rows and channels, then more rows, then more channels. A layer that is short in
one of the two is run over its whole length there, which takes one run less. Where windows of a pooling reach beyond the
image, all row counts include the first and the last. Layers of one shape, and of the same fused operations, are run
once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.compiler.emit.baseline_constants import block_shape, common_shift
from tilewright.compiler.network.layers import Layer, TensorInfo
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.network.parts.part_of_layer import part_of_layer

__all__ = ["Sampling", "extrapolate", "parts", "sampling", "shape_key"]

_PART = 500_000
"""Products or sums in the smallest part, at least, so that the few slow requantisations of its values average out."""

_WHOLE = 5 * _PART
"""Layers of up to so many are run whole: the parts would be no less."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Row and channel counts at which a layer is run: one of each (all of them), or two."""

    rows: tuple[int, ...]
    channels: tuple[int, ...]

    @property
    def whole(self) -> bool:
        """Whether the layer is run whole."""
        return len(self.rows) == len(self.channels) == 1


def sampling(layer: Layer, *, xpulp: bool) -> Sampling:
    """Return where to run ``layer``."""
    all_channels, all_rows, _ = layer.out_shape
    if _work(layer) <= _WHOLE:
        return Sampling((all_rows,), (all_channels,))
    rows = 2 if layer.pool is not None and any(layer.pool.pads) else 1
    channels = block_shape(layer, xpulp=xpulp)[1]
    if layer.kind != "conv" or layer.groups > 1 or all_channels % channels:
        channels = all_channels
    while _work(part_of_layer(layer, rows, channels)) < _PART:
        if 4 * channels <= all_channels:
            channels *= 2
        elif 4 * rows <= all_rows:
            rows *= 2
        else:
            break
    return Sampling((rows, 2 * rows) if 3 * rows <= all_rows else (all_rows,),
                    (channels, 2 * channels) if 3 * channels <= all_channels else (all_channels,))


def parts(layer: Layer, where: Sampling) -> list[Layer]:
    """Return the parts to run: the smallest, then with more rows, then with more channels, if there are such."""
    (rows, *more_rows), (channels, *more_channels) = where.rows, where.channels
    counts = [(rows, channels), *((more, channels) for more in more_rows), *((rows, more) for more in more_channels)]
    return [part_of_layer(layer, *count) for count in counts]


def extrapolate(layer: Layer, where: Sampling, measured: Sequence[int]) -> int:
    """Return the figure of the whole layer from those of its ``parts``, by the rule above."""
    channels, height, _ = layer.out_shape
    first, total = measured[0], float(measured[0])
    by_row = (measured[1] - first) / (where.rows[1] - where.rows[0]) if len(where.rows) == 2 else 0.0
    total += by_row * (height - where.rows[0])
    if len(where.channels) == 2:
        per_channel = (measured[-1] - first) / (where.channels[1] - where.channels[0]) / where.rows[0]
        total += per_channel * height * (channels - where.channels[0])
    return round(total)


def shape_key(layer: Layer, tensors: Mapping[str, TensorInfo]) -> tuple[object, ...]:
    """Return the properties that decide a layer's cycles, apart from data dependence; ``tensors`` are the network's."""
    return (layer.kind, layer.in_shape, layer.conv_shape, layer.out_shape, layer.kernel, layer.strides, layer.dilations,
            layer.pads, layer.groups, layer.pool, layer.residual is None, layer.table is None,
            common_shift(layer.requantisation) is None, layer.requantisation.integers is None,
            LayerLayouts.of(layer, tensors))


def _work(layer: Layer) -> int:
    """Return how many products or sums a layer takes."""
    return prod(layer.conv_shape) * prod(layer.kernel) * (layer.in_shape[0] // layer.groups)
