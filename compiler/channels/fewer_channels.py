"""The network of fewest predicted cycles among those that leave out channels that need no computation.

Lanes take channels in groups, and memory pixels by words: fewer channels are not always faster. So channels that could
go may stay, up to a multiple for every tensor, or all of those that a layer reads and writes which would be slower.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.channels.channel_places import ChannelPlaces
from tilewright.compiler.channels.constant_channels import VARIES, ConstantChannels
from tilewright.compiler.channels.narrower_network import narrower_network
from tilewright.compiler.channels.needed_channels import needed_channels
from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.layers import Layer, Network
from tilewright.compiler.network.memory_map import root_of
from tilewright.isa.machine import Machine

__all__ = ["ChannelSavings", "fewer_channels"]

Price = Callable[[Network], Sequence[int]]
"""Predicted cycles of the layers of a network."""


@dataclass(frozen=True, slots=True)
class ChannelSavings:
    """Channels of the datapath's results that are not computed, and what that saves.

    ``constant`` hold one value whatever the inputs are, ``unread`` are read by nothing, of ``channels`` in all. Each
    pair is with all channels and without those: multiply-accumulates, weights, and cycles as the planner predicts them.
    """

    constant: int
    unread: int
    channels: int
    macs: tuple[int, int]
    weights: tuple[int, int]
    cycles: tuple[int, int]

    def __str__(self) -> str:
        kinds = [f"{count:,} that {what}" for count, what in (
            (self.constant, "hold constants"), (self.unread, "nothing reads")) if count]
        macs, weights, cycles = (f"{after:,} {what} for {before:,}" for (before, after), what in (
            (self.macs, "MACs"), (self.weights, "weights"), (self.cycles, "planned cycles")))
        return (f"channels not computed: {' and '.join(kinds)}, of {self.channels:,}; so {macs}, {weights}, {cycles} "
                "(--all-channels computes them)")


def fewer_channels(network: Network, machine: Machine, price: Price, *,
                   keep_tensors: bool) -> tuple[Network, ChannelSavings | None]:
    """Return ``network`` without channels that need no computation, where that is predicted faster, and what it saves.

    Parameters
    ----------
    network
        Of one image.
    price
        Raises a `CompileError` for a network that does not fit the machine.
    keep_tensors
        All tensors are looked at: only constants are left out, which can be filled in.
    """
    places = ChannelPlaces.of(network)
    constants = ConstantChannels(network, places)

    def without(multiple: int, whole: Collection[str] = ()) -> Network:
        kept = needed_channels(network, places, constants, multiple=multiple, all_that_vary=keep_tensors, whole=whole)
        return narrower_network(network, places, constants, kept)

    if not any(_absent(without(1), constants)):
        return network, None
    before = _priced(network, price)
    narrow = [(multiple, without(multiple)) for multiple in sorted({1, 4, machine.lanes})]
    priced = [(cycles, multiple, each) for multiple, each in narrow if (cycles := _priced(each, price)) is not None]
    if not priced:
        return network, None
    best = min(priced, key=lambda each: sum(each[0]))
    if before is not None:
        slower = _slower(network, before, best[0])
        if slower and (repaired := _priced(changed := without(best[1], slower), price)) is not None:
            best = min(best, (repaired, best[1], changed), key=lambda each: sum(each[0]))
        if sum(best[0]) >= sum(before):
            return network, None
    cycles, _, found = best
    return found, _savings(network, found, constants, (sum(before or cycles), sum(cycles)))


def _priced(network: Network, price: Price) -> Sequence[int] | None:
    try:
        return price(network)
    except CompileError:
        return None


def _slower(network: Network, before: Sequence[int], after: Sequence[int]) -> set[str]:
    """Return the tensors beside layers that take more cycles than before."""
    if not len(before) == len(after) == len(network.layers):
        return set()
    return {root_of(network.tensors[name])
            for layer, old, new in zip(network.layers, before, after, strict=True) if new > old
            for name in (*layer.reads, *layer.writes) if name in network.tensors}


def _absent(network: Network, constants: ConstantChannels) -> tuple[int, int]:
    """Return how many channels of the datapath's results are constant, and how many vary and are not read."""
    constant = unread = 0
    for name in {root_of(network.tensors[name]) for layer in network.layers for name in layer.writes}:
        absent = network.tensors[name].absent
        if absent is not None:
            gone = np.isin(np.arange(absent.channels), absent.kept, invert=True)
            varies = int((constants.of(name)[gone] == VARIES).sum())
            unread += varies
            constant += int(gone.sum()) - varies
    return constant, unread


def _savings(before: Network, after: Network, constants: ConstantChannels, cycles: tuple[int, int]) -> ChannelSavings:
    written = {root_of(before.tensors[name]) for layer in before.layers if isinstance(layer, Layer)
               for name in layer.writes}
    constant, unread = _absent(after, constants)
    return ChannelSavings(constant=constant, unread=unread,
                          channels=sum(before.tensors[name].shape[0] for name in written),
                          macs=(before.macs, after.macs), weights=(_weights(before), _weights(after)), cycles=cycles)


def _weights(network: Network) -> int:
    return sum(layer.weights.size for layer in network.layers
               if isinstance(layer, Layer) and layer.weights is not None)
