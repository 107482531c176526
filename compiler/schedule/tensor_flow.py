"""Where the tensors of a network come from and go to, as far as layers can hand them over on chip.

A tensor may have several readers. One that is a concatenation has several writers: each computes some of its channels,
of all pixels. Parts that lie in a tensor in any other way, as the phases of an upsampling, are in memory alone.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from tilewright.compiler.network.layers import Layer, Network, TensorInfo
from tilewright.compiler.network.layout import Layout, layout_of
from tilewright.compiler.network.memory_map import root_of

__all__ = ["Flow"]


@dataclass(frozen=True, slots=True)
class _Use:
    """A tensor that a layer reads or writes; ``by_input``: as the input of a layer of the datapath."""

    layer: int
    tensor: str
    by_input: bool = False


@dataclass(slots=True)
class Flow:
    """Readers and writers of a network's tensors, by the tensor in which each lies."""

    network: Network
    readers: dict[str, list[_Use]] = field(default_factory=dict)
    writers: dict[str, list[_Use]] = field(default_factory=dict)
    outputs: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tensors = self.network.tensors
        for index, layer in enumerate(self.network.layers):
            for name in layer.writes:
                self.writers.setdefault(root_of(tensors[name]), []).append(_Use(index, name))
            others = list(layer.reads)
            if isinstance(layer, Layer):
                others.remove(layer.input)
                self.readers.setdefault(root_of(tensors[layer.input]), []).append(_Use(index, layer.input, True))
            for name in others:
                if name in tensors:
                    self.readers.setdefault(root_of(tensors[name]), []).append(_Use(index, name))
        for info in self.network.outputs:
            self.outputs.setdefault(root_of(info), []).append(info.name)

    def sources(self, reader: int) -> dict[int, int] | None:
        """Return the layers that compute the input of layer ``reader``, each with the first channel that it computes.

        None if it comes from elsewhere, in part or as a whole, or if its layers do not compute whole channels of it.
        """
        layer, tensors = self.network.layers[reader], self.network.tensors
        if not isinstance(layer, Layer) or layer.words.inputs > 1:
            return None
        read = tensors[layer.input]
        found: dict[int, int] = {}
        computed = 0
        for use in self.writers.get(root_of(read), ()):
            channel = _first_channel(tensors[use.tensor], read)
            if channel is None:
                continue
            maker, channels = self.network.layers[use.layer], tensors[use.tensor].shape[0]
            if not (isinstance(maker, Layer) and maker.words.outputs == 1 and 0 <= channel <= read.shape[0] - channels
                    and use.layer not in found and maker.out_shape == tensors[use.tensor].shape):
                return None
            found[use.layer] = channel
            computed += channels
        return found if computed == read.shape[0] and layer.in_shape == read.shape else None

    def adds(self, reader: int, layers: Collection[int]) -> bool:
        """Tell whether layer ``reader`` adds, as a residual, anything that ``layers`` compute."""
        layer, tensors = self.network.layers[reader], self.network.tensors
        return isinstance(layer, Layer) and layer.residual is not None and self._write(
            layers, tensors[layer.residual.tensor])

    def weighs(self, reader: int, layers: Collection[int]) -> bool:
        """Tell whether layer ``reader`` has weights, a channel factor, that any of ``layers`` compute.

        Computed weights are loaded when a load of data has waited for them, and an input on chip needs no load.
        """
        layer, tensors = self.network.layers[reader], self.network.tensors
        return isinstance(layer, Layer) and layer.factor is not None and any(
            self._write(layers, tensors[name]) for name in (layer.factor.tensor, *layer.factor.images))

    def _write(self, layers: Collection[int], read: TensorInfo) -> bool:
        """Tell whether any of ``layers`` compute anything of a tensor."""
        return any(use.layer in layers and _first_channel(self.network.tensors[use.tensor], read) is not None
                   for use in self.writers.get(root_of(read), ()))

    def needed(self, writer: int, found: Collection[int]) -> bool:
        """Tell whether memory must have what layer ``writer`` computes, where layers ``found`` find it on chip."""
        tensors = self.network.tensors
        for name in self.network.layers[writer].writes:
            written, root = tensors[name], root_of(tensors[name])
            others = [use.tensor for use in self.readers.get(root, ()) if not (use.by_input and use.layer in found)]
            if any(_first_channel(written, tensors[other]) is not None
                   for other in (*others, *self.outputs.get(root, ()))):
                return True
        return False


def _first_channel(part: TensorInfo, whole: TensorInfo) -> int | None:
    """Return the channel of ``whole`` with which ``part`` begins; None if the two share nothing.

    If they share anything in another way than channel by channel, that is a channel that ``whole`` does not have.
    """
    first, second = layout_of(part), layout_of(whole)
    offsets = [each.place.offset if each.place is not None else 0 for each in (part, whole)]
    if _alike(first, second):
        channel = offsets[0] - offsets[1]
        if -first.shape[0] < channel < second.shape[0]:
            return channel
        if max(-channel, channel + first.shape[0], second.shape[0] - channel) <= second.pixel_step:
            return None
    apart = offsets[0] + first.span <= offsets[1] or offsets[1] + second.span <= offsets[0]
    return None if apart else -1


def _alike(first: Layout, second: Layout) -> bool:
    """Tell whether pixel lies beside pixel in two tensors."""
    return (first.shape[1:], first.row_step, first.pixel_step, first.images, first.image_step) == (
        second.shape[1:], second.row_step, second.pixel_step, second.images, second.image_step)
