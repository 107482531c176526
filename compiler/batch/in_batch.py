"""Turn a network of one image into one of several; each layer computes all of them before the next one starts.

The images of a tensor lie one after the other, which in NHWC is one image of so many times the height. So a layer
that looks beyond no border of an image (a fully connected one, a 1x1 convolution, an addition, an average over all
pixels) is the same layer of a taller image, and one weight is multiplied with all images at a time. Others keep their
images apart (`Layer.images`): their tiles are of one image each, and every block of weights meets the tiles of all.

Layers that cannot be computed so, or had better not, are computed for one image after the other: each a layer of its
own, on that image's part of the tensors.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.errors import UnsupportedModelError, UnsupportedNodeError
from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Layer, MaxPooling, Network, Place, Shape, TensorInfo
from tilewright.isa.limits import MAX_WINDOW_STRIDE

__all__ = ["image_name", "in_batch"]


def in_batch(network: Network, images: int, apart: Collection[int] = ()) -> Network:
    """Return ``network`` for a batch of ``images``.

    Parameters
    ----------
    network : Network
        Of one image.
    images : int
        At least 1.
    apart : collection of int
        Layers of the datapath to compute for one image after the other, by index; of neighbours all are computed for
        an image before the next.

    Raises
    ------
    UnsupportedModelError
        If an input or output of the model has no leading extent of 1 to count images.
    UnsupportedNodeError
        If the host core computes a number without dimensions: it has none to count images.
    """
    if images == 1:
        return network
    _check_border(network, images)
    _check_numbers(network)
    tensors = {name: _stacked(info, images, network.tensors) for name, info in network.tensors.items()}
    views = _Views(network, tensors)
    layers: list[AnyLayer] = []
    for group in _groups(network, apart):
        if len(group) == 1 and group[0] not in apart and not _is_computed(network.layers[group[0]]):
            layers.append(_layer(network.layers[group[0]], images, tensors))
            continue
        private = views.private(group)
        layers += [views.layer(network.layers[index], image, private) for image in range(images) for index in group]
    constants = {name: np.concatenate([value] * images) if name in tensors else value
                 for name, value in network.constants.items()}
    return replace(network, layers=tuple(layers), tensors=tensors | views.made, constants=constants,
                   inputs=tuple(tensors[info.name] for info in network.inputs),
                   outputs=tuple(_stacked(info, images, network.tensors) for info in network.outputs))


def image_name(name: str, image: int) -> str:
    """Return the name of a layer or tensor for one image of a batch."""
    return f"{name}, image {image}"


def _check_border(network: Network, images: int) -> None:
    for kind, infos in (("Input", network.inputs), ("Output", network.outputs)):
        for info in infos:
            if info.onnx_shape is not None and info.onnx_shape[:1] != (1,):
                raise UnsupportedModelError(f"{kind} {info.onnx_name!r} must have a first dimension of 1 for a batch "
                                            "of "
                                            f"{images}, not the shape {info.onnx_shape}; run one image after the other")


def _check_numbers(network: Network) -> None:
    for layer in network.layers:
        if network.tensors[layer.writes[0]].dims == ():
            raise UnsupportedNodeError(
                layer.onnx_nodes[0] if layer.onnx_nodes else layer.name, layer.op if isinstance(layer, CoreLayer)
                else layer.kind, "its output has no dimensions, so none can count the images of a batch",
                "run one image after the other, without --batch")


def _groups(network: Network, apart: Collection[int]) -> Iterable[list[int]]:
    """Yield the layers in order: neighbours that are ``apart`` together, others alone."""
    group: list[int] = []
    for index in range(len(network.layers)):
        if index in apart:
            group.append(index)
            continue
        if group:
            yield group
            group = []
        yield [index]
    if group:
        yield group


def _is_computed(layer: AnyLayer) -> bool:
    """Tell whether the weights of a layer are computed, and so are others for each image."""
    return isinstance(layer, Layer) and layer.factor is not None


def _stacked(info: TensorInfo, images: int, tensors: Mapping[str, TensorInfo]) -> TensorInfo:
    """Return a tensor with room for ``images``."""
    def times(extents: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return extents and (images * extents[0], *extents[1:])

    channels, height, width = info.shape
    return replace(info, shape=(channels, images * height, width), dims=times(info.dims),
                   onnx_shape=times(info.onnx_shape), images=images,
                   place=info.place and _stacked_place(info.place, height, tensors[info.place.parent].bytes))


def _stacked_place(place: Place, height: int, parent_bytes: int) -> Place:
    """Return the place of all images of a part of ``height`` rows, of each in its own ``parent_bytes``."""
    if height == 1:
        return replace(place, row_step=parent_bytes)
    return place if height * place.row_step == parent_bytes else replace(place, image_step=parent_bytes)


def _times(shape: Shape, images: int) -> Shape:
    return shape[0], images * shape[1], shape[2]


def _layer(layer: AnyLayer, images: int, tensors: Mapping[str, TensorInfo]) -> AnyLayer:
    """Return a layer for all images: of one taller image if its tensors go on from one to the next."""
    if isinstance(layer, CoreLayer):
        return replace(layer, macs=images * layer.macs)
    tall = _as_one(layer)
    places = [tensors[name].place for name in (*layer.reads, *layer.writes)]
    gaps = any(place is not None and place.image_step for place in places)
    chosen = replace(layer, images=images) if tall is None or gaps else tall
    return replace(chosen, in_shape=_times(layer.in_shape, images), conv_shape=_times(layer.conv_shape, images),
                   out_shape=_times(layer.out_shape, images))


def _as_one(layer: Layer) -> Layer | None:
    """Return ``layer`` with strides that lead from the last row of an image to the first of the next; None without."""
    (_, height, _), (_, sums, _), (_, rows, _) = layer.in_shape, layer.conv_shape, layer.out_shape
    stride = height if sums == 1 else layer.strides[0]
    if layer.pads[0] or layer.pads[2] or stride * sums != height:
        return None
    pool = layer.pool
    if pool is not None:
        step = sums if rows == 1 else pool.strides[0]
        if pool.pads[0] or pool.pads[2] or step * rows != sums or step > MAX_WINDOW_STRIDE:
            return None
        pool = MaxPooling(kernel=pool.kernel, strides=(step, pool.strides[1]), pads=pool.pads)
    return replace(layer, strides=(stride, layer.strides[1]), pool=pool)


@dataclass(slots=True)
class _Views:
    """Layers of single images, and the tensors ``made`` for them."""

    network: Network
    stacked: Mapping[str, TensorInfo]
    made: dict[str, TensorInfo]

    def __init__(self, network: Network, stacked: Mapping[str, TensorInfo]) -> None:
        self.network, self.stacked, self.made = network, stacked, {}

    def private(self, group: Collection[int]) -> frozenset[str]:
        """Return the tensors that only the layers of ``group`` touch, and that lie in no other, nor others in them."""
        outside = {info.name for info in (*self.network.inputs, *self.network.outputs)}
        for index, layer in enumerate(self.network.layers):
            if index not in group:
                outside.update((*layer.reads, *layer.writes))
        for info in self.network.tensors.values():
            if info.place is not None:
                outside |= {info.name, info.place.parent}
        return frozenset(self.network.tensors.keys() - outside)

    def layer(self, layer: AnyLayer, image: int, private: Collection[str]) -> Layer:
        """Return ``layer`` of one image."""
        assert isinstance(layer, Layer)

        def of(name: str) -> str:
            return self._tensor(name, image, alone=name in private)

        return replace(layer, name=image_name(layer.name, image), input=of(layer.input), output=of(layer.output),
                       also=tuple(map(of, layer.also)),
                       residual=layer.residual and replace(layer.residual, tensor=of(layer.residual.tensor)),
                       factor=layer.factor and replace(layer.factor, tensor=of(layer.factor.tensor)))

    def _tensor(self, name: str, image: int, *, alone: bool) -> str:
        """Return the tensor that is one image of ``name``: a part of that, or one for itself."""
        info = self.stacked[name]
        one = info.of_image
        channels, _, width = one.shape
        place = info.place or Place(parent=name, offset=0, row_step=width * channels, pixel_step=channels)
        part = replace(one, name=image_name(name, image), dims=None, onnx_name=None, onnx_dtype=None,
                       onnx_shape=None, place=None if alone else replace(
                           place, offset=place.offset + image * info.image_step, image_step=0))
        self.made[part.name] = part
        return part.name
