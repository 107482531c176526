"""A computed matrix as weights and parameters for ``ldw``, written by ordinary layers; see docs/datapath.md.

A product of two computed tensors is a 1x1 convolution whose weights are a tensor (``Layer.factor``). Its rows lie one
after the other, and ``ldw`` wants runs of 16 bytes of each lane of a lane group side by side: copies with other steps.
A zero point is a second tap, of constants.

The bias takes off what belongs to no element: the input's zero points, and on arrays of inner products the products of
neighbouring weights. Both are in the sums of a pixel of zero points, which is padding; a layer leaves them whole,

    S - 1 = Σ zero_point · w + neighbours - 1          and the bytes of the bias are     ~(S - 1) = -S.

Weights that do not fit their memory are loaded part by part. A kernel of two taps cannot be cut so, but one of a single
tap on an input that has every pixel twice, side by side.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.network.factors.turned_matrices import (
    Turned,
    can_turn,
    identity_pixels,
    in_columns,
    spread,
    turned_copies,
    turned_from,
)
from tilewright.compiler.network.layers import (
    AnyLayer,
    Layer,
    MatrixFactor,
    Network,
    Place,
    Requantisation,
    Shape,
    TensorInfo,
)
from tilewright.compiler.network.memory_map import root_of
from tilewright.isa.integers.shift_requantise import BIAS_BITS
from tilewright.isa.machine import PARAMETER_BYTES, SUM_BYTES, TILE_BYTES, Machine
from tilewright.isa.numerics import pack_scale

__all__ = ["with_matrix_images"]

_MOST_INPUTS = ((1 << BIAS_BITS - 1) - 1) // (128 * 255 + 128 * 128)
"""So many products of a zero point and a weight, and of two neighbouring weights, a bias beside whole numbers holds."""


def with_matrix_images(network: Network, machine: Machine) -> Network:
    """Return ``network`` with layers before each product of matrices that write its weights and parameters.

    Products in a row, as of an attention's heads, follow the layers of them all: then the array computes one while the
    results of the one before it are on their way.
    """
    layers: list[AnyLayer] = []
    products: list[Layer] = []
    tensors, constants = dict(network.tensors), dict(network.constants)
    kept = (info.name for info in (*network.inputs, *network.outputs))
    copies = turned_copies(network.layers, tensors, kept) if can_turn(machine) else {}
    gone = {copy.name for each in copies.values() for copy in each}
    for layer in network.layers:
        if layer.name in gone:
            continue
        is_product = isinstance(layer, Layer) and isinstance(layer.factor, MatrixFactor) and not layer.factor.images
        if not is_product or _reads_of(layer, tensors) & {_parent(tensors, each.output) for each in products}:
            layers += products
            products.clear()
        if is_product:
            assert isinstance(layer, Layer)
            assert isinstance(layer.factor, MatrixFactor)
            turned = turned_from(tensors[layer.factor.tensor], copies, tensors)
            images = _MatrixImages(layer, layer.factor, tensors, machine, turned)
            products.append(images.written())
            layers += images.layers
            tensors |= {info.name: info for info in images.made}
            constants |= images.constants
        else:
            layers.append(layer)
    layers += products
    if len(layers) == len(network.layers):
        return network
    tensors = {name: info for name, info in tensors.items() if root_of(info) not in copies}
    return replace(network, layers=tuple(layers), tensors=tensors, constants=constants)


def _reads_of(layer: AnyLayer, tensors: Mapping[str, TensorInfo]) -> set[str]:
    return {_parent(tensors, name) for name in layer.reads if name in tensors}


def _parent(tensors: Mapping[str, TensorInfo], name: str) -> str:
    """Return the tensor that another one lies in; itself if in none."""
    place = tensors[name].place
    return name if place is None else place.parent


@dataclass(frozen=True, slots=True)
class _Copied:
    """Weights that a layer writes: ``lanes`` of each of ``groups``, so many ``channels`` of a run."""

    channels: int
    groups: int
    lanes: int
    run: int
    first: int
    cluster: int


class _MatrixImages:
    """The layers and tensors that one product needs."""

    def __init__(self, product: Layer, factor: MatrixFactor, tensors: dict[str, TensorInfo], machine: Machine,
                 turned: Turned | None) -> None:
        self.product, self.factor, self.machine, self.turned = product, factor, machine, turned
        self.matrix, self.input = tensors[factor.tensor], tensors[product.input]
        self.inputs, _, self.outputs = self.matrix.shape
        self.runs = -(-self.inputs // TILE_BYTES)
        self.size = TILE_BYTES * machine.lanes * self.runs * factor.halves
        self.layers: list[Layer] = []
        self.made: list[TensorInfo] = []
        self.constants: dict[str, np.ndarray] = {}

    def written(self) -> Layer:
        """Write what is to be loaded; return the product with its names."""
        factor = replace(self.factor, weights=self._weights())
        if self.turned is not None:
            factor = replace(factor, tensor=factor.weights,
                             packed=(self.machine.clusters, self.machine.lanes_per_cluster))
        words = self.runs * factor.halves * self.machine.lanes_per_cluster
        if factor.halves > 1 and words > self.machine.weight_words // 2:
            self._double()
            factor = replace(factor, twice=True)
        if self.machine.inner or self.product.pad_value:
            factor = replace(factor, parameters=self._parameters(factor))
        return replace(self.product, factor=factor)

    def _double(self) -> None:
        """Write the input with every pixel twice; the product reads that."""
        half, (inputs, _, width) = self.runs * TILE_BYTES, self.product.in_shape
        twice = self._tensor("input twice", (2 * half, 1, width))
        places = [self._part(twice, self.input.shape, first, 2 * half * width, 2 * half) for first in (0, half)]
        self._layer(f"{self.product.name}:input twice", self.input, places[0], None, np.zeros(inputs, np.int32))
        self.layers[-1] = replace(self.layers[-1], also=(places[1].name,))
        self.input = twice
        self.product = replace(self.product, input=twice.name, in_shape=twice.shape, kernel=(1, 1), dilations=(1, 1))

    def _weights(self) -> str:
        """Write the words of every lane group."""
        groups, left = divmod(self.outputs, self.machine.lanes)
        image = self._tensor("weights", (self.size, groups + (left > 0), 1))
        if self.turned is not None:
            self._turn(image, self.turned)
            return image.name
        each = self.machine.lanes_per_cluster
        for run in range(self.runs):
            channels = min(TILE_BYTES, self.inputs - run * TILE_BYTES)
            for cluster in range(self.machine.clusters):
                if groups:
                    self._copy(image, _Copied(channels, groups, each, run, 0, cluster))
                if (count := min(each, left - cluster * each)) > 0:
                    self._copy(image, _Copied(channels, 1, count, run, groups, cluster))
        if self.factor.halves > 1:
            self._constants(image)
        return image.name

    def _copy(self, image: TensorInfo, part: _Copied) -> None:
        """Add the layer that copies a run of some rows of the matrix, negated if they are."""
        clusters, each = self.machine.clusters, self.machine.lanes_per_cluster
        pitch = self._place(self.matrix).pixel_step
        first = (part.first * self.machine.lanes + part.cluster * each) * pitch + part.run * TILE_BYTES
        source = self._part(self.matrix, (part.channels, part.groups, part.lanes),
                            first, self.machine.lanes * pitch, pitch)
        at = part.first * self.size + (part.run * each * clusters + part.cluster) * TILE_BYTES
        target = self._part(image, (TILE_BYTES, part.groups, part.lanes), at, self.size, clusters * TILE_BYTES)
        name = f"{self.product.name}:weights[{part.first}, {part.run}, {part.cluster}]"
        sign = -1 if self.factor.negated else 1
        bias = np.zeros(TILE_BYTES, np.int32)
        if sign < 0:
            bias[:part.channels] = -1
        whole = part.channels == TILE_BYTES and sign > 0
        self._layer(name, source, target, None if whole else sign * np.eye(TILE_BYTES, part.channels, dtype=np.int8),
                    bias)

    def _turn(self, image: TensorInfo, turned: Turned) -> None:
        """Add the layers that write the words from rows in which these weights are columns."""
        groups, rows, each = image.shape[1], TILE_BYTES * self.runs, self.machine.lanes_per_cluster
        word, columns = TILE_BYTES * self.machine.clusters, self._columns(turned, groups, rows)
        sign = -1 if self.factor.negated else 1
        weights = None if word == TILE_BYTES and sign > 0 else sign * in_columns(self.machine)
        # A second tap lies behind the words of each lane group.
        for group, count in ((0, groups),) if self.factor.halves == 1 else ((group, 1) for group in range(groups)):
            shape = word, count * self.runs, each
            source = self._part(columns, shape, group * self.runs * word, word, columns.shape[0])
            target = self._part(image, shape, group * self.size, word * each, word)
            self._layer(f"{self.product.name}:weights[{group}]", source, target, weights,
                        np.full(word, min(sign, 0), np.int32))
        if self.factor.halves > 1:
            self._constants(image)

    def _columns(self, turned: Turned, groups: int, rows: int) -> TensorInfo:
        """Add the layers that compute the columns; return what they write: a pixel for each lane of a cluster."""
        lanes, each, clusters = self.machine.lanes, self.machine.lanes_per_cluster, self.machine.clusters
        word = TILE_BYTES * clusters
        words = self._tensor("rows", (word, groups, rows))
        whole, left = divmod(self.outputs, lanes)
        for first, count, elements in ((0, whole, lanes), (whole, 1, left)):
            if count and elements:
                source = replace(self.matrix, name=f"{self.product.output}:rows read[{first}]", dims=None,
                                 shape=(elements, count, self.inputs), onnx_name=None, onnx_dtype=None, onnx_shape=None,
                                 place=Place(parent=turned.parent, offset=turned.offset + first * lanes,
                                             row_step=lanes, pixel_step=turned.pitch))
                self.made.append(source)
                target = self._part(words, (word, count, rows), first * word * rows, word * rows, word)
                self._layer(f"{self.product.name}:rows[{first}]", source, target, spread(elements, self.machine),
                            np.zeros(word, np.int32))
                # Rows up to a multiple of 16 become weights of zero.
                self.layers[-1] = replace(self.layers[-1], pads=(0, 0, 0, rows - self.inputs),
                                          pad_value=-1 if self.factor.negated else 0)
        pixels = self._tensor("pixels", (TILE_BYTES, 1, each))
        self.constants[pixels.name] = identity_pixels(self.machine).transpose(1, 2, 0)
        columns = self._tensor("columns", (groups * rows * clusters, 1, each))
        self._layer(f"{self.product.name}:columns", pixels, columns, None, np.zeros(columns.shape[0], np.int32))
        self.layers[-1] = replace(self.layers[-1], kind="conv", groups=1, factor=MatrixFactor(
            tensor=words.name, zero_point=0, weights=words.name, raw=True, packed=(clusters, each)))
        return columns

    def _constants(self, image: TensorInfo) -> None:
        """Add the layers that write the second taps; what they read, weights of the same groups, does not matter."""
        lanes, groups, value = self.machine.lanes, image.shape[1], self.factor.constant
        rest = self.inputs % TILE_BYTES
        half = self.runs * lanes * TILE_BYTES
        for first, runs, channels in ((0, self.runs - (rest > 0), TILE_BYTES), (self.runs - 1, 1, rest)):
            if not runs or not channels:
                continue
            shape = TILE_BYTES, groups, runs * lanes
            at = first * lanes * TILE_BYTES
            bias = np.zeros(TILE_BYTES, np.int32)
            bias[:channels] = value
            source, target = (self._part(image, shape, each, self.size, TILE_BYTES) for each in (at, half + at))
            self._layer(f"{self.product.name}:zero points[{first}]", source, target,
                        np.zeros((TILE_BYTES, TILE_BYTES), np.int8), bias)

    def _parameters(self, factor: MatrixFactor) -> str:
        """Write bias and scale of every channel, from the whole sums of a pixel of zero points.

        Raises
        ------
        UnsupportedNodeError
            If the machine leaves no sums whole, or a bias beside whole numbers has more bits than there are.
        """
        outputs, product = self.outputs, self.product
        if product.requantisation.integers is not None and product.in_shape[0] > _MOST_INPUTS:
            raise UnsupportedNodeError(
                product.onnx_nodes[0] if product.onnx_nodes else product.name, product.kind,
                f"its weights are computed, and the {product.in_shape[0]:,} levels of a sum may give its bias over "
                f"{BIAS_BITS} bits", f"use at most {_MOST_INPUTS:,}")
        if not self.machine.whole_sums:
            raise UnsupportedNodeError(
                product.onnx_nodes[0] if product.onnx_nodes else product.name, product.kind,
                "its weights are computed, their sums are part of its bias, and the machine leaves no sums whole",
                "choose one that does, as with --machine base,whole_sums=true")
        inputs = product.in_shape[0]
        pixel = self._part(self.input, (inputs, 1, 1), 0, inputs, inputs)
        sums = self._tensor("sums", (SUM_BYTES * outputs, 2, 1))
        self.layers.append(replace(
            product, name=f"{product.name}:sums", input=pixel.name, output=sums.name, in_shape=pixel.shape,
            conv_shape=(outputs, 2, 1), out_shape=sums.shape, bias=np.full(outputs, -1, np.int32), pads=(0, 0, 1, 0),
            requantisation=Requantisation(scale=np.ones(outputs, np.float32), zero_point=0), table=None, rows=None,
            whole=True, factor=replace(factor, raw=True, pairs=self.machine.inner), exact=True))
        image = self._tensor("parameters", (PARAMETER_BYTES, 1, outputs))
        source = self._part(sums, (SUM_BYTES, 1, outputs), SUM_BYTES * outputs, SUM_BYTES * outputs, SUM_BYTES)
        number = product.requantisation
        if number.integers is None:
            mantissa, shift = pack_scale(float(number.scale[0]))
            constant = np.array([mantissa | shift << 24], "<u4").view(np.int8).astype(np.int32)
        else:
            (word,) = number.integers.of_channels(slice(1)).words(np.zeros(1, np.int64))
            constant = np.array([word], "<u8").view(np.int8).astype(np.int32)[SUM_BYTES:]
        self._layer(f"{product.name}:parameters", source, image, -np.eye(PARAMETER_BYTES, SUM_BYTES, dtype=np.int8),
                    np.concatenate([np.full(SUM_BYTES, -1, np.int32), constant]))
        if number.integers is not None:
            self._shared_byte(source, image, int(word) >> BIAS_BITS & 15)
        return image.name

    def _shared_byte(self, sums: TensorInfo, image: TensorInfo, others: int) -> None:
        """Write the byte of parameters that holds the last four bits of a bias, and ``others`` above them."""
        last = SUM_BYTES - 1
        source = self._part(sums, (1, 1, self.outputs), last, SUM_BYTES * self.outputs, SUM_BYTES)
        target = self._part(image, (1, 1, self.outputs), last, PARAMETER_BYTES * self.outputs, PARAMETER_BYTES)
        self._layer(f"{self.product.name}:parameters shared", source, target, None, np.zeros(1, np.int32))
        found = ~np.arange(-128, 128) & 15 | others << 4
        self.layers[-1] = replace(self.layers[-1], table=found.astype(np.uint8).view(np.int8))

    def _layer(self, name: str, source: TensorInfo, target: TensorInfo, weights: np.ndarray | None,
               bias: np.ndarray) -> None:
        """Add a layer that makes bytes of bytes, without a zero point: a copy, or by (outputs, inputs) ``weights``."""
        self.layers.append(Layer(
            name=name, kind="pass" if weights is None else "conv", onnx_nodes=self.product.onnx_nodes,
            input=source.name, output=target.name, in_shape=source.shape, conv_shape=target.shape,
            out_shape=target.shape, weights=None if weights is None else weights[:, :, None, None], bias=bias,
            groups=target.shape[0] if weights is None else 1,
            requantisation=Requantisation(scale=np.ones(target.shape[0], np.float32), zero_point=0)))

    def _tensor(self, what: str, shape: Shape) -> TensorInfo:
        info = TensorInfo(name=f"{self.product.output}:{what}", shape=shape, scale=np.float32(1), zero_point=0)
        self.made.append(info)
        return info

    @staticmethod
    def _place(info: TensorInfo) -> Place:
        """Return where a tensor lies, in itself if in no other."""
        channels, _, width = info.shape
        return info.place or Place(parent=info.name, offset=0, row_step=width * channels, pixel_step=channels)

    def _part(self, info: TensorInfo, shape: Shape, first: int, row_step: int, pixel_step: int) -> TensorInfo:
        """Return an image of bytes of ``info``, the ``first`` of them counted from its own."""
        place = self._place(info)
        name = f"{self.product.output}:{info.name}[{first}]{'x'.join(map(str, shape))}"
        part = replace(info, name=name, shape=shape, dims=None, onnx_name=None, onnx_dtype=None, onnx_shape=None,
                       place=Place(parent=place.parent, offset=place.offset + first, row_step=row_step,
                                   pixel_step=pixel_step))
        self.made.append(part)
        return part
