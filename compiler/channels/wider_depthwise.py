"""Depthwise layers with more channels than they have, so that the patches of four channels come at once.

That asks for blocks of channels in multiples of a cluster's lanes. Where only convolutions lie beside a depthwise
layer, the one before it gets zero weights for the channels that are missing, and so do those behind it: lanes and runs
that were there already compute them, and no value of another channel changes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.layers import AnyLayer, Layer, Network
from tilewright.compiler.network.memory_map import root_of
from tilewright.isa.machine import Machine

__all__ = ["wider_depthwise"]

Price = Callable[[Network], Sequence[int]]
"""Predicted cycles of the layers of a network."""


@dataclass(frozen=True, slots=True)
class _Wider:
    """A depthwise layer that can have more channels, with the layers before and behind it, by their numbers."""

    before: int
    own: int
    behind: tuple[int, ...]

    @property
    def layers(self) -> tuple[int, ...]:
        """All of them."""
        return (self.before, self.own, *self.behind)


def wider_depthwise(network: Network, machine: Machine, price: Price) -> Network:
    """Return ``network`` with those depthwise layers widened that are predicted faster with the layers beside them.

    Parameters
    ----------
    network
        Of one image; nobody looks at what lies between its layers.
    price
        Raises a `CompileError` for a network that does not fit the machine.
    """
    if not machine.takes_four_patches:
        return network
    found = [wider for index in range(len(network.layers)) if (wider := _wider(network, index, machine.block_unit))]
    if not found:
        return network
    before, after = (_priced(each, price) for each in (network, _widened(network, found, machine.block_unit)))
    if before is None or after is None or not len(before) == len(after) == len(network.layers):
        return network
    gains = [each for each in found if sum(after[index] - before[index] for index in each.layers) < 0]
    return _widened(network, gains, machine.block_unit)


def _priced(network: Network, price: Price) -> Sequence[int] | None:
    try:
        return price(network)
    except CompileError:
        return None


def _wider(network: Network, index: int, unit: int) -> _Wider | None:
    """Return layer ``index`` as one to widen, if it is a depthwise one whose channels are no multiple of ``unit``."""
    layer = network.layers[index]
    if not isinstance(layer, Layer) or not _depthwise(layer) or layer.in_shape[0] % unit == 0:
        return None
    if not all(_between(network, name) for name in (layer.input, layer.output)):
        return None
    before = [place for place, each in enumerate(network.layers) if layer.input in each.writes]
    behind = [place for place, each in enumerate(network.layers) if layer.output in each.reads]
    readers = [each for each in network.layers if layer.input in each.reads]
    if len(before) != 1 or len(readers) != 1 or not behind:
        return None
    dense = [each for place in (*before, *behind)
             if isinstance(each := network.layers[place], Layer) and _plain(each) and each.groups == 1]
    if len(dense) < 1 + len(behind):
        return None
    first, *others = dense
    if first.residual is not None or first.rows is not None:
        return None
    if not all(each.input == layer.output and each.in_shape == layer.out_shape
               and (each.residual is None or each.residual.tensor != layer.output) for each in others):
        return None
    return _Wider(before[0], index, tuple(behind))


def _depthwise(layer: Layer) -> bool:
    """Tell whether patches of four channels may come at once, but for the number of channels."""
    return (_plain(layer) and 1 < max(layer.span) <= 3 and layer.residual is None and layer.rows is None
            and layer.groups == layer.in_shape[0] == layer.conv_shape[0] > 1)


def _plain(layer: Layer) -> bool:
    """Tell whether a layer is a convolution of bytes with constant weights, and all its results are one tensor."""
    return (layer.kind == "conv" and layer.weights is not None and layer.weights.dtype == np.int8
            and layer.factor is None and layer.stage is None and layer.unit is None and not layer.also
            and not layer.whole and layer.words.inputs == layer.words.outputs == 1 and layer.words.addend is None)


def _between(network: Network, name: str) -> bool:
    """Tell whether a tensor is only handed from layer to layer, and has a place of its own."""
    info = network.tensors[name]
    return (info.place is None and info.absent is None
            and name not in {each.name for each in (*network.inputs, *network.outputs)}
            and all(root_of(each) != name for each in network.tensors.values() if each.name != name))


def _widened(network: Network, found: Sequence[_Wider], unit: int) -> Network:
    """Return ``network`` with as many more channels as the layers ``found`` lack to a multiple of ``unit``."""
    layers, tensors = list(network.layers), dict(network.tensors)
    for wider in found:
        own = layers[wider.own]
        assert isinstance(own, Layer)
        more = -own.in_shape[0] % unit
        for name in (own.input, own.output):
            channels, height, width = tensors[name].shape
            tensors[name] = replace(tensors[name], shape=(channels + more, height, width))
        layers[wider.before] = _more_outputs(layers[wider.before], more)
        layers[wider.own] = replace(_more_outputs(own, more), in_shape=(own.in_shape[0] + more, *own.in_shape[1:]),
                                    groups=own.groups + more)
        for index in wider.behind:
            layers[index] = _more_inputs(layers[index], more)
    return replace(network, layers=tuple(layers), tensors=tensors)


def _more_outputs(layer: AnyLayer, more: int) -> Layer:
    """Return a layer with ``more`` outputs, of weights and a bias that are zero."""
    assert isinstance(layer, Layer)
    assert layer.weights is not None
    count = layer.conv_shape[0]
    chosen = np.minimum(np.arange(count + more), count - 1)
    weights = np.concatenate([layer.weights, np.zeros((more, *layer.weights.shape[1:]), np.int8)])
    bias = np.concatenate([np.broadcast_to(layer.bias, count), np.zeros(more, np.int32)]).astype(np.int32)
    conv_shape, out_shape = ((count + more, *shape[1:]) for shape in (layer.conv_shape, layer.out_shape))
    return replace(layer, weights=weights, bias=bias, requantisation=layer.requantisation.of_channels(chosen),
                   conv_shape=conv_shape, out_shape=out_shape)


def _more_inputs(layer: AnyLayer, more: int) -> Layer:
    """Return a layer of one group with zero weights for ``more`` inputs."""
    assert isinstance(layer, Layer)
    assert layer.weights is not None
    outputs, inputs, *kernel = layer.weights.shape
    return replace(layer, in_shape=(inputs + more, *layer.in_shape[1:]),
                   weights=np.concatenate([layer.weights, np.zeros((outputs, more, *kernel), np.int8)], axis=1))
