"""Channels with one value in every pixel, whatever the network's inputs hold, and that value.

A convolution whose weights for an output channel meet constants alone gives a constant: its bias and weights · values,
requantised, added, mapped by the table and pooled like every other sum. Where it pads, that holds only if the constant
is the padding too.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.channels.channel_places import ChannelPlaces
from tilewright.compiler.network.layers import CoreLayer, Layer, MatrixFactor, Network, Requantisation
from tilewright.compiler.network.reference import run_layer

__all__ = ["VARIES", "ConstantChannels", "constant_inputs", "constant_sums"]

VARIES = 1 << 10
"""Stands for a channel that is not constant, among int16 values."""

_UNKNOWN = 1 << 11
"""Stands for a channel that nothing has written so far."""

_INT32 = np.iinfo(np.int32)


class ConstantChannels:
    """The values of all channels of a network: int16, a level of int8 or ``VARIES``."""

    def __init__(self, network: Network, places: ChannelPlaces) -> None:
        self._places = places
        self._counts = {name: info.shape[0] for name, info in network.tensors.items()}
        self._values = {name: np.full(count, _UNKNOWN, np.int16) for name, count in places.counts.items()}
        for name in (*(info.name for info in network.inputs), *(network.constants.keys() & network.tensors.keys())):
            self._values[places.ranges[name][0]][:] = VARIES
        # A layer may read some pixels of a tensor before another writes others: once more, until nothing changes.
        while sum(self._written(layer) for layer in network.layers):
            pass

    def of(self, tensor: str) -> np.ndarray:
        """Return the values of a tensor's channels; those that nothing writes vary."""
        holder, channels = self._places.ranges[tensor]
        if channels is None:
            return np.full(self._counts[tensor], VARIES, np.int16)
        found = self._values[holder][channels]
        return np.where(found == _UNKNOWN, np.int16(VARIES), found)

    def _written(self, layer: Layer | CoreLayer) -> bool:
        """Take over what a layer writes, and tell whether that is news."""
        result, news = None, False
        for name in layer.writes:
            holder, channels = self._places.ranges[name]
            before = self._values[holder][channels or slice(None)]
            if (before == VARIES).all():
                continue
            if result is None:
                result = self._result(layer, self._counts[layer.writes[0]])
            written = np.int16(VARIES) if channels is None or len(before) != len(result) else result
            after = np.where((before == _UNKNOWN) | (before == written), written, np.int16(VARIES))
            news |= not np.array_equal(before, after)
            self._values[holder][channels or slice(None)] = after
        return news

    def _result(self, layer: Layer | CoreLayer, count: int) -> np.ndarray:
        """Return the values of what a layer writes, of ``count`` channels."""
        varies = np.full(count, VARIES, np.int16)
        if not isinstance(layer, Layer) or layer.whole or layer.stage is not None or layer.unit is not None \
                or isinstance(layer.factor, MatrixFactor) or layer.out_shape[0] != count:
            return varies
        x = self._seen(layer.input, layer.in_shape[0])
        sums, constant = constant_sums(layer, x)
        other = None
        if layer.residual is not None:
            other = self._seen(layer.residual.tensor, count)
            constant &= other < VARIES
        if not constant.any():
            return varies
        pixel = np.zeros((1, 1, 1), np.int8)
        added = None if other is None else np.where(other < VARIES, other, 0).astype(np.int8).reshape(-1, 1, 1)
        return np.where(constant, run_layer(_of_one_pixel(layer, sums), pixel, added).reshape(-1), varies)

    def _seen(self, tensor: str, count: int) -> np.ndarray:
        found = self.of(tensor)
        return found if len(found) == count else np.full(count, VARIES, np.int16)


def _of_one_pixel(layer: Layer, sums: np.ndarray) -> Layer:
    """Return a layer that makes of one pixel what ``layer`` makes of pixels with these ``sums``."""
    shape = len(sums), 1, 1
    return replace(layer, kind="conv", in_shape=(1, 1, 1), conv_shape=shape, out_shape=shape, groups=1, pool=None,
                   weights=np.zeros((len(sums), 1, 1, 1), np.int8), bias=sums.astype(np.int32), kernel=(1, 1),
                   strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), factor=None,
                   requantisation=_for_all(layer.requantisation, len(sums)))


def _for_all(parameters: Requantisation, count: int) -> Requantisation:
    return replace(parameters, scale=np.ascontiguousarray(np.broadcast_to(parameters.scale, count)))


def constant_inputs(layer: Layer, x: np.ndarray) -> np.ndarray:
    """Tell of each of the layer's input channels, of the values ``x``, whether its part of the sums is constant."""
    return (x < VARIES) & ((x == layer.pad_value) | (not any(layer.pads)))


def constant_sums(layer: Layer, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what constants and bias give in each of the layer's sums, int64, and which sums they are all of.

    A sum beyond int32, which the hardware would wrap, counts as none that is constant.
    """
    known = constant_inputs(layer, x)
    values = np.where(known, x, 0).astype(np.int64)
    if layer.factor is not None:
        # x less its zero point, times a factor: zero, whatever the factor is.
        return np.zeros(layer.conv_shape[0], np.int64), known & (x == layer.pad_value)
    if layer.weights is None:
        taps = 1 if layer.kind == "pass" else int(np.prod(layer.kernel))
        sums, constant = values * taps, known
    else:
        per_group = len(x) // layer.groups
        outputs = layer.weights.shape[0] // layer.groups
        groups = np.repeat(np.arange(layer.groups), outputs)
        inputs = groups[:, None] * per_group + np.arange(per_group)
        taps = layer.weights.sum(axis=(2, 3), dtype=np.int64)
        used = layer.weights.any(axis=(2, 3))
        sums = (taps * values[inputs]).sum(axis=1)
        constant = ~(used & ~known[inputs]).any(axis=1)
    sums = sums + layer.bias
    return sums, constant & (sums >= _INT32.min) & (sums <= _INT32.max)

