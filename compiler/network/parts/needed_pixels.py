"""Layers compute only those columns of pixels that something reads.

The head of a vision transformer reads only the first of its tokens. Layers of the last block that treat each token by
itself, products and normalisations, then compute one token: a part of their input and of their output, in the same
places. All tokens of the keys and values of an attention stay needed.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewright.compiler.network.layer_uses import NO_WORDS
from tilewright.compiler.network.layers import AnyLayer, Layer, MatrixFactor, Network, Place, TensorInfo
from tilewright.compiler.network.layout import layout_of
from tilewright.compiler.network.memory_map import root_of, tensor_bytes

__all__ = ["with_needed_pixels"]


def with_needed_pixels(network: Network) -> Network:
    """Return ``network`` with layers of fewer pixels, and the parts of tensors that these read and write."""
    tensors = dict(network.tensors)
    reads = _Reads(tensors)
    layers: list[AnyLayer] = []
    for info in network.outputs:
        reads.of(info)[...] = True
    for layer in reversed(network.layers):
        found: AnyLayer = layer
        if isinstance(layer, Layer) and _by_pixel(layer, tensors):
            needed = np.flatnonzero(reads.of(tensors[layer.output]).any(axis=(0, 1, 3)))
            if 0 < len(pixels := _evenly(needed)) < layer.out_shape[2]:
                found = _narrower(layer, pixels, tensors)
        layers.insert(0, found)
        for name in found.reads:
            if name in tensors:
                reads.of(tensors[name])[...] = True
    touched = {name for new, old in zip(layers, network.layers, strict=True) if new is not old
               for name in (*old.reads, *old.writes)}
    if not touched:
        return network
    return _without(touched, replace(network, layers=tuple(layers), tensors=tensors))


def _without(touched: set[str], network: Network) -> Network:
    """Return ``network`` without tensors that no layer names and that lie where ``touched`` ones do: parts may lack.

    Of a tensor that others lie in, only the bytes are left.
    """
    ends = {info.name for info in (*network.inputs, *network.outputs)} | network.constants.keys()
    roots = {root_of(network.tensors[name]) for name in touched if name in network.tensors}
    named = {name for layer in network.layers for name in (*layer.reads, *layer.writes)}
    gone = {name for name, info in network.tensors.items() if root_of(info) in roots} - ends - named
    parents = {root_of(info) for info in network.tensors.values() if info.place is not None}
    bare = {name: network.unused_name(f"{name}:fewer pixels") for name in gone & parents}
    tensors = {}
    for name, info in network.tensors.items():
        if name in bare:
            tensors[bare[name]] = replace(info, name=bare[name], onnx_name=None, onnx_dtype=None, onnx_shape=None)
        elif name not in gone:
            place = info.place and replace(info.place, parent=bare.get(info.place.parent, info.place.parent))
            tensors[name] = replace(info, place=place)
    inputs, outputs = (tuple(tensors[info.name] for info in each) for each in (network.inputs, network.outputs))
    return replace(network, tensors=tensors, inputs=inputs, outputs=outputs)


class _Reads:
    """Bytes that are read of each tensor that lies in no other."""

    def __init__(self, tensors: Mapping[str, TensorInfo]) -> None:
        self.tensors = tensors
        self.masks: dict[str, np.ndarray] = {}

    def of(self, info: TensorInfo) -> np.ndarray:
        """Return those of a tensor, to be read or set: (images, rows of each, pixels, bytes of all channels)."""
        root, layout, size = root_of(info), layout_of(info), np.dtype(info.dtype).itemsize
        if root not in self.masks:
            self.masks[root] = np.zeros(tensor_bytes(self.tensors[root]), np.bool_)
        channels, height, width = layout.shape
        return as_strided(self.masks[root][_first(info):],
                          (layout.images, height // layout.images, width, channels * size),
                          (layout.image_step * size, layout.row_step * size, layout.pixel_step * size, 1))


def _first(info: TensorInfo) -> int:
    """Return the first element of a tensor in what it lies in."""
    return 0 if info.place is None else info.place.offset


def _by_pixel(layer: Layer, tensors: Mapping[str, TensorInfo]) -> bool:
    """Tell whether each pixel of a layer depends on one pixel alone."""
    taps = layer.kernel == (1, 1) or (isinstance(layer.factor, MatrixFactor) and layer.dilations[1] == 0)
    alone = layer.pool is None and layer.unit is None and not layer.also and layer.words == NO_WORDS
    return taps and alone and layer.images == 1 and not any(layer.pads) and layer.strides == (1, 1) \
        and layer.in_shape[1:] == layer.conv_shape[1:] == layer.out_shape[1:] \
        and layout_of(tensors[layer.output]).pixel_step > 0


def _evenly(pixels: np.ndarray) -> range:
    """Return these pixels if they are as far from one another; else all from the first to the last."""
    steps = np.diff(pixels)
    if not len(steps):
        return range(pixels[0], pixels[0] + 1) if len(pixels) else range(0)
    return range(pixels[0], pixels[-1] + 1, int(steps[0]) if (steps == steps[0]).all() else 1)


def _narrower(layer: Layer, pixels: range, tensors: dict[str, TensorInfo]) -> Layer:
    """Return a layer that computes some pixels, and add the parts of tensors that it takes."""
    def part(name: str) -> str:
        info, layout = tensors[name], layout_of(tensors[name])
        place = Place(parent=root_of(info), offset=_first(info) + layout.at(0, pixels.start),
                      row_step=layout.row_step, pixel_step=layout.pixel_step * pixels.step)
        chosen = replace(info, name=f"{name}:pixels {pixels.start} to {pixels[-1]}", dims=None, onnx_name=None,
                         onnx_dtype=None, onnx_shape=None, shape=(*info.shape[:2], len(pixels)), place=place)
        tensors[chosen.name] = chosen
        return chosen.name

    residual = layer.residual and replace(layer.residual, tensor=part(layer.residual.tensor))
    shapes = [(*shape[:2], len(pixels)) for shape in (layer.in_shape, layer.conv_shape, layer.out_shape)]
    return replace(layer, input=part(layer.input), output=part(layer.output), residual=residual, in_shape=shapes[0],
                   conv_shape=shapes[1], out_shape=shapes[2])
