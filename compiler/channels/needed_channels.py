"""Channels that must be in memory: those that something reads for more than a constant, and what computes these."""

from collections.abc import Collection, Mapping

import numpy as np

from tilewright.compiler.channels.channel_places import ChannelPlaces, shapes_seen
from tilewright.compiler.channels.constant_channels import VARIES, ConstantChannels, constant_inputs, constant_sums
from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Layer, MatrixFactor, Network
from tilewright.compiler.network.memory_map import root_of

__all__ = ["needed_channels"]


def needed_channels(network: Network, places: ChannelPlaces, constants: ConstantChannels, *, multiple: int = 1,
                    all_that_vary: bool = False, whole: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Return of each tensor that lies in no other which of its channels are needed, as bools.

    Every tensor keeps one channel at least.

    Parameters
    ----------
    multiple
        Keep as many more that a tensor has a multiple of so many, if it had.
    all_that_vary
        Keep channels that are not constant even where nothing reads them.
    whole
        Tensors that keep all channels.
    """
    need = {name: np.full(count, name in places.as_they_are or name in whole) for name, count in places.counts.items()}
    for info in network.outputs:
        need[root_of(network.tensors[info.name])][:] = True
    if all_that_vary:
        for name in need:
            need[name] |= constants.of(name) == VARIES
    uses = [_Uses(layer, network, constants) for layer in network.layers]
    while True:
        while sum(each.spread(need, places) for each in reversed(uses)):
            pass
        if not sum(_filled(need, places, name, multiple) for name in network.tensors):
            return need


def _filled(need: dict[str, np.ndarray], places: ChannelPlaces, tensor: str, multiple: int) -> bool:
    """Need the first channels of a tensor that are not needed yet, up to a multiple; tell whether there are any."""
    holder, channels = places.ranges[tensor]
    if channels is None:
        return False
    part = need[holder][channels]
    wanted = min(-(-max(1, int(part.sum())) // multiple) * multiple, len(part))
    more = np.flatnonzero(~part)[:wanted - int(part.sum())]
    part[more] = True
    return more.size > 0


class _Uses:
    """The input channels that each output channel of a layer needs."""

    def __init__(self, layer: AnyLayer, network: Network, constants: ConstantChannels) -> None:
        self.layer = layer
        self.names = dict.fromkeys((*layer.reads, *layer.writes))
        self.plain = any(shape is None for shape in shapes_seen(layer, network.tensors).values())
        self.used: np.ndarray | None = None
        if isinstance(layer, Layer) and layer.weights is not None and not isinstance(layer.factor, MatrixFactor):
            used = np.asarray(layer.weights.any(axis=(2, 3)))
            if layer.groups == 1:
                x = constants.of(layer.input)
                if len(x) == used.shape[1] and _may_fold(layer, x):
                    used &= ~constant_inputs(layer, x)
                self.used = used

    def spread(self, need: Mapping[str, np.ndarray], places: ChannelPlaces) -> bool:
        """Add to ``need`` what the layer needs for it, and tell whether anything was new."""
        views = {name: need[holder][channels or slice(None)] for name in self.names if name in places.ranges
                 for holder, channels in [places.ranges[name]]}
        before = sum(int(each.sum()) for each in views.values())
        if isinstance(self.layer, CoreLayer):
            for name in (*self.layer.reads, *self.layer.writes):
                if name in views:
                    views[name][:] = True
        else:
            self._layer(self.layer, views)
        return sum(int(each.sum()) for each in views.values()) > before

    def _layer(self, layer: Layer, views: Mapping[str, np.ndarray]) -> None:
        """Do so for a layer of the datapath."""
        written = [views[name] for name in layer.writes]
        if self.plain:
            for each in written:
                each[:] = True
        inputs = views[layer.input]
        if layer.unit is not None or isinstance(layer.factor, MatrixFactor) or len(inputs) != layer.in_shape[0]:
            for name in layer.reads:
                views[name][:] = True
            for each in written:
                each[:] = True
            return
        # Sums, and what is added to them channel by channel, are all there or all not.
        alike = list(written) if not layer.whole else []
        if layer.residual is not None:
            alike.append(views[layer.residual.tensor])
        if layer.factor is not None:
            alike.append(views[layer.factor.tensor])
        sums = np.zeros(layer.conv_shape[0], bool)
        for each in alike:
            sums |= each if len(each) == len(sums) else True
        if layer.whole:
            sums[:] = True
        if self.used is not None:
            inputs |= np.asarray(self.used[sums].any(axis=0))
        else:
            whole = sums.reshape(layer.groups, -1).any(axis=1) | inputs.reshape(layer.groups, -1).any(axis=1)
            inputs |= np.repeat(whole, len(inputs) // layer.groups)
            sums |= np.repeat(whole, len(sums) // layer.groups)
        for each in alike:
            each |= sums if len(each) == len(sums) else True


def _may_fold(layer: Layer, x: np.ndarray) -> bool:
    """Tell whether all of the layer's biases stay within int32 once constants are added to them."""
    sums, _ = constant_sums(layer, x)
    return bool((np.abs(sums) <= np.iinfo(np.int32).max).all())
