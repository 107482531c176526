"""A computed vector as weights and parameters for ``ldw``, written by ordinary layers; see docs/datapath.md.

A product by a vector per channel is a depthwise convolution of one pixel (``Layer.factor``). What the weight memory
wants, 16 bytes for each lane of which one is the weight, is a convolution too: from a pixel of the channels of a lane
group to a pixel of all its words, zeros included. So no byte of it need be there before. Halves of nine bits are

    floor(v / 2) = rne((2 v - 1) / 4)        ceil(v / 2) = rne((2 v + 1) / 4)

and the bytes of the bias, - x_zero · v, are tables of the factor; scales stand beside them as constants.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tilewright.compiler.network.factors.factor_choice import TensorMakers, with_early_factors
from tilewright.compiler.network.factors.operands_apart import with_operands_apart
from tilewright.compiler.network.layers import (
    AnyLayer,
    ChannelFactor,
    Layer,
    Network,
    Place,
    Requantisation,
    Shape,
    TensorInfo,
)
from tilewright.isa.machine import PARAMETER_BYTES, TILE_BYTES, Machine
from tilewright.isa.numerics import pack_scale
from tilewright.isa.words.word_planes import LOWER_OFFSET

__all__ = ["with_factor_images"]

_BIAS_BYTES = 4

_MOST_CHANNELS = 8192
"""Of a product of one pixel: of more, the planner would compare too many ways to tile it."""


def with_factor_images(network: Network, machine: Machine) -> Network:
    """Return ``network`` with layers before each product that write its weights and parameters for ``machine``.

    Of a product of vectors they come as soon as a layer stands between them and the one that computes the factor: so
    they do not wait for it, nor the product for them.
    """
    if not any(_unwritten(layer) for layer in network.layers):
        return network
    network = with_operands_apart(network, machine)
    tensors = dict(network.tensors)
    layers = with_early_factors(network.layers, tensors)
    makers = TensorMakers(layers, tensors)
    products: list[list[AnyLayer]] = []
    images: dict[int, tuple[int, list[AnyLayer]]] = {}
    for index, layer in enumerate(layers):
        if not _unwritten(layer):
            products.append([layer])
            continue
        assert isinstance(layer, Layer)
        assert isinstance(layer.factor, ChannelFactor)
        maker = makers.last(tensors[layer.factor.tensor]) if layer.in_shape[1:] == (1, 1) else index
        products.append([])
        images[index] = maker, []
        for part in _parts(layer, tensors, min(_MOST_CHANNELS, machine.activation_bytes // 4)):
            assert isinstance(part.factor, ChannelFactor)
            found = _ProductImages(part, part.factor, tensors[part.factor.tensor], machine)
            products[index].append(found.written())
            images[index][1].extend(found.layers)
            tensors |= {info.name: info for info in found.tensors}
    waits = [any(makers.last(network.tensors[name]) == index for name in layer.reads if name in network.tensors)
             for index, layer in enumerate(layers[1:])]
    return replace(network, layers=tuple(_in_order(products, images, [*waits, True])), tensors=tensors)


def _unwritten(layer: AnyLayer) -> bool:
    """Tell whether a layer multiplies by a vector whose weights no layer writes yet."""
    return isinstance(layer, Layer) and isinstance(layer.factor, ChannelFactor) and not layer.factor.images


def _in_order(products: Sequence[Sequence[AnyLayer]], images: dict[int, tuple[int, list[AnyLayer]]],
              waits: Sequence[bool]) -> Iterator[AnyLayer]:
    """Yield all layers: those of ``images``, by product, behind their maker and one more, and before the product.

    The one more may be written weights, too, where the next layer waits for the maker: ``waits`` tells so by layer.
    """
    for index, layers in enumerate(products):
        if index in images:
            yield from images.pop(index)[1]
            yield from layers
        else:
            # Of products that others than their images come before, the weights do, too.
            yield from (replace(each, early_weights=True) if isinstance(each, Layer) and isinstance(
                each.factor, ChannelFactor) else each for each in layers)
        latest = index
        for product, (maker, written) in sorted(images.items(), key=lambda each: each[1][0]):
            if maker < latest:
                del images[product]
                yield from written
                latest = index + waits[index]


def _parts(layer: Layer, tensors: dict[str, TensorInfo], most: int) -> list[Layer]:
    """Return a product of one pixel cut into parts of at most ``most`` channels, and add what they read and write.

    Others are as they are.
    """
    channels, *size = layer.in_shape
    if size != [1, 1] or channels <= most or layer.factor is None or layer.pool is not None or layer.also:
        return [layer]
    found = []
    for first in range(0, channels, most):
        shape = (min(most, channels - first), 1, 1)
        names = []
        added = () if layer.residual is None else (layer.residual.tensor,)
        for name in (layer.input, layer.output, layer.factor.tensor, *added):
            info = tensors[name]
            parent, offset = (name, 0) if info.place is None else (info.place.parent, info.place.offset)
            part = replace(info, name=f"{name}:channels {first} of {layer.name}", shape=shape, onnx_name=None,
                           onnx_dtype=None, onnx_shape=None, dims=None,
                           place=Place(parent=parent, offset=offset + first, row_step=shape[0], pixel_step=shape[0]))
            tensors[part.name] = part
            names.append(part.name)
        chosen = slice(first, first + shape[0])
        found.append(replace(
            layer, name=f"{layer.name}[{first}]", input=names[0], output=names[1], in_shape=shape, conv_shape=shape,
            out_shape=shape, groups=shape[0], bias=layer.bias[chosen], factor=replace(layer.factor, tensor=names[2]),
            residual=layer.residual and replace(layer.residual, tensor=names[3]),
            requantisation=layer.requantisation.of_channels(chosen)))
    return found


class _ProductImages:
    """The layers and tensors that one product needs."""

    def __init__(self, product: Layer, factor: ChannelFactor, vector: TensorInfo, machine: Machine) -> None:
        self.product, self.factor, self.vector, self.machine = product, factor, vector, machine
        self.layers: list[Layer] = []
        self.tensors: list[TensorInfo] = []

    def written(self) -> Layer:
        """Write what is to be loaded; return the product with its names."""
        factor = replace(self.factor, weights=self._weights())
        if self._zero:
            factor = replace(factor, parameters=self._parameters())
        return replace(self.product, factor=factor)

    @property
    def _zero(self) -> int:
        """Zero point of the stored input; planes of words are stored less a constant, so theirs is smaller by that."""
        return self.product.pad_value - (LOWER_OFFSET if self.product.words.inputs > 1 else 0)

    def _weights(self) -> str:
        """Write the words of every lane group, a row each."""
        channels, lanes = self.product.in_shape[0], self.machine.lanes
        size = TILE_BYTES * self.factor.halves * self._runs() * lanes
        groups, left = divmod(channels, lanes)
        image = self._tensor("weights", (size, groups + (left > 0), 1))
        for first, rows, count in ((0, groups, lanes), (groups, 1, left)):
            if rows and count:
                part = self._part(image, f"{first}:{first + rows}", (size, rows, 1),
                                  Place(parent=image.name, offset=first * size, row_step=size, pixel_step=size))
                source = self._view((count, rows, 1), first * lanes)
                self._scatter(f"{self.product.name}:weights[{first}:{first + rows}]", source, part)
        return image.name

    def _runs(self) -> int:
        """Return the runs that hold a byte of every channel of a lane group, of which there may be fewer than lanes."""
        return -(-min(self.product.in_shape[0], self.machine.lanes) // TILE_BYTES)

    def _scatter(self, name: str, source: TensorInfo, target: TensorInfo) -> None:
        """Add the convolution from the channels of lane groups to their words."""
        halves, count, outputs = self.factor.halves, source.shape[0], target.shape[0]
        sign, zero = (-1 if self.factor.negated else 1), self.factor.zero_point
        weights, bias = np.zeros((outputs, count, 1, 1), np.int8), np.zeros(outputs, np.int32)
        clusters, per_cluster = self.machine.clusters, self.machine.lanes_per_cluster
        for half in range(halves):
            for lane in range(count):
                cluster, inner = divmod(lane, per_cluster)
                run, place = divmod(lane, TILE_BYTES)
                step = half * self._runs() + run
                byte = ((step * per_cluster + inner) * clusters + cluster) * TILE_BYTES + place
                weights[byte, lane] = sign * halves
                bias[byte] = -sign * zero * halves + (2 * half - 1 if halves > 1 else 0)
        scale = np.full(outputs, 0.25 if halves > 1 else 1.0, np.float32)
        self._layer(name, source, target, weights, bias, scale)

    def _parameters(self) -> str:
        """Write bias and scale of every channel."""
        channels = self.product.in_shape[0]
        image = self._tensor("parameters", (PARAMETER_BYTES, 1, channels))
        values = (np.arange(-128, 128) - self.factor.zero_point) * (-1 if self.factor.negated else 1)
        words = self._words(-self._zero * values)
        biases, constant = words[:, :_BIAS_BYTES], words[0, _BIAS_BYTES:].astype(np.int32)
        source = self._view((1, 1, channels))
        self._layer(f"{self.product.name}:scale", source, self._bytes(image, _BIAS_BYTES, _BIAS_BYTES),
                    np.zeros((_BIAS_BYTES, 1, 1, 1), np.int8), constant, np.ones(_BIAS_BYTES, np.float32))
        tables: dict[bytes, list[int]] = {}
        for byte in range(_BIAS_BYTES):
            tables.setdefault(biases[:, byte].tobytes(), []).append(byte)
        for table, places in tables.items():
            first, *others = (self._bytes(image, byte, 1) for byte in places)
            self._layer(f"{self.product.name}:bias[{places[0]}]", source, first, None, np.zeros(1, np.int32),
                        np.ones(1, np.float32))
            self.layers[-1] = replace(self.layers[-1], table=np.frombuffer(table, np.int8),
                                      also=tuple(other.name for other in others))
        return image.name

    def _words(self, biases: np.ndarray) -> np.ndarray:
        """Return the parameters with these biases, int8 (biases, bytes); the bytes behind a bias's are all the same."""
        number = self.product.requantisation
        if number.integers is None:
            mantissa, shift = pack_scale(float(number.scale[0]))
            words = biases.astype("<i4").view("<u4").astype("<u8") | np.uint64(mantissa | shift << 24) << np.uint64(32)
        else:
            words = number.integers.of_channels(np.zeros(len(biases), np.int64)).words(biases).astype("<u8")
        return words.view(np.int8).reshape(len(biases), PARAMETER_BYTES)

    def _bytes(self, image: TensorInfo, first: int, count: int) -> TensorInfo:
        """Return bytes ``first`` .. of the parameters of every channel."""
        _, _, channels = image.shape
        return self._part(image, f"byte {first}", (count, 1, channels), Place(
            parent=image.name, offset=first, row_step=PARAMETER_BYTES * channels, pixel_step=PARAMETER_BYTES))

    def _layer(self, name: str, source: TensorInfo, target: TensorInfo, weights: np.ndarray | None, bias: np.ndarray,
               scale: np.ndarray) -> None:
        self.layers.append(Layer(
            name=name, kind="pass" if weights is None else "conv", onnx_nodes=self.product.onnx_nodes,
            input=source.name, output=target.name, in_shape=source.shape, conv_shape=target.shape,
            out_shape=target.shape, weights=weights, bias=bias,
            requantisation=Requantisation(scale=scale, zero_point=0)))

    def _tensor(self, what: str, shape: Shape) -> TensorInfo:
        info = TensorInfo(name=f"{self.product.output}:{what}", shape=shape, scale=np.float32(1), zero_point=0)
        self.tensors.append(info)
        return info

    def _part(self, whole: TensorInfo, what: str, shape: Shape, place: Place) -> TensorInfo:
        """Return the part of ``whole`` at ``place``, or itself if that is all of it."""
        if shape == whole.shape:
            return whole
        info = replace(whole, name=f"{whole.name}[{what}]", shape=shape, place=place)
        self.tensors.append(info)
        return info

    def _view(self, shape: Shape, first: int = 0) -> TensorInfo:
        """Return elements ``first`` .. of the vector in another shape."""
        parent, offset = self.vector.name, first
        if self.vector.place is not None:
            parent, offset = self.vector.place.parent, self.vector.place.offset + first
        channels, _, width = shape
        info = TensorInfo(name=f"{self.product.output}:factor[{first}]{'x'.join(map(str, shape))}", shape=shape,
                          scale=self.vector.scale, zero_point=self.vector.zero_point, unsigned=self.vector.unsigned,
                          place=Place(parent=parent, offset=offset, row_step=width * channels, pixel_step=channels))
        self.tensors.append(info)
        return info
