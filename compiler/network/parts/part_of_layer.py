"""Part of a layer as a separate layer: some output rows and channels, with the part of the input that they need."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tilewright.compiler.network.layers import CoreLayer, Layer, Network, Shape, TensorInfo

__all__ = ["core_network", "datapath_layers", "part_of_layer", "parts_side_by_side"]


def part_of_layer(layer: Layer, rows: int, channels: int) -> Layer:
    """Return ``layer`` with fewer output rows and channels; its padding stays on all four sides.

    The rows are the first ones. The channels are those from the one of the largest scale on, around the end: that one
    decides how the programs of ``compiler.emit.baseline`` requantise.

    Parameters
    ----------
    layer : Layer
    rows : int
        Of ``layer.out_shape``, after max pooling.
    channels : int
        Of the output; all of them unless the layer is a convolution of one group with constant weights.

    Raises
    ------
    ValueError
        If the layer has fewer, or that many rows need no input at all.
    """
    count, height, width = layer.out_shape
    divisible = layer.kind == "conv" and layer.groups == 1 and layer.factor is None
    if not 0 < rows <= height or not 0 < channels <= count or (channels < count and not divisible):
        raise ValueError(f"Part of layer {layer.name!r} must have up to {height} rows and {count} channels, "
                         f"{'or fewer' if divisible else 'no fewer'}, not {rows} and {channels}")
    conv_rows, in_rows = layer.conv_shape[1], layer.in_shape[1]
    if rows < height:
        conv_rows = rows
        if layer.pool is not None:
            conv_rows = _extent(rows, layer.pool.kernel[0], layer.pool.strides[0]) - sum(layer.pool.pads[::2])
        kernel = layer.dilations[0] * (layer.kernel[0] - 1) + 1
        in_rows = _extent(conv_rows, kernel, layer.strides[0]) - sum(layer.pads[::2])
        if conv_rows < 1 or in_rows < 1:
            raise ValueError(f"Part of layer {layer.name!r} must reach into its input, not have {rows} rows")
    picked = np.arange(channels)
    if channels < count:
        picked = (picked + int(np.argmax(layer.requantisation.scale))) % count
    return replace(
        layer, in_shape=(layer.in_shape[0], in_rows, layer.in_shape[2]),
        conv_shape=(channels, conv_rows, layer.conv_shape[2]), out_shape=(channels, rows, width),
        weights=None if layer.weights is None else layer.weights[picked], bias=layer.bias[picked],
        requantisation=layer.requantisation.of_channels(picked))


def parts_side_by_side(network: Network, parts: list[Layer]) -> Network:
    """Return a network of parts of layers of ``network``, each with separate tensors.

    Those of part i have " i" behind their names. What lies in a larger tensor does so here, and where it is read, that
    one is the input.
    """
    layers: list[Layer] = []
    inputs: dict[str, TensorInfo] = {}
    outputs: dict[str, TensorInfo] = {}
    tensors: dict[str, TensorInfo] = {}
    for index, part in enumerate(parts):
        residual = part.residual
        factor = part.factor
        read = {part.input: part.in_shape}
        if factor is not None:
            read.setdefault(factor.tensor, network.tensors[factor.tensor].shape)
            factor = replace(factor, tensor=f"{factor.tensor} {index}")
        if residual is not None:
            read.setdefault(residual.tensor, part.conv_shape)
            residual = replace(residual, tensor=f"{residual.tensor} {index}")
        for name, shape in read.items():
            own = _own(network.tensors, name, index, shape)
            inputs[own[0].name] = own[0]
            tensors |= {info.name: info for info in own}
        for name in part.writes:
            own = _own(network.tensors, name, index, part.out_shape)
            outputs[own[-1].name] = own[-1]
            tensors |= {info.name: info for info in own}
        layers.append(replace(part, input=f"{part.input} {index}", output=f"{part.output} {index}", residual=residual,
                              factor=factor, also=tuple(f"{name} {index}" for name in part.also)))
    return Network(name=f"{network.name}, parts of its layers", layers=tuple(layers), inputs=tuple(inputs.values()),
                   outputs=tuple(outputs.values()), tensors=tensors)


def datapath_layers(network: Network) -> list[Layer]:
    """Return the layers of ``network`` that the host core does not compute."""
    return [layer for layer in network.layers if isinstance(layer, Layer)]


def core_network(network: Network) -> Network | None:
    """Return the host core's layers as a network, with tensors of other layers as inputs; None if there are none."""
    layers = tuple(layer for layer in network.layers if isinstance(layer, CoreLayer))
    if not layers:
        return None
    written = {name for layer in layers for name in layer.writes}
    names = [name for name in dict.fromkeys(name for layer in layers for name in (*layer.reads, *layer.writes))
             if name in network.tensors]
    tensors = {name: replace(network.tensors[name], place=None) for name in names}
    return Network(name=f"{network.name}, its layers of the host core", layers=layers, tensors=tensors,
                   inputs=tuple(info for name, info in tensors.items() if name not in written),
                   outputs=tuple(info for name, info in tensors.items() if name in written),
                   constants=network.constants)


def _extent(count: int, kernel: int, stride: int) -> int:
    """Return how many rows ``count`` windows reach over."""
    return (count - 1) * stride + kernel


def _own(tensors: Mapping[str, TensorInfo], name: str, index: int, shape: Shape) -> tuple[TensorInfo, ...]:
    """Return a part's own tensor of that shape, behind the one that it lies in, if it does."""
    info = tensors[name]
    own = replace(info, name=f"{name} {index}", shape=shape)
    if info.place is None:
        return (own,)
    parent = f"{info.place.parent} {index}"
    return replace(tensors[info.place.parent], name=parent), replace(own, place=replace(info.place, parent=parent))
