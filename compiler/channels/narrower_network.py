"""A network without some channels of its tensors: its layers have no weights for them, and biases hold constants."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tilewright.compiler.channels.channel_places import ChannelPlaces
from tilewright.compiler.channels.constant_channels import VARIES, ConstantChannels, constant_inputs
from tilewright.compiler.network.layers import AbsentChannels, AnyLayer, Layer, Network, Place, TensorInfo
from tilewright.compiler.network.memory_map import root_of

__all__ = ["narrower_network"]


def narrower_network(network: Network, places: ChannelPlaces, constants: ConstantChannels,
                     kept: Mapping[str, np.ndarray]) -> Network:
    """Return ``network`` with the channels ``kept`` of each tensor that lies in no other, as `needed_channels` has."""
    changed = {name for name, each in kept.items() if not each.all()}
    tensors = {name: info if root_of(info) not in changed else
               _narrower(info, network.tensors[root_of(info)], places, constants, kept)
               for name, info in network.tensors.items()}

    def channels(name: str, count: int) -> np.ndarray:
        holder, inside = places.ranges[name]
        own = kept[holder][inside or slice(None)]
        # A tensor of which a layer sees another shape keeps all channels.
        return np.flatnonzero(own) if len(own) == count else np.arange(count)

    layers = tuple(_layer(layer, tensors, constants, channels)
                   if any(root_of(network.tensors[name]) in changed
                          for name in (*layer.reads, *layer.writes) if name in network.tensors) else layer
                   for layer in network.layers)
    return replace(network, layers=layers, tensors=tensors)


def _narrower(info: TensorInfo, holder: TensorInfo, places: ChannelPlaces, constants: ConstantChannels,
              kept: Mapping[str, np.ndarray]) -> TensorInfo:
    """Return a tensor with the channels ``kept`` of its ``holder``; it may keep all, and lie elsewhere in it."""
    _, inside = places.ranges[info.name]
    there = kept[holder.name]
    own = there[inside or slice(None)]
    gone = constants.of(info.name)[~own]
    values = None if (gone == VARIES).any() else tuple(map(int, gone))
    absent = AbsentChannels(channels=len(own), kept=tuple(map(int, np.flatnonzero(own))), values=values,
                            place=info.place) if gone.size or info.place is not None else None
    return replace(info, shape=(int(own.sum()), *info.shape[1:]), absent=absent,
                   place=info.place and _moved(info.place, holder, there))


def _moved(place: Place, holder: TensorInfo, kept: np.ndarray) -> Place:
    """Return the place of the same pixels, and of those of its channels that are ``kept``."""
    before, now = len(kept), int(kept.sum())
    pixel, channel = divmod(place.offset, before)
    return replace(place, offset=pixel * now + int(kept[:channel].sum()), row_step=place.row_step // before * now,
                   pixel_step=place.pixel_step // before * now)


def _layer(layer: AnyLayer, tensors: Mapping[str, TensorInfo], constants: ConstantChannels,
           channels: Callable[[str, int], np.ndarray]) -> AnyLayer:
    """Return a layer between tensors of fewer channels."""
    if not isinstance(layer, Layer):
        return layer
    inputs = channels(layer.input, layer.in_shape[0])
    outputs = np.arange(layer.conv_shape[0]) if layer.whole else channels(layer.output, layer.conv_shape[0])
    if len(outputs) == layer.conv_shape[0] and len(inputs) == layer.in_shape[0]:
        return layer
    weights, bias, groups = layer.weights, layer.bias, layer.groups
    if weights is not None and groups == 1:
        bias = bias + _constant_part(layer, constants.of(layer.input), inputs)
        weights = np.ascontiguousarray(weights[outputs][:, inputs])
    else:
        weights = None if weights is None else weights[outputs]
        groups = groups * len(inputs) // layer.in_shape[0]
    count = layer.conv_shape[0]
    stored = layer.out_shape if layer.whole else (len(outputs), *layer.out_shape[1:])
    return replace(
        layer, in_shape=(len(inputs), *layer.in_shape[1:]), conv_shape=(len(outputs), *layer.conv_shape[1:]),
        out_shape=stored, weights=weights, groups=groups,
        bias=np.broadcast_to(bias, count)[outputs].astype(np.int32),
        requantisation=layer.requantisation.of_channels(outputs))


def _constant_part(layer: Layer, x: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return what the input channels beside ``kept``, of the values ``x``, add to each sum: int64."""
    assert layer.weights is not None
    gone = np.isin(np.arange(len(x)), kept, invert=True) & constant_inputs(layer, x)
    return layer.weights[:, gone].sum(axis=(2, 3), dtype=np.int64) @ x[gone].astype(np.int64)
