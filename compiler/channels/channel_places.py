"""Where the channels of each tensor lie among those of the tensor in memory that holds it."""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.compiler.network.layers import AnyLayer, Layer, MatrixFactor, Network, Shape, TensorInfo
from tilewright.compiler.network.memory_map import root_of

__all__ = ["ChannelPlaces", "shapes_seen"]


@dataclass(frozen=True, slots=True)
class ChannelPlaces:
    """The channels of a network's tensors, as ranges of those that have a place of their own in memory.

    Attributes
    ----------
    counts : mapping of str to int
        Channels of each tensor that lies in no other, by name.
    ranges : mapping of str to (str, slice or None)
        The holder of each tensor, and its channels there, None if they are mixed; a tensor that lies in no other holds
        itself.
    as_they_are : frozenset of str
        Holders that keep all channels: something sees them as plain bytes, in another shape, or outside the datapath.
    """

    counts: Mapping[str, int]
    ranges: Mapping[str, tuple[str, slice | None]]
    as_they_are: frozenset[str]

    @classmethod
    def of(cls, network: Network) -> "ChannelPlaces":
        """Return those of ``network``, of one image."""
        tensors = network.tensors
        counts = {name: info.shape[0] for name, info in tensors.items() if info.place is None}
        ranges: dict[str, tuple[str, slice | None]] = {}
        kept = {name for name, info in tensors.items() if info.place is None and info.dtype != "int8"}
        kept |= {root_of(tensors[info.name]) for info in network.inputs} | network.constants.keys() & tensors.keys()
        for name, info in tensors.items():
            holder = tensors[root_of(info)]
            found = _channels_in(info, holder)
            # Dimensions of its own are those of all its channels.
            if found is None or info.dims is not None:
                kept.add(holder.name)
            ranges[name] = holder.name, found
        for layer in network.layers:
            for name, shape in shapes_seen(layer, tensors).items():
                if name in tensors and tensors[name].shape != shape:
                    kept.add(root_of(tensors[name]))
        return cls(counts, ranges, frozenset(kept))


def _channels_in(info: TensorInfo, holder: TensorInfo) -> slice | None:
    """Return which channels of ``holder`` a tensor is, on some of its pixels; None if it is none such."""
    place, (channels, height, width) = info.place, info.shape
    if place is None:
        return slice(0, channels)
    all_channels, _, all_columns = holder.shape
    first = place.offset % all_channels
    in_rows = height == 1 or place.row_step % (all_columns * all_channels) == 0
    in_columns = width == 1 or place.pixel_step % all_channels == 0
    inside = first + channels <= all_channels and not place.image_step
    return slice(first, first + channels) if in_rows and in_columns and inside else None


def shapes_seen(layer: AnyLayer, tensors: Mapping[str, TensorInfo]) -> dict[str, Shape | None]:
    """Return the shape in which a layer sees each of its tensors; None for one that it takes as it is."""
    if not isinstance(layer, Layer) or layer.unit is not None or isinstance(layer.factor, MatrixFactor):
        return dict.fromkeys((*layer.reads, *layer.writes))
    seen: dict[str, Shape | None] = {layer.input: layer.in_shape}
    if layer.residual is not None:
        seen[layer.residual.tensor] = layer.conv_shape
    if layer.factor is not None:
        seen[layer.factor.tensor] = layer.conv_shape[0], 1, 1
    alone = layer.whole or layer.stage is not None
    return seen | dict.fromkeys(layer.writes, None if alone else layer.out_shape)
